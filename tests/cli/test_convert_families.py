"""`limpid convert` for every architecture and every order of a tokenizer's merges, as the light packages see the result.

tests/oracles/live_convert_families.py holds the same against transformers and llama.cpp.
"""

import io
import json
import pathlib
import pickle
import subprocess
import tempfile
import unittest
import zipfile

import gguf
import limpid_program
import numpy
import safetensors.numpy
import tiktoken
import tiktoken.load
import tiny_models
import tokenizers

GOLDEN = limpid_program.ROOT / "tests" / "data" / "golden"
NO_TOKENIZER = "the model has no tokenizer, so none was written"
IDS = [1, 5, 9, 40, 3, 7, 22, 11, 60, 0, 17]
LLAMA3_PATTERN = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}|"
    r" ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
TEXTS = [
    "The capital of France is Paris.",
    "  two spaces, a\ttab\n\n\nand lines; it's 1234567 o'clock, WE'LL see",
    "na\u00efve caf\u00e9 \u4f60\u597d\u4e16\u754c \u0645\u0631\u062d\u0628\u0627 \U0001f600\U0001f468\u200d\U0001f469",
    " leading", "trailing ", " ", "", "aaaaaaaaaaaaaaaaaaaaaaa", "\u00a0\u2003x\r\n y",
]  # fmt: skip


def tensors_of(path: pathlib.Path) -> dict[str, numpy.ndarray]:
    return {tensor.name: tensor.data for tensor in gguf.GGUFReader(path).tensors}


def write_letters(folder: pathlib.Path) -> None:
    """A tokenizer of the 94 visible characters of ASCII, without merges."""
    vocab = {chr(c): i for i, c in enumerate(range(33, 127))}
    json_file = {"version": "1.0", "model": {"type": "BPE", "vocab": vocab, "merges": []}}
    json_file["pre_tokenizer"] = {"type": "ByteLevel", "add_prefix_space": False}
    json_file["decoder"] = {"type": "ByteLevel"}
    (folder / "tokenizer.json").write_text(json.dumps(json_file))


