#!/usr/bin/env python3
"""Makes tests/data/tokenizer/trained_bpe.json: what `tokenizers` 0.23.3 learns from small texts.

usage: make_bpe_training_golden.py
"""

from __future__ import annotations

import json
import random
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "oracles"))
import bpe_training_reference as reference  # noqa: E402

ENGLISH = (
    "It was the best of times, it was the worst of times, it was the age of wisdom, it was the age "
    "of foolishness, it was the epoch of belief, it was the epoch of incredulity.\n\n"
    "  She'd said: \"I'll go; they've gone.\"   In 1859, 12345 of 67890 -- and so on...\n"
)
CODE = """
def f(x):
    for i in range(10):
        if x[i] == 12:
            return "don't"


\tint main(void) { return 0; }   // it's 100% fine   \r\n\r\n
"""
MANY = "Größe, größer, größte; Übung. Ёлка, ёлки. 日本語と日本人。日本、 e\u0301e\u0301 \U0001f600\U0001f600 नमस्ते नमस्ते ไทยไทย\u00a0\u3000x"


def ties(seed: int) -> str:
    """Few letters in short words: most pairs are as frequent as others, and many overlap ("aaa")."""
    rng = random.Random(seed)
    words = ("".join(rng.choice("aab") for _ in range(rng.randint(1, 9))) for _ in range(60))
    return " ".join(words)


# name, text, pre-tokenizer, vocabulary, and what is not the default.
CASES = [
    ("english", ENGLISH, "gpt2", 300, {}),
    ("english until there are no pairs", ENGLISH, "llama3", 5000, {}),
    ("english, frequent pairs", ENGLISH, "qwen2", 5000, {"min_frequency": 3}),
    ("code", CODE * 2, "gpt2", 330, {"special": ["<|endoftext|>", "<pad>"]}),
    ("code by lines", CODE * 2, "gpt2", 330, {"lines": True}),
    ("code with longer pieces", CODE * 2, "llama3", 330, {}),
    ("many languages", MANY * 2, "llama3", 320, {}),
    ("many languages, digits", MANY + ENGLISH, "qwen2", 320, {}),
    ("no pre-tokenizer", ENGLISH, "none", 320, {}),
    ("no pre-tokenizer, by lines", ENGLISH + CODE, "none", 320, {"lines": True}),
    ("ties", ties(1), "gpt2", 600, {}),
    ("ties without cuts", ties(2), "none", 600, {}),
    ("a merge spells a special token", "abc abc abcd <s> <s>", "gpt2", 600, {"special": ["<s>", "abc"]}),
    ("a byte is a special token", "abab bab !a", "gpt2", 600, {"special": ["b", "!", " "]}),
    ("no pair", "a b c", "llama3", 300, {}),
    ("overlaps", "aaaa aaaaa aaaaaaaaaaaaaaaa aaa baaab", "gpt2", 600, {}),
]  # fmt: skip


def case(name: str, text: str, pre_tokenizer: str, vocab_size: int, options: dict) -> dict:
    special, min_frequency = options.get("special", []), options.get("min_frequency", 0)
    lines = options.get("lines", False)
    texts = reference.lines_of(text) if lines else [text]
    tokenizer = reference.train(texts, pre_tokenizer, vocab_size, special, min_frequency)
    pieces, merges = reference.pieces_and_merges(tokenizer.to_str())
    return {
        "name": name,
        "text": text,
        "pre_tokenizer": pre_tokenizer,
        "vocab_size": vocab_size,
        "special": special,
        "min_frequency": min_frequency,
        "lines": lines,
        "pieces": pieces,
        "merges": merges,
    }


def main() -> None:
    path = ROOT / "tests" / "data" / "tokenizer" / "trained_bpe.json"
    cases = [json.dumps(case(*each), ensure_ascii=False) for each in CASES]
    path.write_text("[\n" + ",\n".join(cases) + "\n]\n")


if __name__ == "__main__":
    main()
