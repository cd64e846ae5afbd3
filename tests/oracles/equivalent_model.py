"""Models that compute the same as a given one and are quantised differently.

The order of the residual stream's dimensions, their signs, the order of the units of each MLP and of the dimensions of
each value head mean nothing to a Llama-like model, but decide which weights share a block. One file's KLD is a draw
from what these models give; their mean tells a better quantiser from a luckier one.
"""

import pathlib
import shutil

import gguf
import numpy


def _integer(reader: gguf.GGUFReader, key: str) -> int:
    return int(reader.get_field(f"llama.{key}").contents())


def write(source: pathlib.Path, destination: pathlib.Path, seed: int) -> None:
    """A copy of `source` (GGUF, Llama-like, tied, F16 or F32) with orders and signs drawn from `seed`."""
    shutil.copyfile(source, destination)
    destination.chmod(0o644)
    reader = gguf.GGUFReader(destination, "r+")
    random = numpy.random.default_rng(seed)
    d_model = _integer(reader, "embedding_length")
    n_heads = _integer(reader, "attention.head_count")
    n_kv_heads = _integer(reader, "attention.head_count_kv")
    d_ff = _integer(reader, "feed_forward_length")
    head_dim = d_model // n_heads
    stream = random.permutation(d_model)
    signs = random.choice([-1.0, 1.0], d_model)
    units = [random.permutation(d_ff) for _ in range(_integer(reader, "block_count"))]
    # The query heads of a group read one value head, so their columns of the output matrix move with its rows.
    values = [[random.permutation(head_dim) for _ in range(n_kv_heads)] for _ in units]
    for tensor in reader.tensors:
        name, data = tensor.name, numpy.array(tensor.data)
        if "norm" in name:
            tensor.data[:] = data[stream]
            continue
        layer = int(name.split(".")[1]) if name.startswith("blk.") else 0
        part = name.split(".")[-2]
        heads = values[layer]
        group = n_heads // n_kv_heads
        if part in ("attn_output", "ffn_down"):  # writes to the stream
            data = (data * signs[:, None].astype(data.dtype))[stream]
            if part == "ffn_down":
                data = data[:, units[layer]]
            else:
                columns = [heads[h // group] + h * head_dim for h in range(n_heads)]
                data = data[:, numpy.concatenate(columns)]
        else:  # reads from it; the embedding does both by its rows' elements
            data = (data * signs.astype(data.dtype))[:, stream]
            if part in ("ffn_gate", "ffn_up"):
                data = data[units[layer]]
            elif part == "attn_v":
                data = data[numpy.concatenate([p + h * head_dim for h, p in enumerate(heads)])]
        tensor.data[:] = data
    reader.data.flush()
