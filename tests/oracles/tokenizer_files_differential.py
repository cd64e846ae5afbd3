#!/usr/bin/env python3
"""Tokenizer files as they are downloaded, `limpid tokenize` against the package that each is made for, id for id.

tokenizer.json, vocab.json and merges.txt against `tokenizers`, tiktoken ranks against `tiktoken`. First pipelines that
are made here, then the files of ../shared/data on the texts of tokenizer_differential.py. By default a subset that
takes seconds; --all is everything; --keep as there. Exits 1 on any difference.

usage: tokenizer_files_differential.py [--program build/release/limpid] [--all] [--keep FOLDER] [--file NAME]
"""

from __future__ import annotations

import argparse
import itertools
import os
import random
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace

import tiktoken
import tiktoken_ext.openai_public as openai_public
import tokenizer_differential as differential
import tokenizer_reference as reference
import tokenizers
from tiktoken.load import load_tiktoken_bpe
from tokenizers import AddedToken, Regex, decoders, pre_tokenizers

SHARED = differential.SHARED


def hugging_face(name: str) -> tokenizers.Tokenizer:
    return tokenizers.Tokenizer.from_file(str(SHARED / name))


class Tiktoken:
    """A tiktoken Encoding behind the names of tokenizers.Tokenizer that are used here."""

    def __init__(self, encoding: tiktoken.Encoding, slices: Callable[[str], Iterator[str]]) -> None:
        self.encoding, self.slices, self.encode_special_tokens = encoding, slices, True

    def encode_batch_fast(
        self, texts: list[str], add_special_tokens: bool
    ) -> list[SimpleNamespace]:
        assert not add_special_tokens
        allowed = set() if self.encode_special_tokens else self.encoding.special_tokens_set
        return [SimpleNamespace(ids=self.ids_of(text, allowed)) for text in texts]

    def ids_of(self, text: str, allowed: set[str]) -> list[int] | None:
        try:
            return [
                token
                for part in self.slices(text)
                for token in self.encoding.encode(
                    part, allowed_special=allowed, disallowed_special=()
                )
            ]
        except ValueError as error:  # o200k's expression on a million equal letters
            if "Max stack size" not in str(error):
                raise
            return None

    def to_str(self) -> str:
        """What decides the ids, all of it."""
        encoding = self.encoding
        return f"{self.slices.__name__} {encoding._pat_str} {encoding._mergeable_ranks} {encoding._special_tokens}"


def openai(name: str) -> Tiktoken:
    """OpenAI's encoding, its ranks from the file itself."""
    ranks = load_tiktoken_bpe(str(SHARED / name))
    constructor = openai_public.ENCODING_CONSTRUCTORS[Path(name).stem]
    # The constructor would download the ranks.
    openai_public.load_tiktoken_bpe = lambda *_, **__: ranks
    return Tiktoken(tiktoken.Encoding(**constructor()), whole)


def whole(text: str) -> Iterator[str]:
    yield text


def meta_slices(text: str) -> Iterator[str]:
    """At most 400,000 characters at once, and at most 25,000 in a row that are white space, or none."""
    for start in range(0, len(text), 400_000):
        part = text[start : start + 400_000]
        cuts, position = [0], 0
        for _space, run in itertools.groupby(part, str.isspace):
            length = sum(1 for _ in run)
            cuts += range(position + 25_000, position + length, 25_000)
            position += length
        for begin, end in zip(cuts, [*cuts[1:], len(part)], strict=True):
            yield part[begin:end]


def meta(name: str) -> Tiktoken:
    """Llama 3 as Meta's llama-models sets tiktoken up."""
    ranks = load_tiktoken_bpe(str(SHARED / name))
    named = (
        "finetune_right_pad_id step_id start_header_id end_header_id eom_id eot_id python_tag image"
    )
    names = ["begin_of_text", "end_of_text", "reserved_special_token_0", "reserved_special_token_1"]
    names += named.split()
    names += [f"reserved_special_token_{i}" for i in range(2, 2 + 256 - len(names))]
    specials = {f"<|{n}|>": len(ranks) + i for i, n in enumerate(names)}
    pattern = reference.cl100k(r"\p{N}{1,3}")
    return Tiktoken(
        tiktoken.Encoding(
            "llama3", pat_str=pattern, mergeable_ranks=ranks, special_tokens=specials
        ),
        meta_slices,
    )


def halves(name: str) -> tokenizers.Tokenizer:
    """vocab.json with the merges.txt beside it, read by their own reader; as GPT-2's tokenizer sets it up."""
    path = SHARED / name
    model = tokenizers.models.BPE.from_file(str(path), str(path.with_name("gpt2_vocab.bpe")))
    tokenizer = tokenizers.Tokenizer(model)
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.add_special_tokens(["<|endoftext|>"])
    return tokenizer


def halves_of_merges(name: str) -> tokenizers.Tokenizer:
    """The merges alone, which number the vocabulary as OpenAI did."""
    return halves(name.replace("vocab.bpe", "vocab.json"))


def sentence_piece(name: str) -> tokenizers.Tokenizer:
    """The same vocabulary as tokenizer.json, whose special tokens are found wherever their names stand."""
    return differential.reference_of(Path(name).name.removesuffix("_tokenizer.model"))


