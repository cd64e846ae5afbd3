"""Speed beside llama.cpp: same file, same threads, same run, A B A B.

    compare_llama_cpp.py                          SmolLM2 and a Llama-3.2-1B shape in Q8_0, Q4_0, Q4_K_M, F16
    compare_llama_cpp.py --model FILE -r 9        one file
    compare_llama_cpp.py --shapes tiny --keep     what is made stays in the cache

Each round runs `limpid bench` and then llama.cpp, each in a process of its own with a warm-up, so that what else the
machine does falls on both. Prefill is one prompt of -p tokens, decode -n tokens from an empty context, as
llama-bench counts them; llama.cpp has its defaults (f16 KV, flash attention auto, weights repacked). What counts
is the ratio of a pair: above 1 Limpid is faster. Needs tools/requirements-oracles.txt.
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "tests" / "oracles"), str(ROOT / "tools" / "golden")]
CACHE = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "limpid"
SMOLLM2 = CACHE / "models" / "SmolLM2-135M-Instruct.Q4_1.gguf"
TYPES = ["Q8_0", "Q4_0", "Q4_K_M", "F16"]


def cpu_name() -> str:
    for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return "unknown CPU"


def run_llama_cpp(
    path: pathlib.Path, n_prompt: int, n_gen: int, n_threads: int
) -> dict[str, float]:
    """Tokens per second of one prefill and one decode, in this process."""
    import llama_cpp_oracle
    import numpy

    n_ctx = max(512, n_prompt, n_gen)
    with llama_cpp_oracle.opened(path, n_ctx, n_threads) as model:
        ids = numpy.random.default_rng(1).integers(0, model.n_vocab, max(n_prompt, n_gen)).tolist()
        model.clear()
        model.decode(
            ids[: min(n_prompt, model.n_batch)], 0, wanted=False
        )  # warm-up: pages, threads
        model.clear()
        model.decode(ids[:1], 0, wanted=False)
        speeds = {}

        model.clear()
        start = time.perf_counter()
        for begin in range(0, n_prompt, model.n_batch):
            model.decode(ids[begin : min(begin + model.n_batch, n_prompt)], begin, wanted=False)
        model.synchronize()
        speeds["prefill"] = n_prompt / (time.perf_counter() - start)

        model.clear()
        start = time.perf_counter()
        for position in range(n_gen):
            model.decode(ids[position : position + 1], position, wanted=False)
            model.synchronize()
        speeds["decode"] = n_gen / (time.perf_counter() - start)
        return speeds


def run_peer(arguments: argparse.Namespace, path: pathlib.Path) -> dict[str, float]:
    command = [sys.executable, __file__, "--peer", "--model", str(path)]
    command += ["-p", str(arguments.p), "-n", str(arguments.n), "-t", str(arguments.t)]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(f"llama.cpp: {done.stderr.strip()[-1000:]}")
    return json.loads(done.stdout)


def run_limpid(arguments: argparse.Namespace, path: pathlib.Path) -> dict[str, float]:
    command = [str(arguments.program), "bench", "-m", str(path), "-p", str(arguments.p)]
    command += ["-n", str(arguments.n), "-d", "0", "-t", str(arguments.t), "-r", "1", "-o", "json"]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(f"limpid bench: {done.stderr.strip()[-1000:]}")
    speeds = {}
    for test in json.loads(done.stdout):
        phase = "prefill" if test["n_prompt"] > 0 else "decode"
        speeds[phase] = test["avg_ts"]
    return speeds


def compare(arguments: argparse.Namespace, label: str, path: pathlib.Path) -> float:
    """Prints a row for each phase; returns the smaller of the median ratios."""
    pairs = []
    for _ in range(arguments.r):
        limpid = run_limpid(arguments, path)
        pairs.append((limpid, run_peer(arguments, path)))
    medians = []
    for phase in ("prefill", "decode"):
        ratios = sorted(limpid[phase] / peer[phase] for limpid, peer in pairs)
        ours, theirs = (statistics.median(pair[i][phase] for pair in pairs) for i in (0, 1))
        medians.append(statistics.median(ratios))
        row = f"| {label} | {phase} | {ours:.1f} | {theirs:.1f} "
        print(row + f"| {ratios[0]:.2f} | {medians[-1]:.2f} | {ratios[-1]:.2f} |", flush=True)
    return min(medians)


def made_files(arguments: argparse.Namespace):
    """Yields (label, path) of random weights in each type; removes each file after its turn unless --keep."""
    import llama_cpp_oracle
    import random_llama_gguf

    folder = CACHE / "bench"
    folder.mkdir(parents=True, exist_ok=True)
    for shape in arguments.shapes:
        plain = folder / f"{shape}-F16.gguf"
        if not plain.exists():
            partial = plain.with_suffix(".partial")
            random_llama_gguf.write_plain(partial, random_llama_gguf.SHAPES[shape], "F16", True, 1)
            partial.replace(plain)
        try:
            for file_type in arguments.types:
                path = folder / f"{shape}-{file_type}.gguf"
                if not path.exists():
                    llama_cpp_oracle.quantize(plain, path, file_type, False, n_threads=0)
                yield f"{shape} {file_type}", path
                if not arguments.keep and path != plain:
                    path.unlink()
        finally:
            if not arguments.keep:
                plain.unlink()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", type=pathlib.Path, help="only this file")
    parser.add_argument("--shapes", type=lambda text: text.split(","), default=["llama-3.2-1b"])
    parser.add_argument("--types", type=lambda text: text.split(","), default=TYPES)
    parser.add_argument("--keep", action="store_true", help="keep the files that are made")
    parser.add_argument(
        "--program", type=pathlib.Path, default=ROOT / "build" / "release" / "limpid"
    )
    parser.add_argument("--require", type=float, default=0.0, help="fail below this median ratio")
    parser.add_argument("--peer", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("-p", type=int, default=512, help="tokens of the prompt")
    parser.add_argument("-n", type=int, default=128, help="tokens to decode")
    parser.add_argument("-t", type=int, default=os.cpu_count(), help="threads")
    parser.add_argument("-r", type=int, default=5, help="rounds")
    arguments = parser.parse_args()
    if arguments.peer:
        print(json.dumps(run_llama_cpp(arguments.model, arguments.p, arguments.n, arguments.t)))
        return 0

    print(f"{cpu_name()}, {arguments.t} threads, {arguments.r} rounds; tokens/s are medians\n")
    print(
        "| file | phase | limpid | llama.cpp | ratio min | median | max |\n|---|---|---|---|---|---|---|"
    )
    if arguments.model:
        worst = compare(arguments, arguments.model.stem, arguments.model)
    else:
        ratios = [compare(arguments, SMOLLM2.stem, SMOLLM2)] if SMOLLM2.exists() else []
        ratios += [compare(arguments, label, path) for label, path in made_files(arguments)]
        worst = min(ratios)
    return 1 if worst < arguments.require else 0


if __name__ == "__main__":
    sys.exit(main())
