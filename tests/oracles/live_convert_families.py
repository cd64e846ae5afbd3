"""`limpid convert` for every architecture: transformers and llama.cpp open what it writes, with the same logits.

The models are the tiny random ones under tests/data/golden. Each Hugging Face folder becomes GGUF and a folder again,
each GPT-2 of GGUF a folder and GGUF again. Limpid's logits must be equal with `==` all the way; transformers must give
for the folder what it gives for the one that it saved itself, llama.cpp what Limpid gives within its own rounding. Then
two tokenizers whose merges had to become a list: Llama 3's ranks and Llama 2's scores.

    live_convert_families.py
"""

import json
import pathlib
import sys
import tempfile

import gguf
import limpid_program
import llama_cpp_oracle
import numpy
import safetensors.numpy
import tiny_models
import tokenizers
import torch
import transformers

GOLDEN = limpid_program.ROOT / "tests" / "data" / "golden"
TOLERANCE = 1e-4
# Root mean square, of the spread of the logits: llama.cpp rounds keys and values within attention to f16, and has GELU in
# a table of f16.
LLAMA_CPP_TOLERANCE = 2e-3
# What llama.cpp computes otherwise or does not open; Limpid says so in a line.
NOT_LLAMA_CPP = {"ernie4_5", "erf_untied", "relu_odd_sizes", "scaled_by_layer", "unscaled_silu"}
TEXTS = [
    "The capital of France is Paris.",
    "  two spaces, a\ttab\n\n\nand lines; it's 1234567 o'clock, WE'LL see",
    "na\u00efve caf\u00e9 \u4f60\u597d\u4e16\u754c \u0645\u0631\u062d\u0628\u0627 \U0001f600",
    " leading", "trailing ", " ", "x" + " " * 19 + "y", "aaaaaaaaaaaaaaaaaaaaaaa",
]  # fmt: skip


def own_logits(path: pathlib.Path, ids: list[int]) -> numpy.ndarray:
    return limpid_program.logits(path, ids, "-ctk", "f32", "-ctv", "f32")


def transformers_logits(folder: pathlib.Path, ids: list[int]) -> numpy.ndarray:
    model = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float64)
    with torch.no_grad():
        return model(torch.tensor([ids])).logits[0].numpy()


def convert(source: pathlib.Path, target: pathlib.Path, *options: object) -> pathlib.Path:
    limpid_program.run("convert", source, target, *options)
    return target


