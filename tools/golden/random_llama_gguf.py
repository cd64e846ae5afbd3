"""Writes a Llama GGUF with random weights, for files that no small real model offers.

Needs gguf 0.19 and numpy 2.4; --type other than F32, F16 and BF16 also llama-cpp-python 0.3.36, which quantises.

    random_llama_gguf.py --shape llama-3.2-1b --type Q4_K_M model.gguf

Weights are normal with a spread that keeps activations near 1, as trained ones do; a few outliers stand in for
those of real models. There is no tokenizer in the file: give ids.
"""

import argparse
import dataclasses
import pathlib
import sys
import tempfile
from collections.abc import Iterator

import gguf
import numpy


@dataclasses.dataclass(frozen=True)
class Shape:
    n_layers: int
    n_heads: int
    n_kv_heads: int
    head_dim: int
    d_model: int
    d_ff: int
    vocab_size: int
    rope_base: float
    n_ctx: int
    llama3_rope: bool = False


SHAPES = {
    # Rows of 256 k, so that every K type fits; small enough for seconds.
    "tiny": Shape(4, 8, 2, 64, 512, 1536, 4096, 10_000.0, 2048),
    # Grattafiori et al. 2024 and the model's own configuration; factors of rope from the same.
    "llama-3.2-1b": Shape(16, 32, 8, 64, 2048, 8192, 128_256, 500_000.0, 131_072, llama3_rope=True),
}
PLAIN_TYPES = {
    "F32": gguf.GGMLQuantizationType.F32,
    "F16": gguf.GGMLQuantizationType.F16,
    "BF16": gguf.GGMLQuantizationType.BF16,
}
FILE_TYPES = {
    "F32": gguf.LlamaFileType.ALL_F32,
    "F16": gguf.LlamaFileType.MOSTLY_F16,
    "BF16": gguf.LlamaFileType.MOSTLY_BF16,
}


def llama3_rope_factors(
    shape: Shape, factor=32.0, low=1.0, high=4.0, original=8192
) -> numpy.ndarray:
    """Divisors of the rotary frequencies, [head_dim / 2] (Grattafiori et al. 2024; `rope_type` llama3)."""
    frequencies = shape.rope_base ** (-numpy.arange(0, shape.head_dim, 2) / shape.head_dim)
    wavelengths = 2 * numpy.pi / frequencies
    smooth = numpy.clip((original / wavelengths - low) / (high - low), 0.0, 1.0)
    return (1.0 / ((1.0 - smooth) / factor + smooth)).astype(numpy.float32)


