"""What stands in place of what a file says: --config, --rope-scaling, --tokenizer, on a tiny nanoGPT."""

import json
import pathlib
import struct
import subprocess
import tempfile
import unittest

import limpid_program
import numpy
import safetensors.numpy

WIDTH = 16
VOCAB_SIZE = 262
CONFIG = json.dumps({"n_head": 2, "activation_function": "gelu_new"})
TEXT = "the tree, the test, the tent. " * 12
ROTARY = limpid_program.ROOT / "tests" / "data" / "cli" / "tiny_chat.gguf"


def nano_gpt() -> dict[str, numpy.ndarray]:
    """The state dictionary of one block, with matrices as torch's Linear keeps them."""
    random = numpy.random.default_rng(7)

    def matrix(rows: int, columns: int) -> numpy.ndarray:
        return random.normal(0, 0.3, (rows, columns)).astype(numpy.float32)

    block = "transformer.h.0."
    shapes = {"attn.c_attn": 3, "attn.c_proj": 1, "mlp.c_fc": 4}
    tensors = {
        "transformer.wte.weight": matrix(VOCAB_SIZE, WIDTH),
        "transformer.wpe.weight": matrix(64, WIDTH),
        "lm_head.weight": matrix(VOCAB_SIZE, WIDTH),
        block + "mlp.c_proj.weight": matrix(WIDTH, 4 * WIDTH),
        block + "attn.bias": numpy.ones((1, 1, 64, 64), numpy.float32),
    }
    for name, times in shapes.items():
        tensors[f"{block}{name}.weight"] = matrix(times * WIDTH, WIDTH)
    for name in (block + "ln_1", block + "ln_2", "transformer.ln_f"):
        tensors[name + ".weight"] = 1 + matrix(1, WIDTH)[0]
    return tensors


def llama2c_tokenizer() -> bytes:
    pieces = ["<unk>", "\n<s>\n", "\n</s>\n"]
    pieces += [f"<0x{byte:02X}>" for byte in range(256)] + [" t", "he", "te"]
    assert len(pieces) == VOCAB_SIZE
    entries = [
        struct.pack("<fi", -i, len(piece)) + piece.encode() for i, piece in enumerate(pieces)
    ]
    return struct.pack("<i", 7) + b"".join(entries)


def limpid(*arguments: object) -> tuple[int, str, str]:
    """(exit code, standard output, standard error)"""
    command = [str(limpid_program.PROGRAM), *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, timeout=120)
    return done.returncode, done.stdout.decode(), done.stderr.decode()


