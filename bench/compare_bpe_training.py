"""Training BPE beside `tokenizers` and `rustbpe`: two threads, same bytes, same run, A B A B.

    compare_bpe_training.py --text english --vocab-size 8000 --rounds 3
    compare_bpe_training.py --peer-python VENV/bin/python      an interpreter that has rustbpe

The texts are those of compare_tokenizers.py. All three learn from lines, because `tokenizers` reads files so, and
only then counts words on several threads. Limpid's time is that of the whole process, from its start to the written
tokenizer.json; a peer's begins when its package is imported and its file is open, and ends with the training. Each
cell has the best of --rounds: seconds, and seconds of processor time, which other work on the machine disturbs less,
each with how many times Limpid's that is in brackets. The merges of `tokenizers`
must be ours. `rustbpe` numbers bytes differently and so breaks ties differently: for it, how many of its tokens are
ours too. Needs tools/requirements-light.txt, the texts beside the clone, and rustbpe 0.1.0 for the third column.
"""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import resource
import subprocess
import sys
import tempfile
import time

from this_machine import cpu_name

ROOT = pathlib.Path(__file__).resolve().parents[1]
ORACLES = ROOT / "tests" / "oracles"
N_THREADS = 2
PEERS = ("tokenizers", "rustbpe")
TEXTS = ("english", "code", "udhr")
GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"


class Clock:
    """Seconds, and seconds of this process's processor time, since it was made."""

    def __init__(self) -> None:
        self.start = time.perf_counter(), time.process_time()

    def read(self) -> list[float]:
        return [time.perf_counter() - self.start[0], time.process_time() - self.start[1]]


def train_tokenizers(path: str, pre_tokenizer: str, vocab_size: int) -> tuple[list[float], list]:
    sys.path.insert(0, str(ORACLES))
    import bpe_training_reference as reference

    tokenizer = reference.untrained(pre_tokenizer)
    trainer = reference.trainer(vocab_size, [])
    clock = Clock()
    tokenizer.train([path], trainer)
    seconds = clock.read()
    return seconds, reference.pieces_and_merges(tokenizer.to_str())[1]


def train_rustbpe(path: str, pre_tokenizer: str, vocab_size: int) -> tuple[list[float], list]:
    import rustbpe

    sys.path.insert(0, str(ORACLES))
    from tokenizer_reference import cl100k

    patterns = {"gpt2": GPT2, "llama3": cl100k(r"\p{N}{1,3}"), "qwen2": cl100k(r"\p{N}")}
    tokenizer = rustbpe.Tokenizer()
    with open(path, encoding="utf-8", newline="\n") as lines:
        clock = Clock()
        tokenizer.train_from_iterator(lines, vocab_size, pattern=patterns[pre_tokenizer])
        seconds = clock.read()
    return seconds, [bytes(piece).hex() for piece, rank in tokenizer.get_mergeable_ranks()]


def child(arguments: list[str]) -> None:
    """In a process of its own: trains one peer and prints its seconds and what it learned."""
    name, path, pre_tokenizer, vocab_size = arguments
    train = {"tokenizers": train_tokenizers, "rustbpe": train_rustbpe}[name]
    print(json.dumps(train(path, pre_tokenizer, int(vocab_size))))


def run_peer(python: str, name: str, case: list[str]) -> tuple[list[float], list[str]]:
    command = [python, __file__, "--child", name, *case]
    environment = {**os.environ, "RAYON_NUM_THREADS": str(N_THREADS)}
    environment["TOKENIZERS_PARALLELISM"] = "true"
    done = subprocess.run(command, env=environment, check=True, stdout=subprocess.PIPE)
    seconds, learned = json.loads(done.stdout)
    return seconds, learned


