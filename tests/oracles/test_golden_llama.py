"""Tiny Llama models with each option of the family, against logits of transformers in f64.

tools/golden/make_tiny_llama.py made the files.
"""

import unittest

import golden_models
import limpid_program


class GoldenLlama(unittest.TestCase):
    def test_reference(self):
        golden_models.check(self, "llama", 13, "--device", "reference")

    def test_cpu(self):
        golden_models.check(self, "llama", 13, "--device", "cpu")

    def test_opencl(self):
        limpid_program.require_device("opencl")
        golden_models.check(self, "llama", 13, "--device", "opencl", "-ctk", "f32", "-ctv", "f32")
        names = ("epsilon_theta", "gqa_untied", "mha_tied", "mqa_one_layer", "odd_sizes")
        golden_models.check_pth(self, "llama", names, "--device", "opencl")


if __name__ == "__main__":
    limpid_program.main()
