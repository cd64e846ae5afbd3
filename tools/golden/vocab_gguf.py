#!/usr/bin/env python3
"""Makes a vocabulary-only GGUF file (no tensors) from a Hugging Face tokenizer.json, as llama.cpp's converter writes it.

Packages: gguf 0.19.0. Added tokens become control tokens if the file calls them special, else user-defined; ids that
nothing names become unused. A SentencePiece vocabulary (byte_fallback) takes its scores and types from the
`tokenizer.model` beside it, because tokenizer.json does not keep them.

usage: vocab_gguf.py tokenizer.json out.gguf [--pre NAME] [--sentencepiece tokenizer.model] [--bos ID] [--eos ID]
"""

from __future__ import annotations

import argparse
import json
import struct
from collections.abc import Iterator
from pathlib import Path

import gguf

# Names of `tokenizer.ggml.pre` for the files of ../shared/data/tokenizers, with bos and eos.
KNOWN = {
    "llama3.1": ("llama-bpe", 128000, 128009),
    "llama3.2": ("llama-bpe", 128000, 128009),
    "gpt2": ("gpt-2", 50256, 50256),
    "smollm2": ("smollm", 1, 2),
    "qwen2.5": ("qwen2", None, 151645),
    "llama2": (None, 1, 2),
}
NORMAL, UNKNOWN, CONTROL, USER_DEFINED, UNUSED = 1, 2, 3, 4, 5


def protobuf_fields(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    """The (field number, value) pairs of a protobuf message."""

    def varint(at: int) -> tuple[int, int]:
        value = shift = 0
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value, at

    at = 0
    while at < len(data):
        key, at = varint(at)
        kind = key & 7
        if kind == 0:
            value, at = varint(at)
            yield key >> 3, value
            continue
        size = {1: 8, 5: 4}.get(kind)
        if size is None:
            size, at = varint(at)
        yield key >> 3, data[at : at + size]
        at += size


def sentencepiece_pieces(path: Path) -> list[tuple[str, float, int]]:
    """(piece, score, type) by id; the type numbers are GGUF's too."""
    pieces = []
    for number, value in protobuf_fields(path.read_bytes()):
        if number == 1:
            fields = dict(protobuf_fields(value))
            score = struct.unpack("<f", fields[2])[0] if 2 in fields else 0.0
            pieces.append((fields[1].decode(), score, fields.get(3, NORMAL)))
    return pieces


def vocabulary(source: dict) -> tuple[list[str], list[int]]:
    vocab = source["model"]["vocab"]
    added = {token["id"]: token for token in source["added_tokens"]}
    size = max([*vocab.values(), *added]) + 1
    tokens = [f"[PAD{i}]" for i in range(size)]
    types = [UNUSED] * size
    for piece, i in vocab.items():
        tokens[i], types[i] = piece, NORMAL
    for i, token in added.items():
        tokens[i], types[i] = token["content"], CONTROL if token["special"] else USER_DEFINED
    return tokens, types


def write(
    path: Path,
    tokens: list[str],
    types: list[int],
    *,
    pre: str | None = None,
    merges: list[str] | None = None,
    scores: list[float] | None = None,
    bos: int | None = None,
    eos: int | None = None,
) -> None:
    """Byte-level BPE with `pre` and `merges`, or SentencePiece with `scores`."""
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_name(f"{path.stem} vocabulary")
    writer.add_tokenizer_model("gpt2" if scores is None else "llama")
    if pre is not None:
        writer.add_tokenizer_pre(pre)
    writer.add_token_list(tokens)
    writer.add_token_types(types)
    if merges is not None:
        writer.add_token_merges(merges)
    if scores is not None:
        writer.add_token_scores(scores)
        writer.add_unk_token_id(0)
    if bos is not None:
        writer.add_bos_token_id(bos)
    if eos is not None:
        writer.add_eos_token_id(eos)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("source", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--pre")
    parser.add_argument("--sentencepiece", type=Path)
    parser.add_argument("--bos", type=int)
    parser.add_argument("--eos", type=int)
    args = parser.parse_args()
    name = args.source.name.removesuffix("_tokenizer.json")
    pre, bos, eos = KNOWN.get(name, (None, None, None))
    pre, bos, eos = args.pre or pre, args.bos or bos, args.eos or eos
    source = json.loads(args.source.read_text(encoding="utf-8"))
    tokens, types = vocabulary(source)

    merges = scores = None
    if source["model"].get("byte_fallback"):
        model = args.sentencepiece or args.source.with_name(f"{name}_tokenizer.model")
        pieces = sentencepiece_pieces(model)
        assert [p for p, _, _ in pieces] == tokens, (
            f"{model} is not the vocabulary of {args.source}"
        )
        scores, types = [score for _, score, _ in pieces], [kind for _, _, kind in pieces]
    else:
        assert pre, "name the pre-tokenizer with --pre"
        merges = [m if isinstance(m, str) else " ".join(m) for m in source["model"]["merges"]]
    write(args.out, tokens, types, pre=pre, merges=merges, scores=scores, bos=bos, eos=eos)


if __name__ == "__main__":
    main()
