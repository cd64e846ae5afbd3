"""SmolLM2 on OpenCL beside the reference: how far apart the distributions of the next token are.

The reference computes with f64 sums. A GPU keeps activations in f32, so it must be nearer to the reference than the CPU
executor, which rounds them to 8 bits against quantised weights.
"""

import unittest

import limpid_program
import numpy

MOST = 1e-8  # nats
TEXT = (
    "The lighthouse had stood on the rock for two hundred years before anybody thought of asking who lit it. "
    "Every evening at six the lamp began to turn, and every morning it went dark again, as if by itself."
)


def log_softmax(logits: numpy.ndarray) -> numpy.ndarray:
    shifted = logits.astype(numpy.float64) - logits.max(axis=1, keepdims=True)
    return shifted - numpy.log(numpy.exp(shifted).sum(axis=1, keepdims=True))


def mean_kld(expected: numpy.ndarray, actual: numpy.ndarray) -> float:
    p, q = log_softmax(expected), log_softmax(actual)
    return float((numpy.exp(p) * (p - q)).sum(axis=1).mean())


class GpuKld(unittest.TestCase):
    def test_smollm2(self):
        limpid_program.require_device("opencl")
        if not limpid_program.SMOLLM2.exists():
            raise unittest.SkipTest(f"no {limpid_program.SMOLLM2}; run `limpid pull smollm2`")
        ids = limpid_program.run_json("tokenize", "-m", limpid_program.SMOLLM2, "-p", TEXT, "--ids")
        self.assertGreaterEqual(len(ids), 40)
        logits = {
            device: limpid_program.logits(limpid_program.SMOLLM2, ids, "--device", device)
            for device in ("reference", "cpu", "opencl")
        }
        cpu = mean_kld(logits["reference"], logits["cpu"])
        opencl = mean_kld(logits["reference"], logits["opencl"])
        print(f"mean KLD over {len(ids)} positions: cpu {cpu:.1e}, opencl {opencl:.1e}")
        self.assertLess(opencl, MOST)
        self.assertLess(opencl, cpu)


if __name__ == "__main__":
    limpid_program.main()