def tensor_shapes(shape: Shape, tied: bool) -> Iterator[tuple[str, tuple[int, ...]]]:
    q, kv = shape.n_heads * shape.head_dim, shape.n_kv_heads * shape.head_dim
    yield "token_embd.weight", (shape.vocab_size, shape.d_model)
    if shape.llama3_rope:
        yield "rope_freqs.weight", (shape.head_dim // 2,)
    for i in range(shape.n_layers):
        yield f"blk.{i}.attn_norm.weight", (shape.d_model,)
        yield f"blk.{i}.attn_q.weight", (q, shape.d_model)
        yield f"blk.{i}.attn_k.weight", (kv, shape.d_model)
        yield f"blk.{i}.attn_v.weight", (kv, shape.d_model)
        yield f"blk.{i}.attn_output.weight", (shape.d_model, q)
        yield f"blk.{i}.ffn_norm.weight", (shape.d_model,)
        yield f"blk.{i}.ffn_gate.weight", (shape.d_ff, shape.d_model)
        yield f"blk.{i}.ffn_up.weight", (shape.d_ff, shape.d_model)
        yield f"blk.{i}.ffn_down.weight", (shape.d_model, shape.d_ff)
    yield "output_norm.weight", (shape.d_model,)
    if not tied:
        yield "output.weight", (shape.vocab_size, shape.d_model)


def random_weight(
    random: numpy.random.Generator, name: str, dims: tuple[int, ...], shape: Shape
) -> numpy.ndarray:
    if name == "rope_freqs.weight":
        return llama3_rope_factors(shape)
    if len(dims) == 1:
        return (1.0 + 0.1 * random.standard_normal(dims)).astype(numpy.float32)
    # Logits with a spread of about 2; the other matrices keep the spread of what goes through them, and what
    # a layer adds to the residual stream is as large as what came in.
    gain = 2.0 if name in ("token_embd.weight", "output.weight") else 1.0
    weight = random.standard_normal(dims, dtype=numpy.float32)
    weight *= numpy.float32(gain / dims[1] ** 0.5)
    outliers = random.integers(0, weight.size, weight.size // 4096)
    weight.reshape(-1)[outliers] *= 6.0
    return weight


def write_plain(path: pathlib.Path, shape: Shape, file_type: str, tied: bool, seed: int) -> None:
    random = numpy.random.default_rng(seed)
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_name(f"random weights, seed {seed}")
    writer.add_context_length(shape.n_ctx)
    writer.add_embedding_length(shape.d_model)
    writer.add_block_count(shape.n_layers)
    writer.add_feed_forward_length(shape.d_ff)
    writer.add_head_count(shape.n_heads)
    writer.add_head_count_kv(shape.n_kv_heads)
    writer.add_key_length(shape.head_dim)
    writer.add_value_length(shape.head_dim)
    writer.add_rope_dimension_count(shape.head_dim)
    writer.add_rope_freq_base(shape.rope_base)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_vocab_size(shape.vocab_size)
    writer.add_file_type(FILE_TYPES[file_type])
    writer.add_tokenizer_model("no_vocab")

    tensors = list(tensor_shapes(shape, tied))
    for name, dims in tensors:
        kind = PLAIN_TYPES[file_type] if len(dims) == 2 else gguf.GGMLQuantizationType.F32
        n_bytes = int(numpy.prod(dims)) * (4 if kind == gguf.GGMLQuantizationType.F32 else 2)
        if kind == gguf.GGMLQuantizationType.BF16:
            row_bytes = (dims[0], dims[1] * 2)
            writer.add_tensor_info(
                name, row_bytes, numpy.dtype(numpy.uint8), n_bytes, raw_dtype=kind
            )
        else:
            dtype = numpy.float32 if kind == gguf.GGMLQuantizationType.F32 else numpy.float16
            writer.add_tensor_info(name, dims, numpy.dtype(dtype), n_bytes)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_ti_data_to_file()
    for name, dims in tensors:
        weight = random_weight(random, name, dims, shape)
        kind = PLAIN_TYPES[file_type] if len(dims) == 2 else gguf.GGMLQuantizationType.F32
        writer.write_tensor_data(gguf.quantize(weight, kind))
    writer.close()


def write(
    path: pathlib.Path, shape: Shape, file_type: str, tied: bool, seed: int, pure: bool
) -> None:
    """A file in any type; those that gguf cannot write go through F16 and llama.cpp's quantiser."""
    if file_type in PLAIN_TYPES:
        write_plain(path, shape, file_type, tied, seed)
        return
    oracles = pathlib.Path(__file__).resolve().parents[2] / "tests" / "oracles"
    sys.path.insert(0, str(oracles))
    import llama_cpp_oracle

    with tempfile.TemporaryDirectory(dir=path.parent) as directory:
        source = pathlib.Path(directory) / "f16.gguf"
        write_plain(source, shape, "F16", tied, seed)
        llama_cpp_oracle.quantize(source, path, file_type, pure, n_threads=0)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("path", type=pathlib.Path)
    parser.add_argument("--shape", choices=sorted(SHAPES), default="tiny")
    parser.add_argument(
        "--type", default="F16", help="F32, F16, BF16, or one that llama.cpp quantises to"
    )
    parser.add_argument("--untied", action="store_true", help="an output matrix of its own")
    parser.add_argument("--pure", action="store_true", help="every matrix in that type, no mixture")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    tied = not arguments.untied
    write(
        arguments.path,
        SHAPES[arguments.shape],
        arguments.type,
        tied,
        arguments.seed,
        arguments.pure,
    )


if __name__ == "__main__":
    main()
