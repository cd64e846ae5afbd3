#!/usr/bin/env python3
"""Tokenizer files as they are downloaded, `limpid tokenize` against the package that each is made for, id for id.

tokenizer.json against `tokenizers`; tiktoken ranks against `tiktoken`. Texts are those of tokenizer_differential.py. By
default a subset that takes seconds; --all is everything. Exits 1 on any difference, 77 when ../shared is not there.

usage: tokenizer_files_differential.py [--program build/release/limpid] [--all] [--file NAME]
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable
from pathlib import Path

import tokenizer_differential as differential
import tokenizers

SHARED = differential.SHARED


def hugging_face(name: str) -> tokenizers.Tokenizer:
    return tokenizers.Tokenizer.from_file(str(SHARED / name))


# Path under ../shared/data -> its reference: what has `encode_special_tokens` and `encode_batch_fast` as a
# tokenizers.Tokenizer has.
FILES: dict[str, Callable[[str], object]] = {
    "tokenizers/gpt2_tokenizer.json": hugging_face,
    "tokenizers/llama2_tokenizer.json": hugging_face,
    "tokenizers/llama3.1_tokenizer.json": hugging_face,
    "tokenizers/llama3.2_tokenizer.json": hugging_face,
    "tokenizers/qwen2.5_tokenizer.json": hugging_face,
    "tokenizers/smollm2_tokenizer.json": hugging_face,
    "models/minimind2-small/tokenizer.json": hugging_face,
}


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
    cases = differential.all_cases(args.all)
    same = True
    for name in args.file or FILES:
        same &= differential.check(args.program, SHARED / name, FILES[name](name), cases)
    return 0 if same else 1


if __name__ == "__main__":
    sys.exit(main())
