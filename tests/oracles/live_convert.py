"""What `limpid convert` writes, opened by those for whom it is meant: transformers, safetensors, gguf, llama.cpp, torch.

MiniMind2-Small goes from its Hugging Face folder to GGUF, to a safetensors folder and to Meta's layout, and from each of
these on to the others. Limpid's logits must be equal with `==` whatever the layout; those of transformers and llama.cpp
agree with them within what f32 allows. Tensor bytes are compared as the packages read them.

    live_convert.py
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
import torch
import transformers

SOURCE = limpid_program.SHARED / "models" / "minimind2-small"
IDS = [1, 733, 5041, 266, 3910, 312, 88, 2, 1, 4000, 123, 77, 6000, 5, 901, 345]
TOLERANCE = 1e-5  # root mean square, of the logits' standard deviation
N_HEADS, N_KV_HEADS, HEAD_DIM = 8, 2, 64


def own_logits(path: pathlib.Path) -> numpy.ndarray:
    return limpid_program.logits(path, IDS, "-c", 64, "-ctk", "f32", "-ctv", "f32")


def transformers_logits(folder: pathlib.Path) -> numpy.ndarray:
    model = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
    with torch.no_grad():
        return model(torch.tensor([IDS])).logits[0].numpy()


def llama_cpp_logits(path: pathlib.Path) -> numpy.ndarray:
    with llama_cpp_oracle.opened(path, 64, 1, "f32") as model:
        return model.logits(IDS)


def halves_to_pairs(rows: numpy.ndarray, n_heads: int) -> numpy.ndarray:
    return rows.reshape(n_heads, 2, HEAD_DIM // 2, -1).swapaxes(1, 2).reshape(rows.shape)


class Convert:
    def __init__(self, folder: pathlib.Path) -> None:
        self.folder = folder
        self.problems: list[str] = []

    def check(self, what: str, passed: bool, detail: str = "") -> None:
        print(f"{'ok  ' if passed else 'FAIL'} {what} {detail}", flush=True)
        if not passed:
            self.problems.append(what)

    def equal(self, what: str, a: numpy.ndarray, b: numpy.ndarray) -> None:
        self.check(what, a.shape == b.shape and bool((a == b).all()))

    def near(self, what: str, found: numpy.ndarray, expected: numpy.ndarray, limit: float) -> None:
        error = float(numpy.sqrt(numpy.mean((found - expected) ** 2)) / expected.std())
        self.check(what, error < limit, f"{error:.2e}")

    def convert(self, source: pathlib.Path, name: str, *options: object) -> pathlib.Path:
        target = self.folder / name
        limpid_program.run("convert", source, target, *options)
        return target

    def run(self) -> None:
        expected = own_logits(SOURCE)
        reference = transformers_logits(SOURCE)
        self.near("Limpid beside transformers, as downloaded", expected, reference, TOLERANCE)
        one = self.convert(SOURCE, "hf.gguf")
        two = self.convert(one, "gguf.hf", "--to", "safetensors")
        three = self.convert(two, "hf.meta", "--to", "pth")
        four = self.convert(three, "meta.gguf")
        five = self.convert(three, "meta.hf", "--to", "safetensors")
        for path in (one, two, three, four, five):
            self.equal(f"logits of {path.name}", own_logits(path), expected)
        for path in (two, five):
            self.equal(f"transformers on {path.name}", transformers_logits(path), reference)
        # llama.cpp rounds activations to the type of the weights, to 8 bits where these are quantised.
        for path in (one, four):
            self.near(f"llama.cpp on {path.name}", llama_cpp_logits(path), expected, 2e-3)
        self.near(
            "llama.cpp in f32",
            llama_cpp_logits(self.convert(one, "f32.gguf", "--dtype", "f32")),
            expected,
            2e-3,
        )
        self.compare_bytes(one, two, three)
        self.compare_tokenizers(one)
        if limpid_program.SMOLLM2.exists():
            self.compare_written_tokenizer(limpid_program.SMOLLM2)
        quantised = self.convert(SOURCE, "q8.gguf", "--dtype", "q8_0")
        self.near("llama.cpp on q8_0", llama_cpp_logits(quantised), own_logits(quantised), 0.05)

    def compare_bytes(self, one: pathlib.Path, two: pathlib.Path, three: pathlib.Path) -> None:
        original = safetensors.numpy.load_file(SOURCE / "model.safetensors")
        again = safetensors.numpy.load_file(two / "model.safetensors")
        norms = {name for name, value in original.items() if value.ndim == 1}
        same = original.keys() == again.keys() and all(
            (original[name].astype("f4") == again[name].astype("f4")).all() for name in original
        )
        self.check("safetensors holds the same values under the same names", same)
        self.check("only norms changed type", {n for n in again if again[n].dtype == "f4"} == norms)
        tensors = {tensor.name: tensor for tensor in gguf.GGUFReader(one).tensors}
        for theirs, ours, n_heads in (("q", "q", N_HEADS), ("k", "k", N_KV_HEADS)):
            rows = original[f"model.layers.3.self_attn.{theirs}_proj.weight"]
            self.equal(
                f"rows of {ours} as llama.cpp wants them",
                tensors[f"blk.3.attn_{ours}.weight"].data,
                halves_to_pairs(rows, n_heads),
            )
        state = torch.load(three / "consolidated.00.pth", weights_only=True)
        self.equal(
            "torch reads the .pth",
            state["layers.2.feed_forward.w2.weight"].numpy(),
            original["model.layers.2.mlp.down_proj.weight"],
        )
        self.check(
            "the tied head shares the embedding's storage",
            state["output.weight"].data_ptr() == state["tok_embeddings.weight"].data_ptr(),
        )

    def compare_written_tokenizer(self, source: pathlib.Path) -> None:
        """tokenizer.json, made from what a GGUF file says."""
        folder = self.convert(source, "smollm2", "--to", "safetensors", "--dtype", "bf16")
        text = limpid_program.shared("text", "wiki.test.raw").read_text(encoding="utf-8")[:200_000]
        text += "\n<|im_start|>user\nHi 123 \u4f60\u597d!  \t x<|im_end|>"
        found = transformers.AutoTokenizer.from_pretrained(folder)(text, add_special_tokens=False)
        options = ("--no-bos", "--special")
        out = limpid_program.run("tokenize", "-m", source, *options, stdin=text.encode())
        self.check(
            "transformers' tokens with the tokenizer written", found.input_ids == json.loads(out)
        )

    def compare_tokenizers(self, path: pathlib.Path) -> None:
        text = "The capital of France is Paris. 12345 <|im_start|>user\n\u4f60\u597d!"
        expected = transformers.AutoTokenizer.from_pretrained(SOURCE)(
            text, add_special_tokens=False
        ).input_ids
        out = limpid_program.run(
            "tokenize", "-m", path, "--no-bos", "--special", stdin=text.encode()
        )
        self.check("Limpid's tokens of the GGUF", json.loads(out) == expected)
        fields = {name: field.contents() for name, field in gguf.GGUFReader(path).fields.items()}
        template = json.loads((SOURCE / "tokenizer_config.json").read_text()).get("chat_template")
        if template is not None:
            self.check("the chat template", fields.get("tokenizer.chat_template") == template)
        with llama_cpp_oracle.opened(path, 64, 1) as model:
            plain = "The capital of France is Paris."
            ids = transformers.AutoTokenizer.from_pretrained(SOURCE)(
                plain, add_special_tokens=False
            ).input_ids
            self.check("llama.cpp's tokens of the GGUF", model.tokenize(plain, False) == ids)


def main() -> int:
    if not SOURCE.exists():
        print("skipped: needs ../shared/data/models/minimind2-small")
        return limpid_program.EXIT_SKIPPED
    with tempfile.TemporaryDirectory() as folder:
        work = Convert(pathlib.Path(folder))
        work.run()
    for problem in work.problems:
        print(f"error: {problem}", file=sys.stderr)
    return 1 if work.problems else 0


if __name__ == "__main__":
    sys.exit(main())
