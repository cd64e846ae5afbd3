"""A file of `limpid quantize --no-calibrate` with some of its elements at the level on the other side.

What src/tensor/quantize_drift.h does while a block is made, done afterwards to the file, and for any number of
directions along which errors shall not fall: (e . m)² becomes a sum over them.
"""

import dataclasses
import pathlib

import gguf
import numpy
import torch

Type = gguf.GGMLQuantizationType


@dataclasses.dataclass(frozen=True)
class Codes:
    """The levels of an element, and where a block has their bits."""

    levels: range
    parts: tuple[tuple[int, int, int, int], ...]  # (first byte, end, lowest bit, number of bits)


CODES = {
    Type.Q4_0: Codes(range(16), ((2, 18, 0, 4),)),
    Type.Q4_1: Codes(range(16), ((4, 20, 0, 4),)),
    Type.Q5_0: Codes(range(32), ((6, 22, 0, 4), (2, 6, 4, 1))),
    Type.Q5_1: Codes(range(32), ((8, 24, 0, 4), (4, 8, 4, 1))),
    Type.Q8_0: Codes(range(-127, 128), ((2, 34, 0, 8),)),
    Type.Q2_K: Codes(range(4), ((16, 80, 0, 2),)),
    Type.Q3_K: Codes(range(8), ((32, 96, 0, 2), (0, 32, 2, 1))),
    Type.Q4_K: Codes(range(16), ((16, 144, 0, 4),)),
    Type.Q5_K: Codes(range(32), ((48, 176, 0, 4), (16, 48, 4, 1))),
    Type.Q6_K: Codes(range(64), ((0, 128, 0, 4), (128, 192, 4, 2))),
    Type.IQ4_NL: Codes(range(16), ((2, 18, 0, 4),)),
    Type.IQ4_XS: Codes(range(16), ((8, 136, 0, 4),)),
}
REPEATED = {1: 0xFF, 2: 0x55, 4: 0x11, 8: 0x01}  # a number of so many bits over a whole byte


@dataclasses.dataclass
class Matrix:
    """[n_rows, n_cols] each, and the elements of a block."""

    source: torch.Tensor
    values: torch.Tensor  # as the file has them
    steps: torch.Tensor  # from there to the next level on the other side of the source
    block: int

    def settled(self, directions: torch.Tensor, variance: float) -> torch.Tensor:
        """The values afterwards. directions: [n, n_cols]; variance: of the activations apart from them, a column's."""
        error = self.values - self.source
        cost = (variance * self.steps * (self.steps + 2 * error)).clamp(min=0)
        moved = torch.zeros_like(error, dtype=torch.bool)
        drift = torch.zeros(len(error), len(directions))  # e . m of each row so far
        for begin in range(0, error.shape[1], self.block):
            columns = slice(begin, begin + self.block)
            drift += error[:, columns] @ directions[:, columns].T
            effect = self.steps[:, columns, None] * directions[:, columns].T
            rows = torch.arange(len(error))
            while len(rows):
                change = effect[rows] * (2 * drift[rows, None] + effect[rows])
                change = change.sum(-1) + cost[rows, columns]
                least, best = change.masked_fill(moved[rows, columns], 0).min(1)
                better = least < 0
                rows, best = rows[better], best[better]
                moved[rows, begin + best] = True
                drift[rows] += effect[rows, best]
        return torch.where(moved, self.values + self.steps, self.values)


def _next_levels(tensor: gguf.ReaderTensor, source: numpy.ndarray) -> numpy.ndarray:
    """The nearest values that the blocks of a tensor can hold beyond the source; its own where there is none."""
    codes = CODES[tensor.tensor_type]
    n_bytes = gguf.GGML_QUANT_SIZES[tensor.tensor_type][1]
    values = gguf.dequantize(tensor.data, tensor.tensor_type)
    rising = values < source
    found = numpy.where(rising, numpy.inf, -numpy.inf).astype(numpy.float32)
    filled = numpy.array(tensor.data)
    blocks = filled.reshape(-1, n_bytes)
    for level in codes.levels:
        for first, end, shift, n_bits in codes.parts:
            blocks[:, first:end] = (level >> shift) % (1 << n_bits) * REPEATED[n_bits]
        candidate = gguf.dequantize(filled, tensor.tensor_type)
        above = rising & (candidate > values) & (candidate < found)
        below = ~rising & (candidate < values) & (candidate > found)
        numpy.copyto(found, candidate, where=above | below)
    return numpy.where(numpy.isfinite(found), found, values)


def matrices_of(path: pathlib.Path, source: dict[str, torch.Tensor]) -> dict[str, Matrix]:
    """Those of a file that are quantised, by name."""
    result = {}
    for tensor in gguf.GGUFReader(path).tensors:
        if tensor.tensor_type != Type.F32:
            values = torch.from_numpy(gguf.dequantize(tensor.data, tensor.tensor_type))
            wanted = source[tensor.name]
            levels = torch.from_numpy(_next_levels(tensor, wanted.numpy()))
            block = gguf.GGML_QUANT_SIZES[tensor.tensor_type][0]
            result[tensor.name] = Matrix(wanted, values, levels - values, block)
    return result
