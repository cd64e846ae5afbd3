#!/usr/bin/env python3
"""`limpid tokenize --jsonl` against Hugging Face `tokenizers`, id for id.

First every scanner on the small vocabularies of tests/data/tokenizer, then the released vocabularies of
../shared/data/tokenizers, made into vocabulary-only GGUF files by tools/golden/vocab_gguf.py. Texts: the Universal
Declaration in all languages, all of ../shared/data/text, every code point, random Unicode, white space, repeats. By
default a subset that takes seconds; --all is everything, about an hour of one core, nearly all of it the reference's:
with --keep FOLDER digests of what it gave stay there, and the next run only asks it about texts that differ. Exits 1
on any difference.

usage: tokenizer_differential.py [--program build/release/limpid] [--all] [--keep FOLDER] [--vocabulary NAME]
"""

from __future__ import annotations

import argparse
import hashlib
import importlib.metadata
import json
import os
import random
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Iterator
from pathlib import Path

import numpy
import tokenizer_reference as reference
import tokenizers

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools" / "golden"))
import vocab_gguf  # noqa: E402

SHARED = ROOT.parent / "shared" / "data"
VOCABULARIES = ("llama3.1", "gpt2", "smollm2", "qwen2.5", "llama2")
SCALARS = [c for c in range(0x110000) if not 0xD800 <= c < 0xE000]


def corpora(everything: bool) -> Iterator[tuple[str, str]]:
    for path in sorted((SHARED / "text").iterdir()):
        if path.suffix == ".zip" or (path.stat().st_size > 2_000_000 and not everything):
            continue
        text = path.read_text(encoding="utf-8", errors="ignore")
        size = len(text) if everything else 20_000
        for start in range(0, size, 50_000):
            yield path.name, text[start : min(start + 50_000, size)]
    with zipfile.ZipFile(SHARED / "text" / "udhr2.zip") as archive:
        for member in sorted(archive.namelist()):
            if member.endswith(".txt"):
                text = archive.read(member).decode("utf-8", errors="replace")
                yield member, text if everything else text[500:900]


def code_points(everything: bool) -> Iterator[tuple[str, str]]:
    # Between letters, digits, spaces and punctuation: every scanner decides by a character's neighbours.
    chosen = SCALARS if everything else SCALARS[::199]
    for shape in ("{}", "a{}b", " {} ", "1{}2", "'{}s", "\n{}\n", "!{}?", "A{}a"):
        for start in range(0, len(chosen), 2000):
            joined = "\x00".join(shape.format(chr(c)) for c in chosen[start : start + 2000])
            yield f"code points {chosen[start]:04X}.. in {shape!r}", joined


def random_texts(everything: bool) -> Iterator[tuple[str, str]]:
    rng = random.Random(20260301)
    for i, text in enumerate(reference.random_texts(1, 40_000 if everything else 300)):
        yield f"bits {i}", text
    count = 20_000 if everything else 60
    for i in range(count):
        yield f"random {i}", "".join(chr(rng.choice(SCALARS)) for _ in range(rng.randint(1, 60)))
    for i in range(count):
        plane = rng.choice([range(0x20, 0x7F), range(0, 0x250), range(0x300, 0x600), range(0x900, 0x1200),
                            range(0x1F00, 0x2200), range(0x3000, 0x3200), range(0x1F300, 0x1F700)])  # fmt: skip
        yield f"block {i}", "".join(chr(rng.choice(plane)) for _ in range(rng.randint(1, 80)))
    for i in range(count):
        parts = [*reference.SPACES, "a", "1", "."]
        yield f"spaces {i}", "".join(rng.choice(parts) for _ in range(rng.randint(1, 60)))