class Overrides(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.model = self.folder / "nano.safetensors"
        safetensors.numpy.save_file(nano_gpt(), self.model)
        self.tokenizer = self.folder / "tok.bin"
        self.tokenizer.write_bytes(llama2c_tokenizer())

    def succeed(self, *arguments: object) -> str:
        code, out, err = limpid(*arguments)
        self.assertEqual(code, 0, err)
        return out

    def test_every_command_that_runs_a_model_takes_them(self):
        given = ("--config", CONFIG, "--tokenizer", self.tokenizer)
        code, _, err = limpid("run", "-m", self.model, "-p", "the")
        self.assertEqual(code, 1)
        self.assertIn("--config", err)
        said = self.succeed("run", "-m", self.model, *given, "-p", "the", "-n", 8, "--temp", 0)
        converted = self.folder / "nano.gguf"
        self.succeed("convert", self.model, converted, *given)
        again = self.succeed("run", "-m", converted, "-p", "the", "-n", 8, "--temp", 0)
        self.assertEqual(said, again)
        scores = [
            json.loads(self.succeed("perplexity", "-m", *model, "-p", TEXT, "-c", 32, "--json"))
            for model in ((self.model, *given), (converted,))
        ]
        self.assertGreater(scores[0]["perplexity"], 1)
        self.assertEqual(scores[0]["perplexity"], scores[1]["perplexity"])
        # Without -c no more than the 64 positions that the model has.
        report = self.succeed("perplexity", "-m", self.model, *given, "-p", TEXT, "--json")
        self.assertEqual(json.loads(report)["n_ctx"], 64)
        self.succeed("bench", "-m", self.model, *given, "-p", 8, "-n", 2, "-r", 1)
        plan = self.succeed("quantize", self.model, "out.gguf", "q8_0", *given, "--dry-run")
        self.assertIn("blk.0.attn_qkv.weight", plan)
        self.assertFalse((self.folder / "out.gguf").exists())

    def test_commands_for_tokens_and_templates_take_them(self):
        given = ("-m", self.model, "--config", CONFIG, "--tokenizer", self.tokenizer)
        self.assertEqual(limpid("tokenize", "-m", self.model, "-p", "the")[0], 1)
        ids = json.loads(self.succeed("tokenize", *given, "-p", "the tent"))
        converted = self.folder / "nano.gguf"
        self.succeed("convert", self.model, converted, *given[2:])
        again = self.succeed("tokenize", "-m", converted, "-p", "the tent")
        self.assertEqual(ids, json.loads(again))
        self.assertEqual(ids[0], 1)  # <s>
        text = self.succeed("detokenize", *given, "--ids", ",".join(map(str, ids)))
        self.assertEqual(text, "the tent")
        template, messages = self.folder / "x.jinja", self.folder / "messages.json"
        template.write_text("{{ bos_token }}{{ messages[0].content }}{{ eos_token }}")
        messages.write_text('[{"role": "user", "content": "the"}]')
        options = ("--chat-template-file", template, "--messages", messages)
        self.assertEqual(self.succeed("template", *given, *options), "<s>the</s>")
        # Of a model with rotary positions, another scaling changes no token.
        scaling = ("--rope-scaling", "linear:4")
        plain = self.succeed("tokenize", "-m", ROTARY, "-p", "the tent")
        self.assertEqual(self.succeed("tokenize", "-m", ROTARY, "-p", "the tent", *scaling), plain)

    def test_the_rotary_scaling_changes_what_is_computed_and_written(self):
        def perplexity(model: pathlib.Path, *options: object) -> float:
            arguments = ("perplexity", "-m", model, "-p", TEXT, "-c", 32, "--json", *options)
            return json.loads(self.succeed(*arguments))["perplexity"]

        scaling = ("--rope-scaling", "linear:4")
        scaled = perplexity(ROTARY, *scaling)
        self.assertNotEqual(scaled, perplexity(ROTARY))
        self.succeed("convert", ROTARY, self.folder / "scaled.gguf", *scaling)
        self.assertEqual(perplexity(self.folder / "scaled.gguf"), scaled)

    def test_inspect_tells_what_is_made_left_and_tied(self):
        given = ("--config", CONFIG)
        report = json.loads(self.succeed("inspect", self.model, *given, "--json"))
        self.assertEqual(report["left"], ["transformer.h.0.attn.bias"])
        self.assertFalse(report["model"]["tied_embeddings"])
        text = self.succeed("inspect", self.model, *given)
        self.assertIn("does not use\n  transformer.h.0.attn.bias\n", text)
        self.assertIn("embeddings untied", text)
        self.assertNotIn("made:", text)

        tied = json.dumps(json.loads(CONFIG) | {"tie_word_embeddings": True})
        text = self.succeed("inspect", self.model, "--config", tied)
        self.assertIn("embeddings untied", text)
        self.assertNotIn("\n  lm_head.weight (", text)
        tensors = nano_gpt()
        tensors["lm_head.weight"] = tensors["transformer.wte.weight"]
        safetensors.numpy.save_file(tensors, self.model)
        text = self.succeed("inspect", self.model, "--config", tied)
        self.assertIn("embeddings tied", text)
        self.assertIn("does not use\n", text)
        self.assertIn("\n  lm_head.weight (", text)

    def test_an_error_in_a_configuration_names_its_file(self):
        file = self.folder / "given"
        file.write_text('{"bogus": 1}')
        _, _, err = limpid("inspect", self.model, "--config", file)
        self.assertIn(f"{file}: unknown key bogus", err)
        _, _, err = limpid("inspect", self.model, "--config", file.read_text())
        self.assertIn("--config: unknown key bogus", err)

    def test_inspect_tells_how_a_tensor_is_made(self):
        tensors = nano_gpt()
        for name in tensors:
            if ".h.0." in name and tensors[name].ndim == 2:  # as OpenAI's Conv1D keeps them
                tensors[name] = numpy.ascontiguousarray(tensors[name].T)
        safetensors.numpy.save_file(tensors, self.model)
        given = ("--config", CONFIG)
        report = json.loads(self.succeed("inspect", self.model, *given, "--json"))
        made = {each["name"]: each["made"] for each in report["tensors"]}
        self.assertEqual(made["blk.0.attn_qkv.weight"], "transposed")
        self.assertIsNone(made["token_embd.weight"])
        self.assertIn("made: transposed\n", self.succeed("inspect", self.model, *given))


if __name__ == "__main__":
    limpid_program.main()
