"""Tiny GPT-2 models with each option of the family, against logits of transformers in f64.

tools/golden/make_tiny_gpt2.py made the files.
"""

import unittest

import golden_models
import limpid_program


class GoldenGpt2(unittest.TestCase):
    def test_reference(self):
        golden_models.check(self, "gpt2", 5, "--device", "reference")

    def test_cpu(self):
        golden_models.check(self, "gpt2", 5, "--device", "cpu")

    def test_opencl(self):
        limpid_program.require_device("opencl")
        golden_models.check(self, "gpt2", 5, "--device", "opencl", "-ctk", "f32", "-ctv", "f32")
        golden_models.check_pth(self, "gpt2", ("tanh_tied",), "--device", "opencl")


if __name__ == "__main__":
    limpid_program.main()
