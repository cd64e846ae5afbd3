"""Tokenizer speed beside `tokenizers`, `tiktoken` and llama.cpp: one thread, same bytes, same run, A B A B.

    compare_tokenizers.py --vocabulary llama3 --text english      one row of the table in docs/performance.md
    compare_tokenizers.py                                         Llama 3 on all three texts
    compare_tokenizers.py --peer 'name=COMMAND'                   one tokenizer more, see tokenizer_peers.Program

English is from `classic_books_20mb.txt`, code is as much of Python's standard library as of the machine's C and C++
headers, in an order that their names decide, UDHR the Universal Declaration of Human Rights in 389 languages, whole.
Each cell is the best of --rounds, in 10^6 bytes of text per second of processor time, and in brackets how many times
that Limpid does. `limpid, first pass` is a new process each time, which has met no word; `limpid` has met them all.
Every peer's ids are compared with ours. Needs tools/requirements-light.txt, for llama.cpp
tools/requirements-oracles.txt, and the texts beside the clone.
"""

from __future__ import annotations

import argparse
import dataclasses
import functools
import hashlib
import importlib.util
import pathlib
import subprocess
import sys
import sysconfig
import tempfile
import zipfile
from collections.abc import Callable

import numpy
import tokenizer_peers as peers

ROOT = pathlib.Path(__file__).resolve().parents[1]
SHARED = ROOT.parent / "shared" / "data"
TOKENIZERS = SHARED / "tokenizers"


@dataclasses.dataclass
class Vocabulary:
    """The files of ../shared/data/tokenizers that have it: which of the peers can read them."""

    ours: str
    tokenizer_json: str | None = None  # for `tokenizers`, and made into a GGUF file for llama.cpp
    ranks: str | None = None  # for `tiktoken`


def from_json(name: str, ranks: str | None = None) -> Vocabulary:
    return Vocabulary(f"{name}_tokenizer.json", f"{name}_tokenizer.json", ranks)


VOCABULARIES = {
    "llama3": from_json("llama3.1", "llama3_tokenizer.model"),
    "gpt2": from_json("gpt2", "r50k_base.tiktoken"),
    "cl100k": Vocabulary("cl100k_base.tiktoken", ranks="cl100k_base.tiktoken"),
    "o200k": Vocabulary("o200k_base.tiktoken", ranks="o200k_base.tiktoken"),
    "qwen2.5": from_json("qwen2.5"),
    "smollm2": from_json("smollm2"),
}
TEXTS = ("english", "code", "udhr")


def english(n_bytes: int) -> bytes:
    return (SHARED / "text" / "classic_books_20mb.txt").read_bytes()[:n_bytes]


def code(n_bytes: int) -> bytes:
    """As many bytes of Python as of C and C++, whole files, by the hash of their paths."""
    half = n_bytes // 2
    joined = b""
    for root, suffixes in (
        (sysconfig.get_paths()["stdlib"], (".py",)),
        ("/usr/include", (".h", ".hpp")),
    ):
        files = [p for p in pathlib.Path(root).rglob("*") if p.suffix in suffixes]
        files = [p for p in files if p.is_file() and "site-packages" not in p.parts]
        files.sort(key=lambda p: hashlib.sha1(str(p.relative_to(root)).encode()).digest())
        part = b""
        for path in files:
            if len(part) >= half:
                break
            part += path.read_bytes()
        joined += part[:half]
    return joined


def udhr(_: int) -> bytes:
    with zipfile.ZipFile(SHARED / "text" / "udhr2.zip") as archive:
        names = sorted(name for name in archive.namelist() if name.endswith(".txt"))
        return b"".join(archive.read(name) for name in names)


def valid_utf8(raw: bytes) -> bytes:
    return raw.decode("utf-8", errors="replace").encode()