# Path under ../shared/data -> its reference: what has `encode_special_tokens` and `encode_batch_fast` as a
# tokenizers.Tokenizer has.
FILES: dict[str, Callable[[str], object]] = {
    "tokenizers/gpt2_tokenizer.json": hugging_face,
    "tokenizers/gpt2_vocab.json": halves,
    "tokenizers/gpt2_vocab.bpe": halves_of_merges,
    "tokenizers/llama2_tokenizer.json": hugging_face,
    "tokenizers/llama2_tokenizer.model": sentence_piece,
    "tokenizers/llama3.1_tokenizer.json": hugging_face,
    "tokenizers/llama3.2_tokenizer.json": hugging_face,
    "tokenizers/llama3_tokenizer.model": meta,
    "tokenizers/qwen2.5_tokenizer.json": hugging_face,
    "tokenizers/smollm2_tokenizer.json": hugging_face,
    "tokenizers/r50k_base.tiktoken": openai,
    "tokenizers/cl100k_base.tiktoken": openai,
    "tokenizers/o200k_base.tiktoken": openai,
    "models/minimind2-small/tokenizer.json": hugging_face,
}


def sentence_piece_decoder(strips: bool) -> decoders.Decoder:
    steps = [decoders.Replace("\u2581", " "), decoders.ByteFallback(), decoders.Fuse()]
    return decoders.Sequence([*steps, decoders.Strip(" ", 1, 0)] if strips else steps)


def variants() -> Iterator[tuple[str, tokenizers.Tokenizer]]:
    """Pipelines that no file above has: expressions without a scanner, Metaspace, flags of added tokens."""
    bpe, spm = reference.small_vocabulary("bpe"), reference.small_vocabulary("spm")
    patterns = {
        "unknown": r"\p{Lu}?\p{Ll}+|[^\s\p{L}\p{N}]{1,2}+|\p{N}{2,3}|\s+(?=\p{L})|[\p{M}\u200b-\u200d]++",
        "lines": r"^\s*|.+?$|(?i:'s|'ll)|(?<=\n)\r",
        "interval": r"\p{N}{1,3}+|\v|[^\P{L}a-z]*?b",
    }
    splits = {name: reference.splits(p) for name, p in patterns.items()}
    splits["several"] = reference.splits(r"\d", "[^\\s]+") + [pre_tokenizers.Digits(False)]
    splits["matches only"] = [pre_tokenizers.Split(Regex(r"\p{L}+|\p{N}"), "removed", invert=True)]
    splits["side by side"] = [pre_tokenizers.Split(Regex(r"[\s\p{P}]"), "contiguous")]
    splits["string"] = [pre_tokenizers.Split("a.", "isolated")]
    for name, before in splits.items():
        tokenizer = reference.byte_level("gpt-2", bpe)
        last = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=name == "several")
        tokenizer.pre_tokenizer = pre_tokenizers.Sequence([*before, last])
        tokenizer.decoder = decoders.ByteLevel()
        yield f"split-{name}", tokenizer
    for scheme in ("always", "first", "never"):
        tokenizer = reference.sentence_piece(spm)
        tokenizer.normalizer = None
        tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme=scheme, split=False)
        tokenizer.decoder = sentence_piece_decoder(strips=scheme != "never")
        yield f"metaspace-{scheme}", tokenizer
    yield from flag_variants(bpe, spm)


def flag_variants(bpe: dict, spm: dict) -> Iterator[tuple[str, tokenizers.Tokenizer]]:
    for bits in range(16):
        flags = dict(zip(("lstrip", "rstrip", "single_word", "normalized"), map(bool, (bits & 1, bits & 2, bits & 4, bits & 8)), strict=True))  # fmt: skip
        for kind in ("qwen2", "spm"):
            if kind == "spm":
                tokenizer = reference.sentence_piece(spm)
                tokenizer.decoder = sentence_piece_decoder(strips=True)
            else:
                tokenizer = reference.byte_level(kind, bpe)
                tokenizer.decoder = decoders.ByteLevel()
            names = ["hello", "<|im_start|>", "e\u0301", "user x", "\u65e5"]
            tokenizer.add_tokens([AddedToken(n, special=n[0] == "<", **flags) for n in names])
            yield f"flags-{bits}-{kind}", tokenizer


def check_variants(program: str, everything: bool) -> bool:
    rng = random.Random(11)
    bits = [*reference.BITS, "hello", " hello", "hello ", "<|im_start|>", "e\u0301", "\u00e9", "user x", "user", "a.", "\u2581", "\u65e5"]  # fmt: skip
    cases = [
        (f"bits {i}", "".join(rng.choice(bits) for _ in range(rng.randint(1, 25))))
        for i in range(5000 if everything else 150)
    ]
    same = True
    with tempfile.TemporaryDirectory() as work:
        for name, tokenizer in variants():
            path = Path(work) / name / "tokenizer.json"
            path.parent.mkdir()
            tokenizer.save(str(path))
            for special in (False, True):
                texts, _, wrong = differential.compare(program, path, tokenizer, cases, special)
                same &= wrong == 0
                if wrong:
                    print(f"{name}: {wrong} of {texts} texts differ, special {special}")
    return same


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
    parser.add_argument("--keep", type=Path, help="a folder for digests of the references' ids")
    args = parser.parse_args(arguments)
    differential.Digests.folder = args.keep
    same = bool(args.file) or check_variants(args.program, args.all)
    if not Path(SHARED).is_dir():
        print("skipped part: the released files need ../shared/data")
        return 0 if same else 1
    cases = differential.all_cases(args.all)
    if not args.all:
        cases = cases[::4]
    for name in args.file or FILES:
        own = [*cases, *(long_runs() if FILES[name] is meta else []), *differential.repeats(False)]
        same &= differential.check(args.program, SHARED / name, FILES[name](name), own)
    return 0 if same else 1


if __name__ == "__main__":
    sys.exit(main())
