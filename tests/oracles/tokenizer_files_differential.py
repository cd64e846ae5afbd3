#!/usr/bin/env python3
"""Tokenizer files as they are downloaded, `limpid tokenize` against the package that each is made for, id for id.

tokenizer.json against `tokenizers`; tiktoken ranks against `tiktoken`. Texts are those of tokenizer_differential.py. By
default a subset that takes seconds; --all is everything. Exits 1 on any difference, 77 when ../shared is not there.

usage: tokenizer_files_differential.py [--program build/release/limpid] [--all] [--file NAME]
"""

from __future__ import annotations

import argparse
import itertools
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace

import tiktoken
import tiktoken_ext.openai_public as openai_public
import tokenizer_differential as differential
import tokenizers
from tiktoken.load import load_tiktoken_bpe

SHARED = differential.SHARED


def hugging_face(name: str) -> tokenizers.Tokenizer:
    return tokenizers.Tokenizer.from_file(str(SHARED / name))


class Tiktoken:
    """A tiktoken Encoding behind the two names of tokenizers.Tokenizer that are used here."""

    def __init__(self, encoding: tiktoken.Encoding, slices: Callable[[str], Iterator[str]]) -> None:
        self.encoding, self.slices, self.encode_special_tokens = encoding, slices, True

    def encode_batch_fast(self, texts: list[str], add_special_tokens: bool) -> list[SimpleNamespace]:
        assert not add_special_tokens
        allowed = set() if self.encode_special_tokens else self.encoding.special_tokens_set
        return [
            SimpleNamespace(
                ids=[
                    token
                    for part in self.slices(text)
                    for token in self.encoding.encode(
                        part, allowed_special=allowed, disallowed_special=()
                    )
                ]
            )
            for text in texts
        ]


def openai(name: str) -> Tiktoken:
    """OpenAI's encoding, its ranks from the file itself."""
    ranks = load_tiktoken_bpe(str(SHARED / name))
    constructor = openai_public.ENCODING_CONSTRUCTORS[Path(name).stem]
    # The constructor would download the ranks.
    openai_public.load_tiktoken_bpe = lambda *_, **__: ranks
    return Tiktoken(tiktoken.Encoding(**constructor()), lambda text: iter([text]))


def meta_slices(text: str) -> Iterator[str]:
    """At most 400,000 characters at once, and at most 25,000 in a row that are white space, or none."""
    for start in range(0, len(text), 400_000):
        part = text[start : start + 400_000]
        cuts, position = [0], 0
        for space, run in itertools.groupby(part, str.isspace):
            length = sum(1 for _ in run)
            cuts += range(position + 25_000, position + length, 25_000)
            position += length
        for begin, end in zip(cuts, [*cuts[1:], len(part)], strict=True):
            yield part[begin:end]


LLAMA3_PATTERN = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+"
)


def meta(name: str) -> Tiktoken:
    """Llama 3 as Meta's llama-models sets tiktoken up."""
    ranks = load_tiktoken_bpe(str(SHARED / name))
    named = "finetune_right_pad_id step_id start_header_id end_header_id eom_id eot_id python_tag image"
    names = ["begin_of_text", "end_of_text", "reserved_special_token_0", "reserved_special_token_1"]
    names += named.split()
    names += [f"reserved_special_token_{i}" for i in range(2, 2 + 256 - len(names))]
    specials = {f"<|{n}|>": len(ranks) + i for i, n in enumerate(names)}
    return Tiktoken(tiktoken.Encoding("llama3", pat_str=LLAMA3_PATTERN, mergeable_ranks=ranks, special_tokens=specials), meta_slices)  # fmt: skip


# Path under ../shared/data -> its reference: what has `encode_special_tokens` and `encode_batch_fast` as a
# tokenizers.Tokenizer has.
FILES: dict[str, Callable[[str], object]] = {
    "tokenizers/gpt2_tokenizer.json": hugging_face,
    "tokenizers/llama2_tokenizer.json": hugging_face,
    "tokenizers/llama3.1_tokenizer.json": hugging_face,
    "tokenizers/llama3.2_tokenizer.json": hugging_face,
    "tokenizers/qwen2.5_tokenizer.json": hugging_face,
    "tokenizers/smollm2_tokenizer.json": hugging_face,
    "tokenizers/llama3_tokenizer.model": meta,
    "tokenizers/r50k_base.tiktoken": openai,
    "tokenizers/cl100k_base.tiktoken": openai,
    "tokenizers/o200k_base.tiktoken": openai,
    "models/minimind2-small/tokenizer.json": hugging_face,
}


def long_runs() -> Iterator[tuple[str, str]]:
    """Around the lengths where Meta's tokenizer cuts."""
    for count in (24_999, 25_000, 25_001, 50_001):
        for unit in ("a", " ", "\u00e9", "\u3000", "\x1c"):
            yield f"{count} x {unit!r}", "b c\n" + unit * count + " d" + unit * 7
    yield "400,003 characters", "ab cd\u00e9 " * 57_143 + "ef"


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    program = os.environ.get("LIMPID_PROGRAM", str(differential.ROOT / "build/release/limpid"))
    parser.add_argument("--program", default=program)
    parser.add_argument("--all", action="store_true", help="every text (many minutes)")
    parser.add_argument("--file", choices=FILES, action="append")
    args = parser.parse_args(arguments)
    if not Path(SHARED).is_dir():
        print("skipped: ../shared is not there")
        return 77
    cases = [*differential.all_cases(args.all), *long_runs()]
    same = True
    for name in args.file or FILES:
        same &= differential.check(args.program, SHARED / name, FILES[name](name), cases)
    return 0 if same else 1


if __name__ == "__main__":
    sys.exit(main())
