"""A Meta folder, chatted with: Llama 3's format without a chat template, and each token that ends its answers."""

import json
import pathlib
import subprocess
import tempfile
import unittest

import limpid_program
import numpy
import tiny_models

EXPECTED = (
    "<|begin_of_text|><|start_header_id|>system<|end_header_id|>\n\nBe brief.<|eot_id|>"
    "<|start_header_id|>user<|end_header_id|>\n\nHello<|eot_id|>"
    "<|start_header_id|>assistant<|end_header_id|>\n\n"
)
MESSAGES = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": " Hello "}]
# Of tiny_models.rank_file.
A = ord("A")
TWO_NEWLINES = 256 + ord("\n") * 257


def says_a_and_then(last: int) -> tiny_models.Tensors:
    """A model whose layers add nothing: the last token alone decides. Two newlines, which end the prompt, give A, and
    A gives `last`."""
    tensors = tiny_models.meta_llama(tiny_models.LLAMA3_VOCABULARY)
    for name in tensors:
        if not name.endswith("norm.weight"):
            tensors[name] = numpy.zeros_like(tensors[name])
    embedding, output = tensors["tok_embeddings.weight"], tensors["output.weight"]
    embedding[TWO_NEWLINES, 0] = embedding[A, 1] = 1
    output[A, 0] = output[last, 1] = 1
    return tensors


class MetaChat(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def model(self, last: int) -> pathlib.Path:
        path = tiny_models.write_meta_folder(self.folder / str(last), says_a_and_then(last))
        (path / "tokenizer.model").write_bytes(tiny_models.rank_file())
        return path

    def chat(self, model: pathlib.Path) -> dict:
        options = ("-sys", "Be brief.", "--temp", "0", "-n", "5", "-c", "64")
        return limpid_program.run_json(
            "chat", "-m", model, "-st", "--json", "-p", "Hello", *options
        )

    def test_each_of_llama_3_s_stops_ends_the_answer(self):
        for stop in (128_001, 128_008, 128_009):
            answer = self.chat(self.model(stop))
            self.assertEqual((answer["text"], answer["stop_reason"]), ("A", "end_of_text"), stop)
            self.assertEqual(answer["ids"][0], A)
        # Another special token does not.
        answer = self.chat(self.model(128_002))
        self.assertEqual(answer["stop_reason"], "length")
        self.assertEqual(answer["ids"][:2], [A, 128_002])

    def test_the_format_is_llama_3_s(self):
        model = self.model(128_009)
        command = [str(limpid_program.PROGRAM), "template", "-m", str(model), "--messages", "-"]
        done = subprocess.run(command, input=json.dumps(MESSAGES).encode(), capture_output=True)
        self.assertEqual(done.stdout.decode(), EXPECTED, done.stderr)
        ids = limpid_program.run_json(
            "tokenize", "-m", model, "--no-bos", "--special", "-p", EXPECTED
        )
        self.assertEqual(ids[0], 128_000)
        self.assertEqual(ids[-1], TWO_NEWLINES)
        self.assertEqual(self.chat(model)["timings"]["n_prompt"], len(ids))

    def test_what_it_becomes_goes_on_as_it_did(self):
        model = self.model(128_008)
        expected = self.chat(model)["ids"]
        for name, options in (("x.gguf", ()), ("folder", ("--to", "safetensors"))):
            limpid_program.run("convert", model, self.folder / name, *options)
            answer = self.chat(self.folder / name)
            self.assertEqual((answer["ids"], answer["stop_reason"]), (expected, "end_of_text"))
        config = json.loads((self.folder / "folder" / "generation_config.json").read_text())
        self.assertEqual(config["eos_token_id"], [128_001, 128_008, 128_009])


if __name__ == "__main__":
    limpid_program.main()