def repeats(everything: bool) -> Iterator[tuple[str, str]]:
    count = 1_000_000 if everything else 4_000
    units = ["a", " ", "\n", "\u00e9", "\U0001f600", "ab", " a", "0", "!", "\u4e00", "\u0301", "' "]
    for unit in units:
        yield f"{count} x {unit!r}", unit * (count // len(unit))


def special_texts() -> Iterator[tuple[str, str]]:
    names = ["<tool>", "<|end|>", "<|end|>!", "<|begin_of_text|>", "<|eot_id|>", "<|im_start|>", "<|im_end|>", "<|endoftext|>", "<tool_call>", "<s>",
             "</s>", "<unk>", "<|fim_prefix|>", "<|im_", "start|>", "<", "<<|im_end|>>"]  # fmt: skip
    rng = random.Random(7)
    for i in range(500):
        parts = [
            rng.choice([*names, " ", "hello", "\n", " user", "e\u0301"])
            for _ in range(rng.randint(1, 12))
        ]
        yield f"special {i}", "".join(parts)


def all_cases(everything: bool) -> list[tuple[str, str]]:
    return [
        *corpora(everything),
        *code_points(everything),
        *random_texts(everything),
        *repeats(everything),
    ]


def reference_of(name: str) -> tokenizers.Tokenizer:
    source = json.loads(
        (SHARED / "tokenizers" / f"{name}_tokenizer.json").read_text(encoding="utf-8")
    )
    # Llama 2's file looks for its special tokens in the text *after* a U+2581 was put before it and before their own
    # names, so "<s>" is found only after a space. SentencePiece, llama.cpp and we match the name itself.
    for token in source["added_tokens"]:
        token["normalized"] = False
    return tokenizers.Tokenizer.from_str(json.dumps(source))


def run(program: str, model: Path, texts: list[str], special: bool) -> list[list[int]]:
    command = [program, "tokenize", "-m", str(model), "--jsonl", "--no-bos"] + (
        ["--special"] if special else []
    )
    lines = "".join(json.dumps(text) + "\n" for text in texts)
    done = subprocess.run(command, input=lines.encode(), capture_output=True, check=False)
    if done.returncode != 0:
        sys.exit(
            f"{' '.join(command)}: exit {done.returncode}: {done.stderr.decode(errors='replace')[-500:]}"
        )
    return [json.loads(line) for line in done.stdout.splitlines()]


def parts(cases: list[tuple[str, str]]) -> Iterator[list[tuple[str, str]]]:
    """The cases in parts of a few million characters: an Encoding takes much more memory than its ids."""
    part, size = [], 0
    for case in cases:
        part.append(case)
        size += len(case[1])
        if size > 2_000_000:
            yield part
            part, size = [], 0
    if part:
        yield part


class Digests:
    """What a reference gave for texts: the number of ids and a digest of each, kept in a folder under a name that its
    definition, its package's version and the texts decide."""

    folder: Path | None = None  # None: nothing is kept
    REFUSED = b"\xff" * 16  # the reference gave up

    @classmethod
    def of(cls, ids: list[int] | None) -> bytes:
        if ids is None:
            return cls.REFUSED
        packed = numpy.asarray(ids, dtype=numpy.uint32)
        return len(ids).to_bytes(4, "little") + hashlib.blake2b(packed, digest_size=12).digest()

    @classmethod
    def wanted(cls, want_of: tokenizers.Tokenizer, texts: list[str], special: bool) -> list[bytes]:
        def ask() -> bytes:
            ids = want_of.encode_batch_fast(texts, add_special_tokens=False)
            return b"".join(cls.of(e.ids) for e in ids)

        if cls.folder is None:
            kept = ask()
        else:
            package = type(want_of).__module__.split(".")[0]
            name = hashlib.blake2b(f"{package} {versions()} {special} ".encode(), digest_size=16)
            name.update(want_of.to_str().encode())
            for text in texts:
                name.update(text.encode("utf-8", "surrogatepass") + b"\xff")
            path = cls.folder / name.hexdigest()
            if not path.exists():
                cls.folder.mkdir(parents=True, exist_ok=True)
                partial = path.with_suffix(".partial")
                partial.write_bytes(ask())
                partial.rename(path)
            kept = path.read_bytes()
        return [kept[i : i + 16] for i in range(0, len(kept), 16)]


def versions() -> str:
    names = ("tokenizers", "tiktoken")
    return " ".join(f"{name} {importlib.metadata.version(name)}" for name in names)


def report(name: str, label: str, text: str, want: list[int], got: list[int]) -> None:
    same = (i for i, (x, y) in enumerate(zip(want, got, strict=False)) if x != y)
    at = next(same, min(len(want), len(got)))
    near = slice(at, at + 6)
    print(
        f"  {name}: {label}: id {at} differs: {want[near]} wanted, {got[near]} given; text {text[:60]!r}"
    )


def compare(
    program: str,
    model: Path,
    want_of: tokenizers.Tokenizer,
    cases: list[tuple[str, str]],
    special: bool,
) -> tuple[int, int, int]:
    """(texts, ids, texts that differ); prints the first differences."""
    want_of.encode_special_tokens = not special
    n_ids = wrong = 0
    for part in parts(cases):
        texts = [text for _, text in part]
        got = run(program, model, texts, special)
        if len(got) != len(part):
            sys.exit(f"{model.stem}: {len(got)} lines for {len(part)} texts")
        wanted = Digests.wanted(want_of, texts, special)
        n_ids += sum(map(len, got))
        for (label, text), digest, ids in zip(part, wanted, got, strict=True):
            if digest == Digests.of(ids):
                continue
            if digest == Digests.REFUSED:
                print(f"  {model.stem}: {label}: not compared, the reference gives up")
                n_ids -= len(ids)
                continue
            wrong += 1
            if wrong <= 5:
                (want,) = want_of.encode_batch_fast([text], add_special_tokens=False)
                report(model.stem, label, text, want.ids, ids)
    return len(cases), n_ids, wrong


def check(
    program: str, model: Path, want_of: tokenizers.Tokenizer, cases: list[tuple[str, str]]
) -> bool:
    start = time.monotonic()
    plain = compare(program, model, want_of, cases, special=False)
    special = compare(program, model, want_of, list(special_texts()), special=True)
    texts, ids, wrong = (a + b for a, b in zip(plain, special, strict=True))
    print(
        f"{model.stem}: {texts} texts, {ids} ids, {wrong} texts differ ({time.monotonic() - start:.1f} s)",
        flush=True,
    )
    return wrong == 0


def scanners(program: str, work: Path, everything: bool) -> bool:
    """Every pre-tokenizer, on the small checked-in vocabularies; needs no ../shared."""
    cases = [*code_points(everything), *random_texts(everything), *repeats(everything)]
    same = True
    bpe = reference.small_vocabulary("bpe")
    for pre in reference.SCANNERS:
        model = work / f"small-{pre}.gguf"
        vocab_gguf.write(model, bpe["pieces"], bpe["types"], pre=pre, merges=bpe["merges"])
        same &= check(program, model, reference.byte_level(pre, bpe), cases)
    spm = reference.small_vocabulary("spm")
    model = work / "small-spm.gguf"
    vocab_gguf.write(model, spm["pieces"], spm["types"], scores=spm["scores"])
    return same & check(program, model, reference.sentence_piece(spm), cases)


def vocabularies(program: str, work: Path, everything: bool, names: list[str]) -> bool:
    cases = all_cases(everything)
    same = True
    for name in names:
        model = work / f"{name}.gguf"
        source = SHARED / "tokenizers" / f"{name}_tokenizer.json"
        maker = ROOT / "tools" / "golden" / "vocab_gguf.py"
        subprocess.run([sys.executable, str(maker), str(source), str(model)], check=True)
        same &= check(program, model, reference_of(name), cases)
    return same


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    program = os.environ.get("LIMPID_PROGRAM", str(ROOT / "build" / "release" / "limpid"))
    parser.add_argument("--program", default=program)
    parser.add_argument(
        "--all", action="store_true", help="every text (many minutes) instead of a subset"
    )
    parser.add_argument("--vocabulary", choices=VOCABULARIES, action="append")
    parser.add_argument("--keep", type=Path, help="a folder for digests of the reference's ids")
    args = parser.parse_args(arguments)
    Digests.folder = args.keep
    with tempfile.TemporaryDirectory() as temporary:
        work = Path(temporary)
        same = bool(args.vocabulary) or scanners(args.program, work, args.all)
        if SHARED.is_dir():
            same &= vocabularies(
                args.program, work, args.all, args.vocabulary or list(VOCABULARIES)
            )
        else:
            print("skipped part: the released vocabularies need ../shared/data")
    return 0 if same else 1


if __name__ == "__main__":
    sys.exit(main())
