"""What quantising costs, beside llama.cpp's quantiser: KLD and top-1 agreement on WikiText-2.

Both quantisers make a file from the same source, and both files run on Limpid's cpu executor, so that nothing but the
quantisers differs. The measure is the source itself on the same executor. Sources: SmolLM2-135M-Instruct, dequantised
(its rows of 576 fit the types of 32), and MiniMind2-Small, f16 as released (rows of 512 fit the K types). Types and
sizes of every tensor must be the same in both files, and the ratio of the KLDs at most 10 % above what was measured.

    live_quantize.py [--types SmolLM2-Q4_0,MiniMind2-Q4_K_M] [--positions 8000] [--draws 4] [--no-calibrate]

With --draws also on as many models that compute the same with other weights in one block (equivalent_model.py), whose
geometric mean is what tells the quantisers apart: the ratio of one file may lie anywhere between half and twice of it.
With --no-calibrate, which goes on to `limpid quantize`, ratios are only printed: some of them are above 1 by chance.

Made files are kept in ${XDG_CACHE_HOME:-~/.cache}/limpid/oracles, those of Limpid are made each time.
"""

import argparse
import json
import math
import os
import pathlib
import statistics
import sys
import tempfile

import equivalent_model
import gguf
import limpid_program
import llama_cpp_oracle
import numpy
from live_kld import ORACLES, agreement

WINDOW = 500
N_CTX = 512
MINIMIND = limpid_program.SHARED / "models" / "minimind2-small"
POSITIONS = {"SmolLM2": 2000, "MiniMind2": 8000}
# Limpid's KLD over llama.cpp's as measured at these positions (docs/quantization.md).
RATIOS = {
    "SmolLM2": {
        "Q4_0": 0.843,
        "Q4_1": 1.000,
        "Q5_0": 0.821,
        "Q5_1": 0.014,
        "Q8_0": 0.972,
        "IQ4_NL": 0.776,
    },
    "MiniMind2": {
        "Q2_K": 0.405,
        "Q3_K_M": 0.746,
        "Q4_K_S": 0.663,
        "Q4_K_M": 0.547,
        "Q5_K_M": 0.673,
        "Q6_K": 0.481,
        "IQ4_XS": 0.639,
    },
}
MARGIN = 1.1
LARGEST_LIMIT = 1.01
for name in ("Q3_K_S", "Q3_K_L", "Q4_K_S", "Q5_K_S"):
    llama_cpp_oracle.FILE_TYPES.setdefault(
        name, getattr(llama_cpp_oracle.llama_cpp, f"LLAMA_FTYPE_MOSTLY_{name}")
    )


def source_of(family: str) -> pathlib.Path:
    """The unquantised model as GGUF."""
    ORACLES.mkdir(parents=True, exist_ok=True)
    path = ORACLES / f"{family}-source.gguf"
    if path.exists():
        return path
    partial = path.with_suffix(".partial.gguf")
    if family == "SmolLM2":
        llama_cpp_oracle.quantize(limpid_program.SMOLLM2, partial, "F32", False, n_threads=0)
    else:
        limpid_program.run("convert", MINIMIND, partial)
    partial.replace(path)
    return path


def peer_file(family: str, file_type: str, threads: int) -> pathlib.Path:
    """What llama.cpp makes of the source."""
    path = ORACLES / f"{family}-{file_type}.llama.gguf"
    if not path.exists():
        llama_cpp_oracle.quantize(source_of(family), path, file_type, False, n_threads=threads)
    return path


def windows_of(family: str, n_positions: int) -> list[list[int]]:
    text = limpid_program.shared("text", "wiki.test.raw").read_text(encoding="utf-8")
    tokenizer = source_of(family) if family == "SmolLM2" else MINIMIND / "tokenizer.json"
    out = limpid_program.run(
        "tokenize", "-m", tokenizer, "--no-bos", "--ids", stdin=text[: n_positions * 8].encode()
    )
    ids = json.loads(out)[:n_positions]
    return [ids[begin : begin + WINDOW] for begin in range(0, len(ids), WINDOW)]


def logits_of(path: pathlib.Path, windows: list[list[int]], threads: int) -> list[numpy.ndarray]:
    options = ("-c", N_CTX, "-t", threads, "-ctk", "f32", "-ctv", "f32")
    return [limpid_program.logits(path, ids, *options) for ids in windows]


def types_of(path: pathlib.Path) -> dict[str, str]:
    return {tensor.name: tensor.tensor_type.name for tensor in gguf.GGUFReader(path).tensors}


def quantize(source: pathlib.Path, target: pathlib.Path, file_type: str, arguments) -> None:
    options = ["--no-calibrate"] if arguments.no_calibrate else []
    limpid_program.run("quantize", source, target, file_type, "-t", arguments.threads, *options)


