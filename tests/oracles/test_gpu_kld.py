"""SmolLM2 on OpenCL beside the reference: how far apart the distributions of the next token are.

The reference computes with f64 sums. A GPU keeps activations in f32 against weights of every type, so it must be as near
to the reference with quantised ones as with f16 and f32, and nearer than the CPU executor, which rounds activations to
8 bits against quantised weights. With some layers on the GPU and the others on the CPU the distance is that of the CPU's
layers.
"""

import pathlib
import tempfile
import unittest

import limpid_program
import numpy

MOST = 1e-8  # nats
MOST_OF_HALVES = 1e-4  # with products of halves
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
    """The file as it is, in Q4_1, and what `limpid convert` makes of it."""

    @classmethod
    def setUpClass(cls):
        limpid_program.require_device("opencl")
        if not limpid_program.SMOLLM2.exists():
            raise unittest.SkipTest(f"no {limpid_program.SMOLLM2}; run `limpid pull smollm2`")
        ids = limpid_program.run_json("tokenize", "-m", limpid_program.SMOLLM2, "-p", TEXT, "--ids")
        assert len(ids) >= 40
        cls.ids = ids

    def klds(self, model: pathlib.Path, name: str, *options: str) -> tuple[float, float]:
        """Mean KLD from the reference, of cpu and of opencl with these options."""
        logits = [
            limpid_program.logits(model, self.ids, "--device", *device)
            for device in (["reference"], ["cpu"], ["opencl", *options])
        ]
        cpu, opencl = (mean_kld(logits[0], other) for other in logits[1:])
        where = " ".join(["opencl", *options])
        print(
            f"{name}: mean KLD over {len(self.ids)} positions: cpu {cpu:.1e}, {where} {opencl:.1e}"
        )
        return cpu, opencl

    def of_converted(self, dtype: str, *device_options: str) -> tuple[float, float]:
        with tempfile.TemporaryDirectory() as folder:
            model = pathlib.Path(folder) / "model.gguf"
            options = ["--dtype", dtype, "--allow-requantize", "--no-calibrate"]
            limpid_program.run("convert", limpid_program.SMOLLM2, model, *options)
            return self.klds(model, dtype, *device_options)

    def test_as_it_is(self):
        cpu, opencl = self.klds(limpid_program.SMOLLM2, "q4_1")
        self.assertLess(opencl, MOST)
        self.assertLess(opencl, cpu)

    def test_some_layers(self):
        cpu, layers = self.klds(limpid_program.SMOLLM2, "q4_1", "--gpu-layers", "8")
        self.assertLess(layers, 1.2 * cpu)
        self.assertGreater(layers, MOST)  # the layers on the CPU round to 8 bits

    def test_products_of_halves(self):
        halves = ("--products", "f16")
        cpu, opencl = self.klds(limpid_program.SMOLLM2, "q4_1", *halves)
        self.assertLess(opencl, cpu)
        for dtype in ("f16", "f32"):
            with self.subTest(dtype):
                self.assertLess(self.of_converted(dtype, *halves)[1], MOST_OF_HALVES)

    def test_plain_weights(self):
        for dtype in ("f16", "f32"):
            with self.subTest(dtype):
                self.assertLess(self.of_converted(dtype)[1], MOST)

    def test_q8_0(self):
        cpu, opencl = self.of_converted("q8_0")
        self.assertLess(opencl, MOST)
        self.assertLess(opencl, cpu)


if __name__ == "__main__":
    limpid_program.main()
