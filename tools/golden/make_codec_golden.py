"""Writes tests/data/codec/*.bin from the `gguf` package's own quantisers and dequantisers.

Made with gguf 0.19.0 and numpy 2.4.6. For each block type, `<type>.decode.bin` holds random blocks
followed by their f32 values; for each type that Limpid writes, `<type>.encode.bin` holds f32 values
followed by the quantised bytes. Both begin with two u32: the number of elements and of bytes. Each file has
random numbers of its own, so that another type leaves the others as they are.

usage: make_codec_golden.py [output folder]
"""

import struct
import sys
import zlib
from pathlib import Path

import numpy as np
from gguf.constants import GGML_QUANT_SIZES, GGMLQuantizationType
from gguf.quants import dequantize, quantize

DECODED = "F16 BF16 Q4_0 Q4_1 Q5_0 Q5_1 Q8_0 Q2_K Q3_K Q4_K Q5_K Q6_K IQ4_NL IQ4_XS".split()
ENCODED = "F16 BF16 Q4_0 Q4_1 Q5_0 Q5_1 Q8_0".split()
# Where the half-precision scales of a block lie.
SCALES = {
    "Q4_0": [0],
    "Q4_1": [0, 2],
    "Q5_0": [0],
    "Q5_1": [0, 2],
    "Q8_0": [0],
    "Q2_K": [80, 82],
    "Q3_K": [108],
    "Q4_K": [0, 2],
    "Q5_K": [0, 2],
    "Q6_K": [208],
    "IQ4_NL": [0],
    "IQ4_XS": [0],
}
# 1, smallest subnormal, largest subnormal, largest, -0, -smallest normal, infinities.
ODD_HALVES = [0x3C00, 0x0001, 0x03FF, 0x7BFF, 0x8000, 0x8400, 0x7C00, 0xFC00]


def random_blocks(name: str, rng: np.random.Generator) -> np.ndarray:
    qtype = GGMLQuantizationType[name]
    block_size, block_bytes = GGML_QUANT_SIZES[qtype]
    n_blocks = 4096 if block_size == 1 else 24 if block_size == 32 else 12
    blocks = rng.integers(0, 256, (n_blocks, block_bytes), dtype=np.uint8)
    for offset in SCALES.get(name, []):
        # Any bits that are not a NaN; the first rows walk through the odd scales.
        halves = rng.integers(0, 0x7C00, n_blocks, dtype=np.uint16)
        halves |= rng.integers(0, 2, n_blocks, dtype=np.uint16) << np.uint16(15)
        halves[: len(ODD_HALVES)] = np.roll(ODD_HALVES, offset)
        blocks[:, offset : offset + 2] = halves.astype("<u2").view(np.uint8).reshape(-1, 2)
    return blocks


def random_values(rng: np.random.Generator) -> np.ndarray:
    rows = [rng.standard_normal(32) * scale for scale in (1, 0.02, 1e-6, 300, 6e-8, 1e-3)]
    rows += [np.zeros(32), np.full(32, 1.5), np.full(32, -0.25), np.linspace(-8, 7, 32)]
    rows += [np.arange(32) - 16, np.arange(32) / 2 + 0.25, np.where(np.arange(32) % 2, 5.0, -5.0)]
    rows += [np.round(rng.standard_normal(32) * 4) / 2 for _ in range(4)]  # many ties
    return np.stack(rows).astype(np.float32)


def write(path: Path, first: np.ndarray, second: np.ndarray, n_elements: int) -> None:
    n_bytes = first.nbytes if first.dtype == np.uint8 else second.nbytes
    path.write_bytes(struct.pack("<II", n_elements, n_bytes) + first.tobytes() + second.tobytes())


def main() -> None:
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else "tests/data/codec")
    folder.mkdir(parents=True, exist_ok=True)
    for name in DECODED:
        blocks = random_blocks(name, np.random.default_rng(zlib.crc32(name.encode())))
        with np.errstate(all="ignore"):
            values = dequantize(blocks, GGMLQuantizationType[name]).astype(np.float32)
        write(folder / f"{name.lower()}.decode.bin", blocks, values, values.size)
    values = random_values(np.random.default_rng(20261121))
    for name in ENCODED:
        encoded = quantize(values, GGMLQuantizationType[name])
        write(folder / f"{name.lower()}.encode.bin", values, encoded.view(np.uint8), values.size)


if __name__ == "__main__":
    main()