def ratio_of_draw(name: str, seed: int, measure, windows, arguments) -> float:
    """Limpid's KLD over llama.cpp's for an equivalent model; `measure` is the model's own."""
    family, file_type = name.split("-", 1)
    threads = arguments.threads
    with tempfile.TemporaryDirectory() as folder:
        source, theirs, ours = (pathlib.Path(folder) / n for n in ("s.gguf", "t.gguf", "o.gguf"))
        equivalent_model.write(source_of(family), source, seed)
        llama_cpp_oracle.quantize(source, theirs, file_type, False, n_threads=threads)
        quantize(source, ours, file_type, arguments)
        found = [agreement(measure, logits_of(path, windows, threads)) for path in (theirs, ours)]
    print(
        f"| {name} | draw {seed} | {found[0].kld:.3e} | {found[1].kld:.3e} "
        f"| {found[1].kld / found[0].kld:.3f} |",
        flush=True,
    )
    return found[1].kld / found[0].kld


def compare_draws(name: str, measure, windows, arguments) -> None:
    n_draws = arguments.draws
    logs = [
        math.log(ratio_of_draw(name, seed, measure, windows, arguments))
        for seed in range(1, n_draws + 1)
    ]
    error = statistics.stdev(logs) / math.sqrt(n_draws) if n_draws > 1 else math.nan
    mean = math.exp(statistics.fmean(logs))
    print(
        f"| {name} | {n_draws} draws | mean {mean:.3f} | standard error {error:.3f} |", flush=True
    )


def compare(name: str, measure, windows, arguments) -> list[str]:
    family, file_type = name.split("-", 1)
    threads = arguments.threads
    theirs = peer_file(family, file_type, threads)
    problems = []
    with tempfile.TemporaryDirectory() as folder:
        ours = pathlib.Path(folder) / "ours.gguf"
        quantize(source_of(family), ours, file_type, arguments)
        peer, own = types_of(theirs), types_of(ours)
        for tensor in sorted(peer.keys() | own.keys()):
            if peer.get(tensor) != own.get(tensor):
                problems.append(
                    f"{name}: {tensor} is {own.get(tensor)}, llama.cpp's {peer.get(tensor)}"
                )
        found = [agreement(measure, logits_of(path, windows, threads)) for path in (theirs, ours)]
        size = ours.stat().st_size / 1e6
    ratio = found[1].kld / found[0].kld
    print(
        f"| {family} | {file_type} | {size:.1f} | {found[0].kld:.3e} | {found[1].kld:.3e} | {ratio:.3f} "
        f"| {found[0].top1:.4f} | {found[1].top1:.4f} |",
        flush=True,
    )
    limit = limit_of(family, file_type, arguments)
    if ratio > limit:
        problems.append(f"{name}: {ratio:.3f} of llama.cpp's KLD, above {limit:.3f}")
    return problems


def limit_of(family: str, file_type: str, arguments: argparse.Namespace) -> float:
    """What was measured holds for the default positions and types."""
    if arguments.no_calibrate:
        return math.inf
    if arguments.positions or file_type not in RATIOS[family]:
        return LARGEST_LIMIT
    return min(MARGIN * RATIOS[family][file_type], LARGEST_LIMIT)


def main() -> int:
    all_names = [f"{family}-{t}" for family, types in RATIOS.items() for t in types]
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--types", type=lambda text: text.split(","), default=all_names)
    parser.add_argument("--positions", type=int, help="default: as in POSITIONS")
    parser.add_argument("--draws", type=int, default=0, help="MiniMind2 only; default: none")
    parser.add_argument(
        "--no-calibrate",
        action="store_true",
        help="passed to `limpid quantize`; ratios are then only printed",
    )
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    arguments = parser.parse_args()
    if not (limpid_program.SHARED / "text" / "wiki.test.raw").exists():
        print("skipped: needs ../shared/data/text/wiki.test.raw")
        return limpid_program.EXIT_SKIPPED
    if not limpid_program.SMOLLM2.exists():
        print("skipped part: the types of SmolLM2 need the model (`make model`)")
        arguments.types = [name for name in arguments.types if not name.startswith("SmolLM2")]
    print(
        "| model | type | MB | llama.cpp KLD | Limpid KLD | ratio | llama.cpp top-1 | Limpid top-1 |"
    )
    print("|---|---|---|---|---|---|---|---|")
    problems = []
    for family in RATIOS:
        names = [name for name in arguments.types if name.startswith(family + "-")]
        if not names:
            continue
        windows = windows_of(family, arguments.positions or POSITIONS[family])
        measure = logits_of(source_of(family), windows, arguments.threads)
        for name in names:
            problems += compare(name, measure, windows, arguments)
            if arguments.draws and family == "MiniMind2":
                compare_draws(name, measure, windows, arguments)
    for problem in problems:
        print(f"error: {problem}", file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
