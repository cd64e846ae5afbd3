"""What a quantiser gains by knowing the activations, and where it may know them from (ADR 5).

MiniMind2-Small in torch f32. Errors of a `limpid quantize --no-calibrate` file are settled (settled_file.py) along the mean
activation of each matrix, or along principal directions, measured on different tokens; KLD from the source over
WikiText-2 as a multiple of llama.cpp's file. The last row is the file that `limpid quantize` writes: it has to be the one
settled along the means of the built-in text, element by element (but for a few ties in a million). With --draws also models that compute the same with other weights in a block (equivalent_model.py), for one file's KLD is a draw.

    study_calibration.py [--types Q5_K_M,IQ4_XS] [--positions 2000] [--draws 3]
"""

import argparse
import dataclasses
import os
import pathlib
import statistics
import sys
import tempfile

import equivalent_model
import limpid_program
import llama_cpp_oracle
import settled_file
import torch
from gguf_llama import GgufLlama
from input_moments import (
    WINDOW,
    MeasuredLlama,
    Moments,
    random_tokens,
    text_of_the_program,
    tokens_of,
)
from live_kld import agreement
from live_quantize import MINIMIND, source_of, windows_of

FAMILY = "MiniMind2"
MOST_DIFFERING = 1e-5  # of the elements


@dataclasses.dataclass
class Way:
    """To know the activations: from which tokens, and what of them; no directions is their mean."""

    name: str
    windows: list[list[int]]
    n_directions: int = 0

    def of_matrix(self, moments: Moments) -> tuple[torch.Tensor, float]:
        """Directions [n, n_cols], and the variance of a column apart from them, as src/quantize/input_means.cpp has it."""
        directions = moments.mean[None]
        if self.n_directions:
            directions = moments.directions(self.n_directions)
        rest = moments.energy - directions.square().sum().item()
        return directions.float(), max(rest, 0.01 * moments.energy) / directions.shape[1]


def ways_over(wiki: list[list[int]], vocab_size: int) -> list[Way]:
    tokenizer = MINIMIND / "tokenizer.json"
    text = tokens_of(tokenizer, text_of_the_program())
    books = limpid_program.shared("text", "classic_books_20mb.txt").read_bytes()[:16000]
    book = tokens_of(tokenizer, books.decode(errors="ignore"))[: 2 * WINDOW]
    return [
        Way(f"mean, built-in text ({len(text)} tokens)", [text]),
        Way(f"mean, a book ({len(book)} tokens)", [book[:WINDOW], book[WINDOW:]]),
        Way(f"mean, {len(text)} random tokens", [random_tokens(len(text), vocab_size)]),
        Way("mean, `wiki.test.raw` itself", wiki),
        Way("first direction, built-in text", [text], 1),
        Way("eight directions, built-in text", [text], 8),
        Way("eight directions, `wiki.test.raw` itself", wiki, 8),
    ]


def check_same(settled: GgufLlama, program: GgufLlama) -> None:
    n_differing = sum((settled.weights[n] != w).sum().item() for n, w in program.weights.items())
    share = n_differing / sum(weights.numel() for weights in program.weights.values())
    if share > MOST_DIFFERING:
        raise SystemExit(
            f"error: {share:.2%} of the elements are not what `limpid quantize` writes"
        )


class Study:
    """Of the model at `source`; files are made in `folder`."""

    def __init__(self, source: pathlib.Path, folder: pathlib.Path, arguments) -> None:
        self.path, self.folder, self.n_threads = source, folder, arguments.threads
        self.windows = windows_of(FAMILY, arguments.positions)
        self.source = MeasuredLlama(source, torch.float32)
        self.measure = [self.source.logits(ids) for ids in self.windows]
        self.ways = ways_over(self.windows, self.measure[0].shape[1])
        self.moments = [self.source.moments_over(way.windows) for way in self.ways]

    def kld(self, model: GgufLlama) -> float:
        return agreement(self.measure, [model.logits(ids) for ids in self.windows]).kld

    def quantized(self, path: pathlib.Path, file_type: str, *options: str) -> GgufLlama:
        command = ("quantize", self.path, path, file_type, "-t", self.n_threads, *options)
        limpid_program.run(*command)
        return GgufLlama(path, torch.float32)

    def settle(self, model: GgufLlama, matrices, way: Way, moments: dict[str, Moments]) -> float:
        """Puts the settled matrices into the model; the share of their elements that moved."""
        n_moved = n_elements = 0
        for name, matrix in matrices.items():
            model.weights[name] = matrix.settled(*way.of_matrix(moments[name]))
            n_moved += (model.weights[name] != matrix.values).sum().item()
            n_elements += matrix.values.numel()
        return n_moved / n_elements

    def rows(self, file_type: str):
        """Yields (what was known, KLD, share of elements moved or None), llama.cpp's first, the program's last."""
        path = self.folder / "quantized.gguf"
        llama_cpp_oracle.quantize(self.path, path, file_type, False, n_threads=self.n_threads)
        yield "llama.cpp", self.kld(GgufLlama(path, torch.float32)), None
        model = self.quantized(path, file_type, "--no-calibrate")
        yield "nothing", self.kld(model), None
        matrices = settled_file.matrices_of(path, self.source.weights)
        program = self.quantized(path, file_type)
        for way, moments in zip(self.ways, self.moments, strict=True):
            share = self.settle(model, matrices, way, moments)
            if way is self.ways[0]:
                check_same(model, program)
            yield way.name, self.kld(model), share
        yield "`limpid quantize`", self.kld(program), None


def study_model(seed: int, arguments: argparse.Namespace, ratios: dict[tuple, list[float]]) -> None:
    """Prints the rows of the model as released (seed 0) or of one equivalent to it."""
    with tempfile.TemporaryDirectory() as folder:
        source = source_of(FAMILY)
        if seed:
            drawn = pathlib.Path(folder) / "source.gguf"
            equivalent_model.write(source, drawn, seed)
            source = drawn
        study = Study(source, pathlib.Path(folder), arguments)
        for file_type in arguments.types:
            of_peer = None
            for name, kld, share in study.rows(file_type):
                of_peer = of_peer or kld
                ratios.setdefault((file_type, name), []).append(kld / of_peer)
                moved = "" if share is None else f"{100 * share:.2f} %"
                row = f"| {seed} | {file_type} | {name} | {kld:.3e} | {kld / of_peer:.3f} |"
                print(f"{row} {moved} |", flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--types", type=lambda text: text.split(","), default=["Q5_K_M", "IQ4_XS"])
    parser.add_argument("--positions", type=int, default=2000)
    parser.add_argument("--draws", type=int, default=0, help="default: the model as released only")
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    arguments = parser.parse_args()
    if not MINIMIND.exists():
        print("skipped: needs ../shared/data")
        return limpid_program.EXIT_SKIPPED
    torch.set_num_threads(arguments.threads)
    print("| draw | type | known | KLD | of llama.cpp's | moved |\n|---|---|---|---|---|---|")
    ratios: dict[tuple, list[float]] = {}
    for seed in range(arguments.draws + 1):
        study_model(seed, arguments, ratios)
    if arguments.draws:
        print("\n| type | known | geometric mean |\n|---|---|---|")
        for (file_type, name), values in ratios.items():
            print(f"| {file_type} | {name} | {statistics.geometric_mean(values):.3f} |")
    return 0


if __name__ == "__main__":
    sys.exit(main())