class Families(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def convert(self, source: pathlib.Path, name: str, *options: object) -> pathlib.Path:
        """What it said about the model is then in self.remarks."""
        target = self.folder / name
        command = [limpid_program.PROGRAM, "convert", source, target, *options]
        done = subprocess.run(list(map(str, command)), capture_output=True, timeout=120)
        self.assertEqual(done.returncode, 0, done.stderr.decode())
        lines = done.stderr.decode().splitlines()[:-1]
        self.remarks = [line for line in lines if line != NO_TOKENIZER]
        return target

    def refuse(self, source: pathlib.Path, *options: object) -> str:
        command = [limpid_program.PROGRAM, "convert", source, self.folder / "refused", *options]
        done = subprocess.run(list(map(str, command)), capture_output=True, timeout=120)
        self.assertEqual(done.returncode, 1)
        self.assertFalse((self.folder / "refused").exists())
        return done.stderr.decode()

    def logits(self, path: pathlib.Path, *options: object) -> numpy.ndarray:
        return limpid_program.logits(path, IDS, "-ctk", "f32", "-ctv", "f32", *options)

    def assert_same_logits(self, path: pathlib.Path, expected: numpy.ndarray) -> None:
        self.assertTrue(numpy.array_equal(self.logits(path), expected), path.name)

    def assert_same_tensors(self, a: dict, b: dict) -> None:
        self.assertEqual(a.keys(), b.keys())
        for name, value in a.items():
            self.assertEqual((value.dtype, value.shape), (b[name].dtype, b[name].shape), name)
            self.assertTrue(numpy.array_equal(value, b[name]), name)


class HuggingFace(Families):
    def test_folders_become_gguf_and_folders_again(self):
        for source in sorted(GOLDEN.glob("hugging_face/*/")):
            if source.name == "partial_rotary":
                continue
            with self.subTest(source.name):
                expected = self.logits(source)
                one = self.convert(source, f"{source.name}.gguf")
                self.assert_same_logits(one, expected)
                two = self.convert(one, source.name, "--to", "safetensors")
                self.assert_same_logits(two, expected)
                before = {}
                for path in source.glob("*.safetensors"):
                    before |= safetensors.numpy.load_file(path)
                self.assert_same_tensors(
                    before, safetensors.numpy.load_file(two / "model.safetensors")
                )
                given = json.loads((source / "config.json").read_text())
                written = json.loads((two / "config.json").read_text())
                if (
                    source.name == "mistral"
                ):  # which is a Llama once its window is as wide as its context
                    given |= {"architectures": ["LlamaForCausalLM"], "model_type": "llama"}
                for key in ("architectures", "model_type", "head_dim", "hidden_size"):
                    self.assertEqual(written[key], given.get(key, written[key]), key)

    def embedding_model(self, pooling: dict) -> pathlib.Path:
        """A folder as sentence-transformers saves it: without an output head and its prefix "model."."""
        source = GOLDEN / "hugging_face" / "qwen3"
        folder = self.folder / "embedding"
        (folder / "1_Pooling").mkdir(parents=True, exist_ok=True)
        config = json.loads((source / "config.json").read_text())
        (folder / "config.json").write_text(json.dumps(config | {"tie_word_embeddings": True}))
        tensors = safetensors.numpy.load_file(source / "model.safetensors")
        tensors.pop("lm_head.weight")
        safetensors.numpy.save_file(
            {name.removeprefix("model."): value for name, value in tensors.items()},
            folder / "model.safetensors",
        )
        (folder / "1_Pooling" / "config.json").write_text(json.dumps(pooling))
        return folder

    def test_an_embedding_model_keeps_its_pooling(self):
        flags = {
            f"pooling_mode_{name}": False for name in ("mean_tokens", "cls_token", "max_tokens")
        }
        for pooling, number in (
            ({**flags, "pooling_mode_lasttoken": True, "word_embedding_dimension": 32}, 3),
            ({**flags, "pooling_mode_mean_tokens": True}, 1),
            ({"pooling_mode": "cls", "include_prompt": True}, 2),
        ):
            source = self.embedding_model(pooling)
            expected = self.logits(source)
            one = self.convert(source, "embedding.gguf")
            key = gguf.GGUFReader(one).get_field("qwen3.pooling_type")
            self.assertEqual(key.contents(), number)
            self.assert_same_logits(one, expected)
            two = self.convert(one, f"folder{number}", "--to", "safetensors")
            self.assert_same_logits(two, expected)
            again = self.convert(two, "again.gguf")
            self.assertEqual(again.read_bytes(), one.read_bytes())
            modules = json.loads((two / "modules.json").read_text())
            self.assertEqual([m["path"] for m in modules], ["", "1_Pooling", "2_Normalize"])

    def test_pooling_that_is_not_implemented_is_refused(self):
        gguf_wanted = ("--to", "gguf")
        source = self.embedding_model({"pooling_mode_max_tokens": True})
        self.assertIn(
            "1_Pooling/config.json: pooling by `max_tokens`", self.refuse(source, *gguf_wanted)
        )
        source = self.embedding_model({"pooling_mode": "mean"})
        (source / "2_Dense").mkdir()
        self.assertIn("2_Dense", self.refuse(source, *gguf_wanted))

    def test_biases_that_llama_cpp_does_not_know_are_told(self):
        for name, n_remarks in (("ernie4_5", 1), ("qwen2", 0), ("llama_biases", 0), ("qwen3", 0)):
            self.convert(GOLDEN / "hugging_face" / name, f"{name}.gguf")
            self.assertEqual(len(self.remarks), n_remarks, self.remarks)
            self.assertTrue(all("biases" in remark for remark in self.remarks))

    def test_heads_that_turn_in_part(self):
        source = GOLDEN / "hugging_face" / "partial_rotary"
        expected = self.logits(source)
        one = self.convert(source, "partial.gguf")
        self.assertIn("llama.rope.dimension_count", self.remarks[0])
        # From pairs, the elements of a head that do not turn are summed in another order.
        error = numpy.abs(self.logits(one) - expected).max() / expected.std()
        self.assertLess(error, 1e-5)
        self.assertIn("rotates 4 of the 8", self.refuse(one, "--to", "safetensors"))
        rows = tensors_of(one)["blk.1.attn_q.weight"]
        before = safetensors.numpy.load_file(source / "model.safetensors")
        order = [0, 2, 1, 3, 4, 5, 6, 7]  # the first four in pairs
        query = before["model.layers.1.self_attn.q_proj.weight"].reshape(4, 8, -1)
        self.assertTrue(numpy.array_equal(rows, query[:, order].reshape(rows.shape)))

    def test_biases_of_some_projections_get_zeros_beside_them(self):
        reader = gguf.GGUFReader(GOLDEN / "llama" / "biases.gguf")
        source = self.folder / "some.gguf"
        writer = gguf.GGUFWriter(source, "llama")
        for name, field in reader.fields.items():
            if name.startswith("llama."):
                writer.add_key_value(name, field.contents(), field.types[0])
        for tensor in reader.tensors:
            if not tensor.name.endswith(("attn_output.bias", "ffn_up.bias", "1.attn_q.bias")):
                writer.add_tensor(tensor.name, numpy.array(tensor.data))
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.write_tensors_to_file()
        writer.close()
        folder = self.convert(source, "some", "--to", "safetensors")
        self.assert_same_logits(folder, self.logits(source))
        written = safetensors.numpy.load_file(folder / "model.safetensors")
        self.assertFalse(written["model.layers.1.self_attn.o_proj.bias"].any())
        self.assertFalse(written["model.layers.1.self_attn.q_proj.bias"].any())
        self.assertTrue(written["model.layers.0.self_attn.q_proj.bias"].any())

    def test_a_scaling_that_was_given_is_the_one_written(self):
        source = GOLDEN / "llama" / "rope_llama3.gguf"
        self.assertIn("--rope-scaling", self.refuse(source, "--to", "safetensors"))
        rule = ("--rope-scaling", "llama3:8,1,4,32")
        named = self.convert(source, "named", "--to", "safetensors", *rule)
        self.assert_same_logits(named, self.logits(source))
        for scaling in ("none", "linear:4", "llama3:8,1,4,64"):
            given = ("--rope-scaling", scaling)
            expected = self.logits(source, *given)
            self.assertFalse(numpy.array_equal(expected, self.logits(source)))
            path = self.convert(source, f"{scaling}.gguf", *given)
            self.assert_same_logits(path, expected)
            keys = gguf.GGUFReader(path).fields
            self.assertNotIn("llama.rope.scaling.overridden", keys)
            has_table = "rope_freqs.weight" in tensors_of(path)
            self.assertEqual(has_table, scaling.startswith("llama3"))


class Pickled(pickle.Unpickler):
    """What torch.save wrote, without torch: a tensor is (storage, sizes, strides)."""

    def __init__(self, path: pathlib.Path):
        with zipfile.ZipFile(path) as archive:
            name = next(name for name in archive.namelist() if name.endswith("/data.pkl"))
            super().__init__(io.BytesIO(archive.read(name)))

    def find_class(self, module: str, name: str) -> object:
        if name == "OrderedDict":
            return dict
        if name == "_rebuild_tensor_v2":
            return lambda storage, offset, sizes, strides, *rest: (storage, sizes, strides)
        return name

    def persistent_load(self, pid: tuple) -> tuple:
        return pid


class Gpt2(Families):
    def test_gguf_becomes_a_folder_and_gguf_again(self):
        told = {
            "erf_untied": "gpt2.hidden_activation",
            "relu_odd_sizes": "gpt2.hidden_activation",
            "unscaled_silu": "gpt2.attention.scale",
            "scaled_by_layer": "gpt2.attention.scale_by_inverse_layer",
        }
        for source in sorted(GOLDEN.glob("gpt2/*.gguf")):
            with self.subTest(source.stem):
                expected = self.logits(source)
                one = self.convert(source, source.stem, "--to", "safetensors")
                self.assert_same_logits(one, expected)
                tensors = safetensors.numpy.load_file(one / "model.safetensors")
                width = tensors["wte.weight"].shape[1]
                self.assertEqual(tensors["h.0.attn.c_attn.weight"].shape, (width, 3 * width))
                before = tensors_of(source)
                up = before["blk.1.ffn_up.weight"]
                self.assertTrue(numpy.array_equal(tensors["h.1.mlp.c_fc.weight"], up.T))
                config = json.loads((one / "config.json").read_text())
                self.assertEqual(config["architectures"], ["GPT2LMHeadModel"])
                two = self.convert(one, f"{source.stem}.gguf")
                # One line for each key that only Limpid reads; none for a GPT-2 as OpenAI's.
                self.assertEqual(bool(self.remarks), source.stem in told, self.remarks)
                self.assertIn(told.get(source.stem, ""), "\n".join(self.remarks))
                self.assert_same_logits(two, expected)
                self.assert_same_tensors(before, tensors_of(two))

    def test_nano_gpt_gets_its_checkpoint(self):
        source = GOLDEN / "gpt2" / "tanh_tied.gguf"
        folder = self.convert(source, "nano", "--to", "pth")
        self.assertIn("nanoGPT computes the exact GELU", "\n".join(self.remarks))
        expected = self.logits(source)
        for path in (folder, folder / "ckpt.pt"):
            self.assert_same_logits(path, expected)
        sizes = json.loads(limpid_program.run("inspect", source, "--json"))["model"]
        state = Pickled(folder / "ckpt.pt").load()
        self.assertEqual(
            state["model_args"],
            {
                "n_layer": sizes["n_layers"],
                "n_head": sizes["n_heads"],
                "n_embd": sizes["d_model"],
                "block_size": sizes["n_ctx_train"],
                "bias": True,
                "vocab_size": sizes["vocab_size"],
                "dropout": 0.0,
            },
        )
        self.assertEqual(state["config"], {"activation_function": "gelu_new"})
        width = sizes["d_model"]
        self.assertEqual(
            state["model"]["transformer.h.0.attn.c_attn.weight"][1:3],
            ((3 * width, width), (width, 1)),
        )
        names = ("transformer.wte.weight", "lm_head.weight")
        self.assertEqual(*(state["model"][name][0] for name in names))
        self.assert_same_tensors(tensors_of(source), tensors_of(self.convert(folder, "again.gguf")))
        for name, what in {
            "erf_untied": "output matrix",
            "relu_odd_sizes": "norms",
            "scaled_by_layer": "scale of attention",
        }.items():
            err = self.refuse(GOLDEN / "gpt2" / f"{name}.gguf", "--to", "pth")
            self.assertIn(f"nanoGPT cannot express this model's {what}", err)

    def test_quantised_matrices_are_turned_as_f16(self):
        source = self.convert(GOLDEN / "gpt2" / "tanh_tied.gguf", "q8.gguf", "--dtype", "q8_0")
        folder = self.convert(source, "q8", "--to", "safetensors")
        tensors = safetensors.numpy.load_file(folder / "model.safetensors")
        raw = {tensor.name: tensor for tensor in gguf.GGUFReader(source).tensors}
        up = raw["blk.1.ffn_up.weight"]
        values = gguf.dequantize(up.data, up.tensor_type).astype(numpy.float16)
        self.assertEqual(up.tensor_type.name, "Q8_0")
        self.assertTrue(numpy.array_equal(tensors["h.1.mlp.c_fc.weight"], values.T))

    def test_state_dictionaries_become_what_others_have(self):
        """Without biases, as nanoGPT may be, and with Q, K and V apart, as minGPT was."""
        config = json.dumps({"n_head": 2, "activation_function": "gelu_new"})
        random = numpy.random.default_rng(11)
        blocks = {"attn.c_attn": (48, 16), "attn.c_proj": (16, 16), "mlp.c_fc": (64, 16)}
        nano = {f"h.0.{name}.weight": shape for name, shape in blocks.items()}
        nano |= {"h.0.mlp.c_proj.weight": (16, 64), "h.0.ln_1.weight": (16,)}
        nano |= {"wte.weight": (61, 16), "wpe.weight": (32, 16), "lm_head.weight": (61, 16)}
        nano |= {"h.0.ln_2.weight": (16,), "ln_f.weight": (16,)}
        mini = {"tok_emb.weight": (61, 16), "pos_emb.weight": (32, 16), "head.weight": (61, 16)}
        for name in ("query", "key", "value", "proj"):
            mini |= {f"blocks.0.attn.{name}.weight": (16, 16), f"blocks.0.attn.{name}.bias": (16,)}
        for name, rows, columns in (("mlp.0", 64, 16), ("mlp.2", 16, 64)):
            mini |= {f"blocks.0.{name}.weight": (rows, columns), f"blocks.0.{name}.bias": (rows,)}
        for name in ("blocks.0.ln1", "blocks.0.ln2", "ln_f"):
            mini |= {f"{name}.weight": (16,), f"{name}.bias": (16,)}
        for name, shapes in (("nano", nano), ("mini", mini)):
            source = self.folder / f"{name}.safetensors"
            values = {
                key: random.normal(0, 0.4, shape).astype(numpy.float32)
                for key, shape in shapes.items()
            }
            safetensors.numpy.save_file(values, source)
            given = ("--config", config)
            expected = self.logits(source, *given)
            folder = self.convert(source, name, "--to", "safetensors", *given)
            self.assert_same_logits(folder, expected)
            path = self.convert(source, f"{name}.gguf", *given)
            self.assert_same_logits(path, expected)
            tensors = safetensors.numpy.load_file(folder / "model.safetensors")
            self.assertEqual(len(tensors), 12 + 2 + 2 + 1)
            bias = tensors["h.0.attn.c_attn.bias"]
            self.assertEqual((bias.shape, bool(bias.any())), ((48,), name == "mini"))
            if name == "mini":
                key = values["blocks.0.attn.key.weight"]
                joined = tensors["h.0.attn.c_attn.weight"]
                self.assertTrue(numpy.array_equal(joined[:, 16:32], key.T))


class Tokenizers(Families):
    def ids(self, model: pathlib.Path, texts: list[str]) -> list[list[int]]:
        lines = "".join(json.dumps(text) + "\n" for text in texts)
        options = ("--no-bos", "--special", "--jsonl")
        out = limpid_program.run("tokenize", "-m", model, *options, stdin=lines.encode())
        return [json.loads(line) for line in out.splitlines()]

    def texts(self) -> list[str]:
        texts = TEXTS + ["x" + " " * n + "y" for n in range(40)]
        english = limpid_program.SHARED / "text" / "wiki.test.raw"
        if english.exists():
            texts.append(english.read_text(encoding="utf-8")[:40_000])
        return texts

    def test_sentence_piece_of_a_gguf_becomes_a_file_that_tokenizers_reads(self):
        source = tiny_models.write_llama_folder(self.folder / "hf", 32_000)
        model = limpid_program.shared("tokenizers", "llama2_tokenizer.model")
        one = self.convert(source, "one.gguf", "--tokenizer", model)
        self.assertEqual(gguf.GGUFReader(one).fields["tokenizer.ggml.model"].contents(), "llama")
        two = self.convert(one, "two", "--to", "safetensors")
        theirs = tokenizers.Tokenizer.from_file(str(two / "tokenizer.json"))
        again = self.convert(two, "again.gguf")  # a list of merges becomes scores
        texts = self.texts()
        expected = self.ids(one, texts)
        for text, ids in zip(texts, expected, strict=True):
            self.assertEqual(theirs.encode(text, add_special_tokens=False).ids, ids)
            self.assertEqual(theirs.decode(ids), text)
        self.assertEqual(self.ids(two, texts), expected)
        self.assertEqual(self.ids(again, texts), expected)
        self.assertEqual(theirs.encode("a</s>b").ids[:1], [1])

    def test_tiktoken_ranks_become_merges(self):
        """What the ranks of Llama 3 say, in GGUF and in tokenizer.json, against tiktoken itself."""
        model = limpid_program.shared("tokenizers", "llama3_tokenizer.model")
        tensors = tiny_models.meta_llama(tiny_models.LLAMA3_VOCABULARY, 4)
        source = tiny_models.write_meta_folder(self.folder / "meta", tensors)
        (source / "tokenizer.model").write_bytes(model.read_bytes())
        ranks = tiktoken.load.load_tiktoken_bpe(str(model))
        reference = tiktoken.Encoding(
            "llama3", pat_str=LLAMA3_PATTERN, mergeable_ranks=ranks, special_tokens={}
        )
        one = self.convert(source, "one.gguf")
        two = self.convert(source, "two", "--to", "safetensors")
        theirs = tokenizers.Tokenizer.from_file(str(two / "tokenizer.json"))
        texts = self.texts()
        expected = [reference.encode(text) for text in texts]
        for text, ids in zip(texts, expected, strict=True):
            self.assertEqual(theirs.encode(text, add_special_tokens=False).ids, ids)
            self.assertEqual(theirs.decode(ids), text)
        self.assertEqual(self.ids(one, texts), expected)
        released = limpid_program.shared("tokenizers", "llama3.1_tokenizer.json")
        merges = json.loads(released.read_text())["model"]["merges"]
        merges = [merge if isinstance(merge, str) else " ".join(merge) for merge in merges]
        written = json.loads((two / "tokenizer.json").read_text())["model"]["merges"]
        self.assertEqual(written, merges)
        special = "<|begin_of_text|><|start_header_id|>user<|end_header_id|>\n\nHi<|eot_id|>"
        found = theirs.encode(special, add_special_tokens=False).ids
        self.assertEqual([found], self.ids(source, [special]))
        self.assertEqual(theirs.encode("x").ids[0], 128_000)

    def test_names_that_transformers_does_not_read_get_a_tokenizer_json(self):
        source = tiny_models.write_llama_folder(self.folder / "hf", 257)
        alphabet = sorted(tokenizers.pre_tokenizers.ByteLevel.alphabet())
        vocab = {letter: i for i, letter in enumerate([*alphabet, "ab"])}
        for names, has_json in (
            (("vocab.json", "merges.txt"), False),
            (("encoder.json", "vocab.bpe"), True),
        ):
            given = self.folder / names[0].removesuffix(".json")
            given.mkdir()
            (given / names[0]).write_text(json.dumps(vocab))
            (given / names[1]).write_text("#version: 0.2\na b\n")
            options = ("--to", "safetensors", "--tokenizer", given)
            folder = self.convert(source, f"{given.name}.hf", *options)
            self.assertTrue((folder / names[1]).exists())
            self.assertEqual((folder / "tokenizer.json").exists(), has_json)
        theirs = tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json"))
        self.assertEqual(theirs.encode("ab b").ids, [256, vocab["\u0120"], vocab["b"]])

    def test_stops_that_only_a_configuration_names(self):
        """generation_config.json may end answers at any token; GGUF has two places for such."""
        source = tiny_models.write_llama_folder(self.folder / "hf", 300)
        write_letters(source)
        for stops in ([5], [5, 9], [5, 9, 13]):
            (source / "generation_config.json").write_text(json.dumps({"eos_token_id": stops}))
            path = self.convert(source, f"{len(stops)}.gguf")
            fields = gguf.GGUFReader(path).fields
            names = ("tokenizer.ggml.eot_token_id", "tokenizer.ggml.eom_token_id")
            found = [fields[name].contents() for name in names if name in fields]
            self.assertEqual(found, stops[:2])
            self.assertEqual(len(self.remarks), len(stops) - len(found), self.remarks)

    def test_more_tokens_than_rows_are_refused(self):
        """No program opens a GGUF file with more tokens than rows of the embedding."""
        source = tiny_models.write_llama_folder(self.folder / "hf", 93)
        write_letters(source)
        self.assertIn(
            "has 94 tokens, but the embedding has 93 rows", self.refuse(source, "--to", "gguf")
        )


if __name__ == "__main__":
    limpid_program.main()