def contestants(
    arguments: argparse.Namespace, vocabulary: Vocabulary, folder: pathlib.Path
) -> dict[str, Callable]:
    """name -> what opens it for a text."""
    partial = functools.partial
    ours = partial(peers.limpid, arguments.program, TOKENIZERS / vocabulary.ours)
    found = {"limpid": ours, "limpid, first pass": partial(ours, kind=peers.FirstPass)}
    for peer in arguments.peer:
        name, _, command = peer.partition("=")
        found[name] = partial(peers.named_command, command)
    if vocabulary.ranks:
        found["tiktoken"] = partial(peers.tiktoken, TOKENIZERS / vocabulary.ranks)
    if vocabulary.tokenizer_json and not arguments.fast_only:
        source = TOKENIZERS / vocabulary.tokenizer_json
        found["tokenizers"] = partial(peers.hugging_face, source)
        if importlib.util.find_spec("llama_cpp") is None:
            print("llama.cpp is left out: there is no llama_cpp (tools/requirements-oracles.txt)")
            return found
        model = folder / f"{source.stem}.gguf"
        maker = ROOT / "tools" / "golden" / "vocab_gguf.py"
        subprocess.run([sys.executable, str(maker), str(source), str(model)], check=True)
        found["llama.cpp"] = partial(peers.llama_cpp, model)
    return found


def agreement(ours: numpy.ndarray, theirs: numpy.ndarray) -> str:
    if len(ours) == len(theirs) and (ours == theirs).all():
        return "same ids"
    n = min(len(ours), len(theirs))
    first = int(numpy.argmax(ours[:n] != theirs[:n])) if (ours[:n] != theirs[:n]).any() else n
    return f"{len(theirs)} ids for our {len(ours)}, the first that differs is {first}"


def measure(arguments: argparse.Namespace, found: dict, label: str, raw: bytes) -> dict[str, float]:
    """10^6 bytes per second of each contestant, best of the rounds; says where ids differ."""
    with tempfile.NamedTemporaryFile() as file:
        file.write(raw)
        file.flush()
        opened = {name: make(pathlib.Path(file.name)) for name, make in found.items()}
        ours = opened["limpid"].ids()
        for name in found:
            if name != "limpid":
                print(f"{label}: {name}: {agreement(ours, opened[name].ids())}", flush=True)
        best = dict.fromkeys(found, float("inf"))
        for _ in range(arguments.rounds):
            for name in found:
                best[name] = min(best[name], opened[name].seconds())
        for contestant in opened.values():
            contestant.close()
    return {name: len(raw) / best[name] / 1e6 for name in found}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--vocabulary", choices=list(VOCABULARIES), action="append")
    parser.add_argument("--text", choices=TEXTS, action="append")
    parser.add_argument("--peer", action="append", default=[], metavar="NAME=COMMAND")
    parser.add_argument("--fast-only", action="store_true", help="no llama.cpp, no tokenizers")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--megabytes", type=float, default=6.0, help="of English and of code")
    parser.add_argument("--keep-texts", type=pathlib.Path, help="write the texts into this folder")
    parser.add_argument(
        "--program", type=pathlib.Path, default=ROOT / "build/release/bench/tokenizer_bench"
    )
    arguments = parser.parse_args()
    texts = {"english": english, "code": code, "udhr": udhr}
    n_bytes = int(arguments.megabytes * 1e6)
    raw = {name: valid_utf8(texts[name](n_bytes)) for name in arguments.text or TEXTS}
    if arguments.keep_texts:
        arguments.keep_texts.mkdir(parents=True, exist_ok=True)
        for name, data in raw.items():
            (arguments.keep_texts / f"{name}.txt").write_bytes(data)
    with tempfile.TemporaryDirectory() as folder:
        for vocabulary in arguments.vocabulary or ["llama3"]:
            found = contestants(arguments, VOCABULARIES[vocabulary], pathlib.Path(folder))
            print(f"| vocabulary | text | MB | {' | '.join(found)} |", flush=True)
            for name, data in raw.items():
                speeds = measure(arguments, found, name, data)
                cells = [
                    f"{speed:.1f} ({speeds['limpid'] / speed:.1f})" for speed in speeds.values()
                ]
                size = f"{len(data) / 1e6:.1f}"
                print(f"| {vocabulary} | {name} | {size} | {' | '.join(cells)} |", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