def run_limpid(program: pathlib.Path, case: list[str]) -> tuple[list[float], dict]:
    path, pre_tokenizer, vocab_size = case
    with tempfile.NamedTemporaryFile(suffix=".json") as out:
        command = [program, "tokenizer", "train", path, "--lines", "-o", out.name]
        command += ["--pre-tokenizer", pre_tokenizer, "--vocab-size", vocab_size]
        command += ["-t", str(N_THREADS)]
        start, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(command, check=True, stderr=subprocess.DEVNULL)
        seconds, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
        cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        written = json.loads(pathlib.Path(out.name).read_text(encoding="utf-8"))
        return [seconds, cpu], written["model"]


def byte_alphabet() -> dict[str, int]:
    """GPT-2's spelling of bytes, character -> byte."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = iter(range(256, 512))
    return {chr(byte if byte in printable else next(others)): byte for byte in range(256)}


def agreement(name: str, learned: list[str], ours: dict) -> str:
    merges = [merge if isinstance(merge, str) else " ".join(merge) for merge in ours["merges"]]
    if name == "tokenizers":
        if learned == merges:
            return "same merges"
        return f"{len(learned)} merges for our {len(merges)}, not the same"
    alphabet = byte_alphabet()
    pieces = {bytes(alphabet[c] for c in piece).hex() for piece in ours["vocab"]}
    return f"{len(pieces & set(learned))} of its {len(learned)} tokens are ours"


def measure(arguments: argparse.Namespace, found: list[str], case: list[str]) -> dict[str, list]:
    """The best seconds and the best processor time of each; says what differs."""
    best = {name: [float("inf")] * 2 for name in ["limpid", *found]}
    for i in range(arguments.rounds):
        for name in best:
            if name == "limpid":
                seconds, ours = run_limpid(arguments.program, case)
            else:
                seconds, learned = run_peer(arguments.peer_python, name, case)
                if i == 0:
                    print(f"{name}: {agreement(name, learned, ours)}", flush=True)
            best[name] = [min(pair) for pair in zip(best[name], seconds, strict=True)]
    return best


def available(python: str) -> list[str]:
    found = []
    for name in PEERS:
        done = subprocess.run([python, "-c", f"import {name}"], stderr=subprocess.DEVNULL)
        if done.returncode == 0:
            found.append(name)
        else:
            print(f"{name} is left out: {python} has no {name}")
    return found


def cell(seconds: list[float], ours: list[float]) -> str:
    parts = [f"{t:.2f} ({t / our:.1f})" for t, our in zip(seconds, ours, strict=True)]
    return ", ".join(parts)


def main() -> int:
    if sys.argv[1:2] == ["--child"]:
        child(sys.argv[2:])
        return 0
    import compare_tokenizers

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--text", choices=TEXTS, action="append")
    parser.add_argument("--vocab-size", type=int, action="append")
    parser.add_argument("--pre-tokenizer", choices=["gpt2", "llama3", "qwen2"], default="gpt2")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--megabytes", type=float, default=20.0, help="of English and of code")
    parser.add_argument("--program", type=pathlib.Path, default=ROOT / "build/release/limpid")
    parser.add_argument("--peer-python", default=sys.executable)
    arguments = parser.parse_args()
    found = available(arguments.peer_python)
    load = os.getloadavg()[0]
    print(f"{cpu_name()}, {N_THREADS} threads, {arguments.pre_tokenizer}, load {load:.1f}")
    print(f"| text | MB | vocabulary | {' | '.join(['limpid', *found])} |", flush=True)
    for name in arguments.text or TEXTS:
        text = getattr(compare_tokenizers, name)(int(arguments.megabytes * 1e6))
        text = compare_tokenizers.valid_utf8(text)
        with tempfile.NamedTemporaryFile(suffix=".txt") as file:
            file.write(text)
            file.flush()
            for vocab_size in arguments.vocab_size or [1000, 8000, 32000]:
                case = [file.name, arguments.pre_tokenizer, str(vocab_size)]
                best = measure(arguments, found, case)
                cells = [cell(seconds, best["limpid"]) for seconds in best.values()]
                megabytes = f"{len(text) / 1e6:.1f}"
                print(f"| {name} | {megabytes} | {vocab_size} | {' | '.join(cells)} |", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
