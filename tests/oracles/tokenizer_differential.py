#!/usr/bin/env python3
"""`limpid tokenize --jsonl` against Hugging Face `tokenizers`, id for id.

Vocabularies: ../shared/data/tokenizers, made into vocabulary-only GGUF files by tools/golden/vocab_gguf.py.
Texts: the Universal Declaration in all languages, WikiText-2, tinyshakespeare, every code point, random Unicode,
white space, repeats. By default a subset that takes seconds; --all is everything. Exits 1 on any difference, 77 when
../shared is absent.

usage: tokenizer_differential.py --program build/release/limpid [--all] [--vocabulary NAME] [--work DIR]
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Iterator
from pathlib import Path

import tokenizers

ROOT = Path(__file__).resolve().parents[2]
SHARED = ROOT.parent / "shared" / "data"
VOCABULARIES = ("llama3.1", "gpt2", "smollm2", "qwen2.5", "llama2")
SCALARS = [c for c in range(0x110000) if not 0xD800 <= c < 0xE000]


def corpora(everything: bool) -> Iterator[tuple[str, str]]:
    for name in ("wiki.test.raw", "tinyshakespeare.txt"):
        text = (SHARED / "text" / name).read_text(encoding="utf-8")
        size = len(text) if everything else 100_000
        for start in range(0, size, 50_000):
            yield name, text[start : start + 50_000]
    with zipfile.ZipFile(SHARED / "text" / "udhr2.zip") as archive:
        for member in sorted(archive.namelist()):
            if member.endswith(".txt"):
                text = archive.read(member).decode("utf-8", errors="replace")
                yield member, text if everything else text[500:1200]


def code_points(everything: bool) -> Iterator[tuple[str, str]]:
    # Alone between letters, digits, spaces and punctuation: every scanner decides by its neighbours.
    step = 1 if everything else 97
    chosen = SCALARS[::step]
    for shape in ("{}", "a{}b", " {} ", "1{}2", "'{}s", "\n{}\n", "!{}?", "A{}a"):
        for start in range(0, len(chosen), 2000):
            for c in chosen[start : start + 2000] if shape in ("a{}b", " {} ") and not everything else ():
                yield f"code point {c:04X}", shape.format(chr(c))
            joined = "\x00".join(shape.format(chr(c)) for c in chosen[start : start + 2000])
            yield f"code points {chosen[start]:04X}.. in {shape!r}", joined


def random_texts(everything: bool) -> Iterator[tuple[str, str]]:
    rng = random.Random(20260301)
    spaces = [" ", "  ", "\n", "\r\n", "\t", "\u00a0", "\u3000", "\u2028", "\r", "\u0085", "\x0b", "\n\n", "   "]
    bits = [
        *spaces, "'s", "'S", "'\u017f", "'re", "'LL", "'d", "'", "don't", "I'VE", "Hello", "WORLD", "camelCase",
        "0", "12", "123", "1234567", "\u0663\u0664", "\u00bd", "\u2167", "\u4e00\u4e8c", "\u3053\u3093", "\uac00\uac01",
        "e\u0301", "\u00e9", "\u0301", "\u0e01\u0e34", "\u0915\u094d\u0937", "\U0001f600", "\U0001f468\u200d\U0001f469",
        "!", "...", "?!", "//", "$", "+=", "_", "-", "\u2014", "\u00ab", "(", ")", "<|", "|>", "<s>", "\x00", "\ufffd",
        "\u0000", "\u200b", "\ue000", "\U000e0001", "\u1100\u1161\u11a8", "\u0344", "\u212b", "\u2126", "\u01c5", "\u02b0",
    ]  # fmt: skip
    for i in range(20_000 if everything else 1_000):
        yield f"bits {i}", "".join(rng.choice(bits) for _ in range(rng.randint(1, 30)))
    for i in range(5_000 if everything else 200):
        yield f"random {i}", "".join(chr(rng.choice(SCALARS)) for _ in range(rng.randint(1, 60)))
    for i in range(5_000 if everything else 200):
        plane = rng.choice([range(0x20, 0x7F), range(0, 0x250), range(0x300, 0x600), range(0x900, 0x1200),
                            range(0x1F00, 0x2200), range(0x3000, 0x3200), range(0x1F300, 0x1F700)])  # fmt: skip
        yield f"block {i}", "".join(chr(rng.choice(plane)) for _ in range(rng.randint(1, 80)))
    for i in range(5_000 if everything else 200):
        yield f"spaces {i}", "".join(rng.choice([*spaces, "a", "1", "."]) for _ in range(rng.randint(1, 60)))


def repeats(everything: bool) -> Iterator[tuple[str, str]]:
    count = 1_000_000 if everything else 20_000
    for unit in ("a", " ", "\n", "\u00e9", "\U0001f600", "ab", " a", "0", "!", "\u4e00", "\u0301", "' "):
        yield f"{count} x {unit!r}", unit * (count // len(unit))


def special_texts() -> Iterator[tuple[str, str]]:
    names = ["<|begin_of_text|>", "<|eot_id|>", "<|im_start|>", "<|im_end|>", "<|endoftext|>", "<tool_call>", "<s>",
             "</s>", "<unk>", "<|fim_prefix|>", "<|im_", "start|>", "<", "<<|im_end|>>"]  # fmt: skip
    rng = random.Random(7)
    for i in range(500):
        parts = [rng.choice([*names, " ", "hello", "\n", " user", "e\u0301"]) for _ in range(rng.randint(1, 12))]
        yield f"special {i}", "".join(parts)


def reference(name: str, special: bool) -> tokenizers.Tokenizer:
    source = json.loads((SHARED / "tokenizers" / f"{name}_tokenizer.json").read_text(encoding="utf-8"))
    # Llama 2's file looks for its special tokens in the text *after* a U+2581 was put before it and before their own
    # names, so "<s>" is found only after a space. SentencePiece, llama.cpp and we match the name itself.
    for token in source["added_tokens"]:
        token["normalized"] = False
    tokenizer = tokenizers.Tokenizer.from_str(json.dumps(source))
    tokenizer.encode_special_tokens = not special
    return tokenizer


def run(program: str, model: Path, texts: list[str], special: bool) -> list[list[int]]:
    command = [program, "tokenize", "-m", str(model), "--jsonl", "--no-bos"] + (["--special"] if special else [])
    lines = "".join(json.dumps(text) + "\n" for text in texts)
    done = subprocess.run(command, input=lines.encode(), capture_output=True, check=False)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)}: exit {done.returncode}: {done.stderr.decode(errors='replace')[-500:]}")
    return [json.loads(line) for line in done.stdout.splitlines()]


def expected_ids(tokenizer: tokenizers.Tokenizer, texts: list[str]) -> list[list[int]]:
    return [e.ids for e in tokenizer.encode_batch(texts, add_special_tokens=False)]


def compare(program: str, model: Path, name: str, cases: list[tuple[str, str]], special: bool) -> tuple[int, int, int]:
    texts = [text for _, text in cases]
    want = expected_ids(reference(name, special), texts)
    got = run(program, model, texts, special)
    if len(got) != len(want):
        sys.exit(f"{name}: {len(got)} lines for {len(want)} texts")
    wrong = 0
    for (label, text), a, b in zip(cases, want, got, strict=True):
        if a != b:
            wrong += 1
            if wrong <= 5:
                at = next((i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))
                print(f"  {name}: {label}: differs at id {at}: {a[at : at + 6]} wanted, {b[at : at + 6]} given; "
                      f"text {text[:60]!r}")
    return len(cases), sum(map(len, want)), wrong


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--program", default=str(ROOT / "build" / "release" / "limpid"))
    parser.add_argument("--all", action="store_true", help="every text (minutes) instead of a subset")
    parser.add_argument("--vocabulary", choices=VOCABULARIES, action="append")
    parser.add_argument("--work", type=Path, help="where the vocabulary files go; default: a temporary directory")
    args = parser.parse_args()
    if not SHARED.is_dir():
        print("skipped: ../shared is not there")
        return 77
    cases = [*corpora(args.all), *code_points(args.all), *random_texts(args.all), *repeats(args.all)]
    failed = False
    with tempfile.TemporaryDirectory() as temporary:
        work = args.work or Path(temporary)
        for name in args.vocabulary or VOCABULARIES:
            model = work / f"{name}.gguf"
            if not model.exists():
                maker = ROOT / "tools" / "golden" / "vocab_gguf.py"
                source = SHARED / "tokenizers" / f"{name}_tokenizer.json"
                subprocess.run([sys.executable, str(maker), str(source), str(model)], check=True)
            start = time.monotonic()
            plain = compare(args.program, model, name, cases, special=False)
            special = compare(args.program, model, name, list(special_texts()), special=True)
            texts, ids, wrong = (a + b for a, b in zip(plain, special, strict=True))
            failed |= wrong > 0
            print(f"{name}: {texts} texts, {ids} ids, {wrong} texts differ ({time.monotonic() - start:.1f} s)")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
