"""Writes tests/data/codec/quantize.*: values, and the squared error that llama.cpp's quantisers leave on them.

Made with llama-cpp-python 0.3.36 (libggml-base through ctypes), gguf 0.19.0 and numpy 2.4. `quantize.values.bin` holds
32 rows of 512 f16 values; `quantize.errors.txt` a line for each type: its name, the error without an importance,
and the weighted error with the importance that tests/tensor/quantize_row_test.cpp computes too.

usage: make_quantize_golden.py [output folder]
"""

import ctypes
import sys
from pathlib import Path

import llama_cpp
import numpy
from gguf.constants import GGML_QUANT_SIZES, GGMLQuantizationType
from gguf.quants import dequantize

TYPES = "Q4_0 Q4_1 Q5_0 Q5_1 Q8_0 IQ4_NL IQ4_XS Q2_K Q3_K Q4_K Q5_K Q6_K".split()
N_ROWS, N_COLS = 32, 512


def make_values() -> numpy.ndarray:
    """Rows as models have them: normal, with heavier tails, with an offset, with a few outliers."""
    random = numpy.random.default_rng(11)
    rows = random.standard_normal((N_ROWS, N_COLS)) * 0.03
    rows[8:16] = random.laplace(0, 0.02, (8, N_COLS))
    rows[16:20] += 0.02
    rows[20:32, ::37] *= 6
    return rows.astype(numpy.float16)


def importance() -> numpy.ndarray:
    columns = numpy.arange(N_COLS)
    return (0.1 + (columns * 7919 % 101) / 25.0).astype(numpy.float32)


def library() -> ctypes.CDLL:
    path = next((Path(llama_cpp.__file__).parent / "lib").glob("libggml-base.so*"))
    ggml = ctypes.CDLL(str(path))
    ggml.ggml_quantize_chunk.restype = ctypes.c_size_t
    ggml.ggml_quantize_chunk.argtypes = (
        [ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p] + [ctypes.c_int64] * 3 + [ctypes.c_void_p]
    )
    return ggml


def error(
    ggml: ctypes.CDLL, name: str, values: numpy.ndarray, weights: numpy.ndarray | None
) -> float:
    kind = GGMLQuantizationType[name]
    block_size, block_bytes = GGML_QUANT_SIZES[kind]
    out = numpy.zeros(values.size // block_size * block_bytes, numpy.uint8)
    pointer = None if weights is None else weights.ctypes.data
    ggml.ggml_quantize_chunk(
        int(kind), values.ctypes.data, out.ctypes.data, 0, N_ROWS, N_COLS, pointer
    )
    found = dequantize(out.reshape(N_ROWS, -1), kind)
    squares = (found.astype(numpy.float64) - values) ** 2
    return float((squares if weights is None else squares * weights).sum())


def main() -> None:
    default = Path(__file__).resolve().parents[2] / "tests" / "data" / "codec"
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else default
    halves = make_values()
    (folder / "quantize.values.bin").write_bytes(halves.tobytes())
    values = halves.astype(numpy.float32)
    ggml = library()
    lines = [
        f"{name.lower()} {error(ggml, name, values, None):.9e} {error(ggml, name, values, importance()):.9e}\n"
        for name in TYPES
    ]
    (folder / "quantize.errors.txt").write_text("".join(lines))


if __name__ == "__main__":
    main()
