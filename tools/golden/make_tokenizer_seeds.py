#!/usr/bin/env python3
"""Writes fuzz/corpus/tokenizer: small valid inputs of fuzz/fuzz_tokenizer.cpp, one file per idea, so that a mutation
starts deep inside. Needs only Python 3.11.

usage: make_tokenizer_seeds.py
"""

from __future__ import annotations

import base64
import json
import struct
from pathlib import Path

FOLDER = Path(__file__).resolve().parents[2] / "fuzz" / "corpus" / "tokenizer"
LETTERS = "!',.<>|aHeloruwdit1234\u0120\u010a"
BYTE_TOKENS = [f"<0x{byte:02X}>" for byte in range(256)]
CONFIG = {
    "bos_token": {"content": "<s>", "lstrip": False},
    "eos_token": "<s>",
    "add_bos_token": True,
    "chat_template": [{"name": "default", "template": "x"}],
}


def pipeline(**parts: object) -> dict:
    level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True}
    vocab = {piece: i for i, piece in enumerate([*LETTERS, "el", "lo", "\u0120w", "ello", "aa"])}
    token = {"id": len(vocab), "content": "<s>", "single_word": False, "lstrip": False,
             "rstrip": False, "normalized": False, "special": True}  # fmt: skip
    file = {
        "version": "1.0",
        "added_tokens": [token],
        "normalizer": None,
        "pre_tokenizer": level,
        "post_processor": None,
        "decoder": level,
        "model": {
            "type": "BPE",
            "vocab": vocab,
            "merges": ["e l", "l o", "\u0120 w", "el lo", "a a"],
        },
    }
    return file | parts


def byte_level_seeds() -> dict[str, dict]:
    split = {"type": "Split", "pattern": {"Regex": r"\p{L}{2}|[^\s\p{N}]+|\s+(?!\S)|(?i:'s)"},
             "behavior": "Isolated", "invert": False}  # fmt: skip
    bare = {"type": "ByteLevel", "add_prefix_space": False, "use_regex": False}
    frame = {
        "type": "TemplateProcessing",
        "single": [{"SpecialToken": {"id": "<s>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}],
        "pair": [],
        "special_tokens": {"<s>": {"id": "<s>", "ids": [len(LETTERS) + 5], "tokens": ["<s>"]}},
    }  # fmt: skip
    flags = pipeline()
    flags["added_tokens"][0] |= {"lstrip": True, "rstrip": True, "single_word": True, "normalized": True}  # fmt: skip
    flags["normalizer"] = {"type": "NFC"}
    pairs = pipeline()
    pairs["model"] |= {
        "ignore_merges": True,
        "merges": [merge.split() for merge in pairs["model"]["merges"]],
    }
    steps = [split, {"type": "Digits", "individual_digits": False}, bare]
    return {
        "byte_level": pipeline(post_processor=frame),
        "regex": pipeline(pre_tokenizer={"type": "Sequence", "pretokenizers": steps}),
        "flags": flags,
        "pairs": pairs,
    }


def sentence_piece_json(metaspace: bool) -> dict:
    pieces = ["<unk>", "<s>", *BYTE_TOKENS, *"\u2581Heloaw", "el", "lo", "\u2581w", "aa"]
    file = pipeline()
    file["model"] = {
        "type": "BPE",
        "unk_token": "<unk>",
        "byte_fallback": True,
        "fuse_unk": True,
        "vocab": {piece: i for i, piece in enumerate(pieces)},
        "merges": ["e l", "l o", "\u2581 w", "a a"],
    }
    file["added_tokens"][0] |= {"id": 1, "normalized": True}
    space = {"pattern": {"String": " "}, "content": "\u2581"}
    file["normalizer"] = {
        "type": "Sequence",
        "normalizers": [{"type": "Prepend", "prepend": "\u2581"}, {"type": "Replace", **space}],
    }
    file["pre_tokenizer"] = None
    if metaspace:
        file["normalizer"] = None
        file["pre_tokenizer"] = {"type": "Metaspace", "replacement": "\u2581",
                                 "prepend_scheme": "first", "split": False}  # fmt: skip
    file["decoder"] = {
        "type": "Sequence",
        "decoders": [
            {"type": "Replace", "pattern": {"String": "\u2581"}, "content": " "},
            {"type": "ByteFallback"},
            {"type": "Fuse"},
            {"type": "Strip", "content": " ", "start": 1, "stop": 0},
        ],
    }
    return file


def varint(value: int) -> bytes:
    out = b""
    while value >= 0x80:
        out += bytes([value & 0x7F | 0x80])
        value >>= 7
    return out + bytes([value])


def field(number: int, content: bytes) -> bytes:
    return varint(number << 3 | 2) + varint(len(content)) + content


def sentence_piece_model() -> bytes:
    pieces = [("<unk>", 0.0, 2), ("<s>", 0.0, 3), ("</s>", 0.0, 3)]
    pieces += [(name, 0.0, 6) for name in BYTE_TOKENS]
    pieces += [(piece, -float(i), 1) for i, piece in enumerate(["el", "lo", "\u2581w", "aa", *"\u2581Heloaw"])]  # fmt: skip
    out = b""
    for piece, score, kind in pieces:
        message = field(1, piece.encode()) + b"\x15" + struct.pack("<f", score)
        out += field(1, message + (b"\x18" + varint(kind) if kind != 1 else b""))
    return out + field(2, b"\x18\x02") + field(3, field(1, b"identity") + b"\x18\x01\x20\x00")


def main() -> None:
    FOLDER.mkdir(parents=True, exist_ok=True)
    ranks = [bytes([byte]) for byte in range(256)] + [b"el", b"lo", b"ello", b" w", b"aa", b"aaa"]
    lines = b"".join(base64.b64encode(t) + b" %d\n" % i for i, t in enumerate(ranks))
    files = {f"json_{name}": b"j" + json.dumps(file, ensure_ascii=False).encode() for name, file in byte_level_seeds().items()}  # fmt: skip
    files["json_config"] = files["json_byte_level"] + b"\0" + json.dumps(CONFIG).encode()
    for metaspace in (False, True):
        name = "json_metaspace" if metaspace else "json_sentence_piece"
        files[name] = b"j" + json.dumps(sentence_piece_json(metaspace)).encode()
    files["ranks"] = b"r" + lines
    files["sentence_piece"] = b"s" + sentence_piece_model()
    files["merges"] = "m#version: 0.2\ne l\nl o\n\u0120 w\nel lo\n".encode()
    for name, content in files.items():
        (FOLDER / name).write_bytes(content)


if __name__ == "__main__":
    main()
