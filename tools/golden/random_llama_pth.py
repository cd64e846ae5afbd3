"""Writes a Meta folder with random weights: params.json and consolidated.NN.pth, for sizes that no file at hand has.

Needs gguf 0.19 and numpy 2.4 (for the shapes and weights of random_llama_gguf.py: one seed gives the same values).

    random_llama_pth.py --shape llama-3.2-1b --dtype bf16 --shards 2 FOLDER

There is no tokenizer in the folder: give ids.
"""

import argparse
import json
import pathlib
from collections.abc import Iterator

import numpy
import torch_file
from random_llama_gguf import SHAPES, Shape, random_weight, tensor_shapes

META_NAMES = {
    "token_embd.weight": "tok_embeddings.weight",
    "output_norm.weight": "norm.weight",
    "output.weight": "output.weight",
    "attn_norm.weight": "attention_norm.weight",
    "attn_q.weight": "attention.wq.weight",
    "attn_k.weight": "attention.wk.weight",
    "attn_v.weight": "attention.wv.weight",
    "attn_output.weight": "attention.wo.weight",
    "ffn_norm.weight": "ffn_norm.weight",
    "ffn_gate.weight": "feed_forward.w1.weight",
    "ffn_up.weight": "feed_forward.w3.weight",
    "ffn_down.weight": "feed_forward.w2.weight",
}
CUT_COLUMNS = ("attention.wo.weight", "feed_forward.w2.weight")
MULTIPLE_OF = 256


def meta_name(name: str) -> str:
    if not name.startswith("blk."):
        return META_NAMES[name]
    _, block, rest = name.split(".", 2)
    return f"layers.{block}.{META_NAMES[rest]}"


def params(shape: Shape) -> dict:
    two_thirds = 8 * shape.d_model // 3
    multiplier = next(
        m
        for m in (1.0, 1.3, 1.5, shape.d_ff / two_thirds)
        if -(-int(m * two_thirds) // MULTIPLE_OF) * MULTIPLE_OF == shape.d_ff
    )
    result = {
        "dim": shape.d_model,
        "n_layers": shape.n_layers,
        "n_heads": shape.n_heads,
        "n_kv_heads": shape.n_kv_heads,
        "vocab_size": shape.vocab_size,
        "multiple_of": MULTIPLE_OF,
        "ffn_dim_multiplier": multiplier,
        "norm_eps": 1e-5,
        "rope_theta": shape.rope_base,
    }
    return result | ({"use_scaled_rope": True} if shape.llama3_rope else {})


def part(name: str, weight: numpy.ndarray, shard: int, n_shards: int) -> numpy.ndarray:
    """What a shard holds of a tensor: all of a vector, some rows or columns of a matrix."""
    if weight.ndim == 1 or n_shards == 1:
        return weight
    axis = 1 if name.endswith(CUT_COLUMNS) else 0
    return numpy.split(weight, n_shards, axis)[shard]


def write_folder(
    folder: pathlib.Path, shape: Shape, dtype: str, n_shards: int, tied: bool, seed: int
) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "params.json").write_text(json.dumps(params(shape)) + "\n")
    tensors = [item for item in tensor_shapes(shape, tied) if item[0] != "rope_freqs.weight"]
    for shard in range(n_shards):

        def dims_of(name: str, dims: tuple[int, ...]) -> tuple[int, ...]:
            if len(dims) == 1:
                return dims
            column = meta_name(name).endswith(CUT_COLUMNS)
            return (dims[0], dims[1] // n_shards) if column else (dims[0] // n_shards, dims[1])

        def values(shard: int = shard) -> Iterator[numpy.ndarray]:
            random = numpy.random.default_rng(seed)
            for name, dims in tensors:
                weight = random_weight(random, name, dims, shape)
                yield part(meta_name(name), weight, shard, n_shards)

        names = [(meta_name(name), dims_of(name, dims)) for name, dims in tensors]
        torch_file.write(folder / f"consolidated.{shard:02}.pth", names, values(), dtype)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--shape", choices=sorted(SHAPES), default="tiny")
    parser.add_argument("--dtype", choices=sorted(torch_file.STORAGES), default="bf16")
    parser.add_argument("--shards", type=int, default=1)
    parser.add_argument("--untied", action="store_true", help="an output matrix of its own")
    parser.add_argument("--seed", type=int, default=1)
    a = parser.parse_args()
    write_folder(a.folder, SHAPES[a.shape], a.dtype, a.shards, not a.untied, a.seed)


if __name__ == "__main__":
    main()
