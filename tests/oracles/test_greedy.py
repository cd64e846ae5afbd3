"""Greedy continuations, id for id: small trained Llama models against ids that numpy f64 gave.

The ids are fed back (so one run of `limpid logits` shows every step): greedy decoding gives these ids if
and only if the largest logit after each prefix is the next id.
"""

import json
import pathlib
import unittest

import limpid_program
import numpy
from limpid_program import shared

STORIES260K = limpid_program.DATA / "stories260K"
FILES = {
    "llama2xs_model.bin": "llama2xs/llama2xs_model.bin",
    "stories15M.bin": "stories15M/stories15M.bin",
}
# f32 weights: what an executor may differ from f64 by, as a share of the logits' spread.
TOLERANCE = 1e-4


class Greedy(unittest.TestCase):
    def check(self, key: str, executor: str, file: str = "") -> None:
        expected = json.loads(shared("models", "reference_greedy_numpy_f64.json").read_text())[key]
        self.check_model(shared("models", file or FILES[key]), expected, executor)

    def check_model(self, model: pathlib.Path, expected: dict, executor: str) -> None:
        prompt, continuation = expected["prompt_tokens"], expected["greedy_tokens"]
        ids = prompt + continuation[:-1]
        logits = limpid_program.logits(model, ids, "--device", executor)
        self.assertEqual(logits.dtype, numpy.float32)
        self.assertEqual(logits.shape[0], len(ids))
        self.assertEqual(logits[len(prompt) - 1 :].argmax(axis=1).tolist(), continuation)
        for token_id, logit in expected["top8_logits_after_bos"]:
            self.assertAlmostEqual(logits[0, token_id], logit, delta=TOLERANCE * logits[0].std())

    def test_stories260k(self):
        expected = json.loads((STORIES260K / "greedy.json").read_text())
        for executor in ("reference", "cpu"):
            self.check_model(STORIES260K / "stories260K.bin", expected, executor)

    def test_opencl(self):
        limpid_program.require_device("opencl")
        expected = json.loads((STORIES260K / "greedy.json").read_text())
        self.check_model(STORIES260K / "stories260K.bin", expected, "opencl")
        self.check("llama2xs_model.bin", "opencl", "llama2xs/llama2xs_ckpt.pt")

    def test_llama2xs_reference(self):
        self.check("llama2xs_model.bin", "reference")

    def test_llama2xs_cpu(self):
        self.check("llama2xs_model.bin", "cpu")

    def test_llama2xs_as_torch_saved_it(self):
        torch_file = "llama2xs/llama2xs_ckpt.pt"
        for executor in ("reference", "cpu"):
            self.check("llama2xs_model.bin", executor, torch_file)
            ids = [1, 403, 407, 261]
            both = [
                limpid_program.logits(shared("models", file), ids, "--device", executor)
                for file in (torch_file, FILES["llama2xs_model.bin"])
            ]
            numpy.testing.assert_array_equal(*both)

    def test_stories15m_reference(self):
        self.check("stories15M.bin", "reference")

    def test_stories15m_cpu(self):
        self.check("stories15M.bin", "cpu")


if __name__ == "__main__":
    limpid_program.main()