class Families:
    def __init__(self, work: pathlib.Path) -> None:
        self.work = work
        self.problems: list[str] = []

    def check(self, what: str, passed: bool, detail: str = "") -> None:
        print(f"{'ok  ' if passed else 'FAIL'} {what} {detail}", flush=True)
        if not passed:
            self.problems.append(what)

    def equal(self, what: str, found: numpy.ndarray, expected: numpy.ndarray) -> None:
        self.check(what, numpy.array_equal(found, expected))

    def near(self, what: str, found, expected, limit: float) -> None:
        error = float(numpy.abs(found - expected).max() / expected.std())
        self.check(what, error <= limit, f"{error:.1e}")

    def llama_cpp(self, name: str, path: pathlib.Path, ids, expected) -> None:
        if name in NOT_LLAMA_CPP:
            return
        with llama_cpp_oracle.opened(path, 128, 1, "f32") as model:
            square = numpy.mean((model.logits(ids) - expected) ** 2)
        error = float(numpy.sqrt(square) / expected.std())
        what = f"{name}: llama.cpp on the GGUF"
        self.check(what, error <= LLAMA_CPP_TOLERANCE, f"{error:.1e}")

    def folder(self, source: pathlib.Path) -> None:
        name = source.name
        ids = [(7 * i * i + 3 * i + 1) % 61 for i in range(70)]
        expected = own_logits(source, ids)
        reference = transformers_logits(source, ids)
        self.near(f"{name}: Limpid beside transformers", expected, reference, TOLERANCE)
        one = convert(source, self.work / f"{name}.gguf")
        self.equal(f"{name}: GGUF", own_logits(one, ids), expected)
        two = convert(one, self.work / name, "--to", "safetensors")
        self.equal(f"{name}: folder made from GGUF", own_logits(two, ids), expected)
        self.equal(f"{name}: transformers on it", transformers_logits(two, ids), reference)
        self.same_tensors(name, source, two)
        three = convert(source, self.work / f"{name}.again", "--to", "safetensors")
        self.equal(f"{name}: folder made from the folder", own_logits(three, ids), expected)
        self.llama_cpp(name, one, ids, expected)

    def same_tensors(self, name: str, source: pathlib.Path, written: pathlib.Path) -> None:
        before = {}
        for path in source.glob("*.safetensors"):
            before |= safetensors.numpy.load_file(path)
        after = safetensors.numpy.load_file(written / "model.safetensors")
        same = before.keys() == after.keys() and all(
            numpy.array_equal(before[key], after[key]) for key in before
        )
        self.check(f"{name}: the tensors that transformers saved", same)

    def gpt2(self, source: pathlib.Path) -> None:
        name = source.stem
        golden = json.loads(source.with_suffix(".json").read_text())
        ids = golden["ids"]
        expected = own_logits(source, ids)
        one = convert(source, self.work / name, "--to", "safetensors")
        self.equal(f"{name}: folder", own_logits(one, ids), expected)
        found = transformers_logits(one, ids)[golden["positions"]]
        self.near(f"{name}: transformers on it", found, numpy.array(golden["logits"]), 1e-8)
        two = convert(one, self.work / f"{name}.gguf")
        self.equal(f"{name}: GGUF made from it", own_logits(two, ids), expected)
        before = {tensor.name: tensor.data for tensor in gguf.GGUFReader(source).tensors}
        after = {tensor.name: tensor.data for tensor in gguf.GGUFReader(two).tensors}
        same = before.keys() == after.keys() and all(
            numpy.array_equal(before[key], after[key]) for key in before
        )
        self.check(f"{name}: the tensors of the first GGUF", same)
        self.llama_cpp(name, two, ids, expected)
        if name == "tanh_tied":
            self.nano_gpt(source, ids, expected)

    def nano_gpt(self, source: pathlib.Path, ids: list[int], expected: numpy.ndarray) -> None:
        """nanoGPT has nn.Linear where transformers has Conv1D; otherwise their models are the same, but for the GELU."""
        folder = convert(source, self.work / "nano_gpt", "--to", "pth")
        saved = torch.load(folder / "ckpt.pt", weights_only=True)
        sizes = saved["model_args"]
        config = transformers.GPT2Config(
            n_layer=sizes["n_layer"],
            n_head=sizes["n_head"],
            n_embd=sizes["n_embd"],
            n_positions=sizes["block_size"],
            vocab_size=sizes["vocab_size"],
            activation_function=saved["config"]["activation_function"],
        )
        model = transformers.GPT2LMHeadModel(config).double().eval()
        turned = ("c_attn.weight", "c_proj.weight", "c_fc.weight")
        state = {
            name: (tensor.T if name.endswith(turned) else tensor).double()
            for name, tensor in saved["model"].items()
        }
        model.load_state_dict(state)
        with torch.no_grad():
            found = model(torch.tensor([ids])).logits[0].numpy()
        self.near("nanoGPT's checkpoint in torch", found, expected, TOLERANCE)

    def ernie_without_biases(self) -> None:
        """The golden one has biases, which llama.cpp does not know."""
        config = transformers.AutoConfig.from_pretrained(GOLDEN / "hugging_face" / "ernie4_5")
        config.use_bias = False
        torch.manual_seed(8)
        model = transformers.Ernie4_5ForCausalLM(config).float()
        with torch.no_grad():
            for weight in model.parameters():
                weight.normal_(float(weight.dim() == 1), 0.3)
        source = self.work / "saved" / "ernie_without_biases"
        model.save_pretrained(source)
        self.folder(source)

    def tokens(self, name: str, source: pathlib.Path, reference: tokenizers.Tokenizer) -> None:
        """`reference` has the tokenizer as it was released."""
        texts = list(TEXTS)
        english = limpid_program.SHARED / "text" / "wiki.test.raw"
        if english.exists():
            texts.append(english.read_text(encoding="utf-8")[:50_000])
        expected = [reference.encode(text, add_special_tokens=False).ids for text in texts]
        one = convert(source, self.work / f"{name}.gguf")
        with llama_cpp_oracle.opened(one, 64, 1) as model:
            found = [model.tokenize(text, False) for text in texts]
        self.check(f"{name}: llama.cpp's tokens of the GGUF", found == expected)
        for number, path in enumerate((source, one)):
            folder = convert(path, self.work / f"{name}.{number}", "--to", "safetensors")
            theirs = transformers.AutoTokenizer.from_pretrained(folder)
            found = [theirs(text, add_special_tokens=False).input_ids for text in texts]
            self.check(f"{name}: transformers' tokens of folder {number}", found == expected)
            config = transformers.GenerationConfig.from_pretrained(folder)
            print(f"     {name}: stops {config.eos_token_id}")

    def released_tokenizers(self) -> None:
        shared = limpid_program.SHARED / "tokenizers"
        if not shared.exists():
            print("skipped: needs ../shared/data/tokenizers")
            return
        vocabulary = tiny_models.LLAMA3_VOCABULARY
        meta = tiny_models.meta_llama(vocabulary)
        source = tiny_models.write_meta_folder(self.work / "meta", meta)
        (source / "tokenizer.model").write_bytes((shared / "llama3_tokenizer.model").read_bytes())
        released = tokenizers.Tokenizer.from_file(str(shared / "llama3.1_tokenizer.json"))
        self.tokens("llama3_ranks", source, released)
        source = tiny_models.write_llama_folder(self.work / "llama2", 32_000)
        (source / "tokenizer.model").write_bytes((shared / "llama2_tokenizer.model").read_bytes())
        released = tokenizers.Tokenizer.from_file(str(shared / "llama2_tokenizer.json"))
        self.tokens("llama2_scores", source, released)


def main() -> int:
    with tempfile.TemporaryDirectory() as folder:
        work = Families(pathlib.Path(folder))
        for source in sorted(GOLDEN.glob("hugging_face/*/")):
            if source.name != "partial_rotary":  # transformers and llama.cpp turn whole heads
                work.folder(source)
        for source in sorted(GOLDEN.glob("gpt2/*.gguf")):
            work.gpt2(source)
        work.ernie_without_biases()
        work.released_tokenizers()
    for problem in work.problems:
        print(f"error: {problem}", file=sys.stderr)
    return 1 if work.problems else 0


if __name__ == "__main__":
    sys.exit(main())
