"""What activations have in common, and what a quantiser's errors lose on them (docs/quantization.md, ADR 5).

MiniMind2-Small in torch f32 over WikiText-2. First, for each kind of matrix, least and most over the layers: how much of
the energy E[|x|²] of its inputs is that of their mean, the cosine of the mean with the first principal direction, and the
cosines with it of the means over the text that is built into Limpid and over random tokens. Then, for each type, over
the matrices that a file has in that type, the expected squared error of the products, E[|(Q - W) x|²], as a multiple of
llama.cpp's (geometric mean), and in brackets the share of it along the products W x themselves (mean).

    study_quantizer_errors.py [--types Q5_K_M,IQ4_XS] [--positions 1000]

Least squares: the file of `--no-calibrate` with the gain (src/tensor/quantize_gain.h) taken back, each block times what fits best.
"""

import argparse
import math
import os
import pathlib
import statistics
import sys
import tempfile

import gguf
import limpid_program
import torch
from input_moments import MeasuredLlama, Moments, random_tokens, text_of_the_program, tokens_of
from live_quantize import MINIMIND, peer_file, source_of, windows_of

FAMILY = "MiniMind2"
BLOCK = 256
TYPES = ["Q5_K_M", "Q4_K_M", "IQ4_XS", "Q3_K_M", "Q2_K"]
KINDS = {
    "Q, K, V": "attn_q",
    "attention output": "attn_output",
    "gate, up": "ffn_gate",
    "down": "ffn_down",
    "head": "token_embd",
}


def cosine(a: torch.Tensor, b: torch.Tensor) -> float:
    return (a @ b / (a.norm() * b.norm())).item()


def energy_rows(wiki: dict[str, Moments], text: dict[str, Moments], random: dict[str, Moments]):
    for kind, part in KINDS.items():
        names = [name for name in wiki if name.split(".")[-2] == part]
        facts = []
        for name in names:
            mean = wiki[name].mean
            facts.append(
                (
                    mean.square().sum().item() / wiki[name].energy,
                    abs(cosine(mean, wiki[name].directions(1)[0])),
                    cosine(mean, text[name].mean),
                    cosine(mean, random[name].mean),
                )
            )
        ranges = [f"{min(column):.3f} to {max(column):.3f}" for column in zip(*facts, strict=True)]
        yield f"| {kind} | " + " | ".join(ranges) + " |"


def product_error(error: torch.Tensor, source: torch.Tensor, second: torch.Tensor):
    """E[|error x|²], and the share of it that a multiple of source x makes up."""
    whole = ((error @ second) * error).sum().item()
    along = ((error @ second) * source).sum().item() ** 2
    return whole, along / ((source @ second) * source).sum().item() / whole


def without_gain(values: torch.Tensor, source: torch.Tensor) -> torch.Tensor:
    y, x = (matrix.unflatten(-1, (-1, BLOCK)) for matrix in (values, source))
    best = (x * y).sum(-1, keepdim=True) / (y * y).sum(-1, keepdim=True).clamp(min=1e-30)
    return (y * best).flatten(-2)


def tensors_of(path: pathlib.Path, file_type: str) -> dict[str, torch.Tensor]:
    """Those in the type that the file's is named for."""
    block_type = gguf.GGMLQuantizationType[file_type.removesuffix("_M")]
    return {
        tensor.name: torch.from_numpy(gguf.dequantize(tensor.data, block_type)).double()
        for tensor in gguf.GGUFReader(path).tensors
        if tensor.tensor_type == block_type
    }


def error_row(file_type: str, model: MeasuredLlama, moments: dict[str, Moments], n_threads: int):
    peer = tensors_of(peer_file(FAMILY, file_type, n_threads), file_type)
    source = {name: model.weights[name].double() for name in peer}
    files = {"llama.cpp": peer}
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "limpid.gguf"
        for label, options in (("plain", ("--no-calibrate",)), ("calibrated", ())):
            command = ("quantize", source_of(FAMILY), path, file_type, "-t", n_threads, *options)
            limpid_program.run(*command)
            files[label] = tensors_of(path, file_type)
    fitted = {name: without_gain(values, source[name]) for name, values in files["plain"].items()}
    cells, of_peer = [], None
    for values in (peer, fitted, files["plain"], files["calibrated"]):
        found = [
            product_error(values[name] - source[name], source[name], moments[name].second)
            for name in peer
        ]
        of_peer = of_peer or found
        logs = [math.log(a[0] / b[0]) for a, b in zip(found, of_peer, strict=True)]
        along = statistics.fmean(share for _, share in found)
        cells.append(f"{math.exp(statistics.fmean(logs)):.3f} ({100 * along:.1f} %)")
    moved = sum((files["plain"][n] != files["calibrated"][n]).sum().item() for n in peer)
    share = moved / sum(values.numel() for values in peer.values())
    return f"| {file_type} | {len(peer)} | " + " | ".join(cells) + f" | {100 * share:.2f} % |"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--types", type=lambda text: text.split(","), default=TYPES)
    parser.add_argument("--positions", type=int, default=1000)
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    arguments = parser.parse_args()
    if not MINIMIND.exists():
        print("skipped: needs ../shared/data")
        return limpid_program.EXIT_SKIPPED
    torch.set_num_threads(arguments.threads)
    model = MeasuredLlama(source_of(FAMILY), torch.float32)
    vocab_size = len(model.weights["token_embd.weight"])
    text = tokens_of(MINIMIND / "tokenizer.json", text_of_the_program())
    tokens = (
        windows_of(FAMILY, arguments.positions),
        [text],
        [random_tokens(len(text), vocab_size)],
    )
    moments = [model.moments_over(windows) for windows in tokens]
    print(f"{len(text)} tokens of text and random ones")
    print("| read by | energy of the mean | first direction | text | random tokens |")
    print("|---|---|---|---|---|")
    for row in energy_rows(*moments):
        print(row, flush=True)
    print("\n| type | matrices | llama.cpp | least squares | with the gain | calibrated | moved |")
    print("|---|---|---|---|---|---|---|")
    for file_type in arguments.types:
        print(error_row(file_type, model, moments[0], arguments.threads), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
