"""Speed beside llama.cpp: same file, same threads, same run, in turns.

    compare_llama_cpp.py                          SmolLM2 and a Llama-3.2-1B shape in five types
    compare_llama_cpp.py --model FILE -r 9        one file
    compare_llama_cpp.py --shapes tiny --keep     what is made stays in the cache
    compare_llama_cpp.py --depth 4096             decode after a prompt of so many tokens

Both programs hold the model open, and a turn is a prompt of -p tokens or a few tokens of decode. They change about so
often that what else the machine does, and how it changes from second to second, falls on both: of turns in a row by one
and then by the other, a shared host made ratios from 0.8 to 1.2. llama.cpp has its defaults (f16 KV, flash attention
auto, weights repacked, activations of BF16 files rounded to bf16; `--products bf16` makes Limpid do that too). What counts is the ratio of the two turns of a round: above 1 Limpid is faster. A third turn of
a round of decode only reads as many bytes as the weights have: "of reading" is its time over that of decode, so 100 %
is as fast as memory is. Needs tools/requirements-oracles.txt and the program of bench/model_turns.cpp.
"""

import argparse
import os
import pathlib
import statistics
import subprocess
import sys
import time

from this_machine import CACHE, SMOLLM2, cpu_name

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "tests" / "oracles"), str(ROOT / "tools" / "golden")]
TYPES = ["Q8_0", "Q4_0", "Q4_K_M", "F16", "BF16"]
ROOM = 1024  # tokens of context of both beyond --depth


def serve_llama_cpp(path: pathlib.Path, n_threads: int, context: int) -> None:
    """What bench/model_turns.cpp does, by llama.cpp."""
    import llama_cpp_oracle
    import numpy

    random = numpy.random.default_rng(1)
    with llama_cpp_oracle.opened(path, context, n_threads) as model:
        position = 0
        print("ready", flush=True)
        for line in sys.stdin:
            phase, count = line.split()
            n_tokens = int(count)
            if phase == "prefill" or position + n_tokens > context:
                model.clear()
                position = 0
            ids = random.integers(0, model.n_vocab, n_tokens).tolist()
            size = min(n_tokens, model.n_batch) if phase == "prefill" else 1
            start = time.perf_counter()
            for begin in range(0, n_tokens, size):
                part = ids[begin : begin + size]
                model.decode(part, position, wanted=False)
                model.synchronize()
                position += len(part)
            print(time.perf_counter() - start, flush=True)


class Player:
    """A program that evaluates tokens when it is its turn."""

    def __init__(self, command: list[str]) -> None:
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.read("ready")

    def read(self, what: str) -> str:
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError(f"{self.process.args[:2]} ended before {what}; see above")
        return line

    def take(self, phase: str, n_tokens: int) -> float:
        """Seconds of a turn."""
        self.process.stdin.write(f"{phase} {n_tokens}\n")
        self.process.stdin.flush()
        return float(self.read(phase))

    def close(self) -> None:
        self.process.stdin.close()
        self.process.wait()


def play(parts: list[tuple[Player, str]], n_tokens: int, n_rounds: int) -> list[list[float]]:
    """Seconds of each turn of each part (a player and a phase), after a turn each to warm up. The order changes from
    round to round."""
    seconds = [[] for _ in parts]
    for player, phase in parts:
        player.take(phase, n_tokens)
    for i in range(n_rounds):
        order = list(enumerate(parts))
        for j, (player, phase) in order if i % 2 == 0 else reversed(order):
            seconds[j].append(player.take(phase, n_tokens))
    return seconds


def compare(arguments: argparse.Namespace, label: str, path: pathlib.Path) -> float:
    """Prints a row for each phase; returns the smaller of the median ratios."""
    threads, context = str(arguments.t), str(arguments.depth + ROOM)
    limpid = Player([str(arguments.program), str(path), threads, context, arguments.products])
    command = [sys.executable, __file__, "--peer", "--model", str(path), "-t", threads]
    peer = Player([*command, "--depth", str(arguments.depth)])
    # As long a turn for a small model as for a large one, and as many seconds in all for both phases.
    speed = 8 / limpid.take("decode", 8)
    n_decoded = max(2, min(arguments.n, round(speed / 8)))
    medians = []
    for phase, n_tokens, n_rounds in (
        ("prefill", arguments.p, arguments.r),
        ("decode", n_decoded, arguments.r * 8),
    ):
        parts = [(limpid, phase), (peer, phase)]
        if phase == "decode":
            parts.append((limpid, "read"))  # the bytes of weights that decode must read
            if arguments.depth > 0:
                # Never from an empty context.
                n_tokens = max(1, min(n_tokens, ROOM // (n_rounds + 1)))
                limpid.take("prefill", arguments.depth)
                peer.take("prefill", arguments.depth)
        ours, theirs, *limit = play(parts, n_tokens, n_rounds)
        ratios = statistics.quantiles((b / a for a, b in zip(ours, theirs, strict=True)), n=4)
        medians.append(ratios[1])
        speeds = [n_tokens / statistics.median(turns) for turns in (ours, theirs)]
        row = f"| {label} | {phase} | {speeds[0]:.1f} | {speeds[1]:.1f} "
        row += f"| {ratios[0]:.2f} | {ratios[1]:.2f} | {ratios[2]:.2f} "
        shares = [read / our for read, our in zip(*limit, ours, strict=True)] if limit else []
        share = f"{statistics.median(shares):.0%}" if shares else ""
        row += f"| {sum(theirs) / sum(ours):.2f} | {share} | {n_rounds} x {n_tokens} |"
        print(row, flush=True)
    limpid.close()
    peer.close()
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
        "--program", type=pathlib.Path, default=ROOT / "build" / "release" / "bench" / "model_turns"
    )
    parser.add_argument(
        "--products", choices=["f32", "bf16"], default="f32", help="of Limpid, with BF16 files"
    )
    parser.add_argument("--require", type=float, default=0.0, help="fail below this median ratio")
    parser.add_argument("--peer", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("-p", type=int, default=512, help="tokens of the prompt")
    parser.add_argument("-n", type=int, default=128, help="tokens to decode in a turn at most")
    parser.add_argument("--depth", type=int, default=0, help="tokens in the context before decode")
    parser.add_argument("-t", type=int, default=os.cpu_count(), help="threads")
    parser.add_argument(
        "-r", type=int, default=10, help="rounds of prompts; 8 times as many of decode"
    )
    arguments = parser.parse_args()
    if not 0 < max(arguments.p, arguments.n) <= ROOM:
        parser.error(f"-p and -n: at most {ROOM}")
    if arguments.peer:
        serve_llama_cpp(arguments.model, arguments.t, arguments.depth + ROOM)
        return 0

    print(f"{cpu_name()}, {arguments.t} threads; tokens/s are medians\n")
    print(
        "| file | phase | limpid | llama.cpp | ratio q1 | median | q3 | of all time | of reading | turns |"
    )
    print("|---|---|---|---|---|---|---|---|---|---|")
    if arguments.model:
        worst = compare(arguments, arguments.model.stem, arguments.model)
    else:
        ratios = [compare(arguments, SMOLLM2.stem, SMOLLM2)] if SMOLLM2.exists() else []
        ratios += [compare(arguments, label, path) for label, path in made_files(arguments)]
        worst = min(ratios)
    return 1 if worst < arguments.require else 0


if __name__ == "__main__":
    sys.exit(main())
