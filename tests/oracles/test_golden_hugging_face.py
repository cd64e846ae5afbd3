"""Tiny models as transformers saves them, against its logits in f64.

tools/golden/make_tiny_hugging_face.py made the folders. Errors are divided by the spread of the logits. Up to position
1023 they are at most 1e-4; beyond, transformers' own angles are f32, and 5e-3 is what that costs. With angles in f64,
which is how Limpid has them, 1e-4 holds there too.
"""

import json
import unittest

import limpid_program
import numpy

FOLDER = limpid_program.ROOT / "tests" / "data" / "golden" / "hugging_face"
VOCAB_SIZE = 61
NEAR = 1e-4
FAR = 5e-3


class GoldenHuggingFace(unittest.TestCase):
    def check(self, case, executor: str) -> None:
        golden = json.loads((case / "golden.json").read_text())
        positions = golden["positions"]
        ids = [(7 * i * i + 3 * i + 1) % VOCAB_SIZE for i in range(positions[-1] + 1)]
        options = ("--device", executor, "--positions", ",".join(map(str, positions)))
        logits = limpid_program.logits(case, ids, "-ctk", "f32", "-ctv", "f32", *options)
        near = numpy.array(positions) < 1024
        errors = numpy.abs(logits - numpy.array(golden["logits"])).max(axis=1) / golden["std"]
        found = f"{case.name}, {executor}: {errors[near].max():.1e} up to 1023"
        self.assertLessEqual(errors[near].max(), NEAR)
        if not near.all():
            exact = numpy.abs(logits - numpy.array(golden["logits_f64_angles"])).max()
            exact /= golden["std"]
            found += f", {errors.max():.1e} up to {positions[-1]}, {exact:.1e} with angles in f64"
            self.assertLessEqual(errors.max(), FAR)
            self.assertLessEqual(exact, NEAR)
        print(found)

    def check_all(self, device: str) -> None:
        cases = sorted(path.parent for path in FOLDER.glob("*/golden.json"))
        self.assertGreaterEqual(len(cases), 9)
        for case in cases:
            with self.subTest(case=case.name):
                self.check(case, device)

    def test_cpu(self):
        self.check_all("cpu")

    def test_opencl(self):
        limpid_program.require_device("opencl")
        self.check_all("opencl")

    def test_reference(self):
        names = "llama_biases llama_tied mistral qwen2 qwen3 ernie4_5 partial_rotary"
        for name in names.split():
            with self.subTest(case=name):
                self.check(FOLDER / name, "reference")


if __name__ == "__main__":
    limpid_program.main()
