"""Tiny Llama models with each option of the family, against logits of transformers in f64.

tools/golden/make_tiny_llama.py made the files. The weights are F32, so both executors must agree to 1e-4 of the
logits' spread; a wrong row order, rotation or bias is off by its whole spread.
"""

import json
import unittest

import limpid_program
import numpy

FOLDER = limpid_program.ROOT / "tests" / "data" / "golden" / "llama"
TOLERANCE = 1e-4


class GoldenLlama(unittest.TestCase):
    def check(self, executor: str) -> None:
        cases = sorted(FOLDER.glob("*.json"))
        self.assertGreaterEqual(len(cases), 11)
        for case in cases:
            with self.subTest(case=case.stem):
                golden = json.loads(case.read_text())
                positions = ",".join(map(str, golden["positions"]))
                options = ("--executor", executor, "--positions", positions)
                model = case.with_suffix(".gguf")
                logits = limpid_program.logits(model, golden["ids"], *options)
                expected = numpy.array(golden["logits"])
                self.assertEqual(logits.shape, expected.shape)
                error = numpy.abs(logits - expected).max() / golden["std"]
                self.assertLessEqual(error, TOLERANCE)

    def test_reference(self):
        self.check("reference")

    def test_cpu(self):
        self.check("cpu")


if __name__ == "__main__":
    limpid_program.main()
