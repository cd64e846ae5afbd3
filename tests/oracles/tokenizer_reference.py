"""The reference of every pre-tokenizer of src/tokenizer, as a Hugging Face `tokenizers` pipeline, and the texts that
try them. Used by tools/golden/make_tokenizer_golden.py and tests/oracles/tokenizer_differential.py."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from pathlib import Path

from tokenizers import AddedToken, Regex, Tokenizer, models, normalizers, pre_tokenizers

DATA = Path(__file__).resolve().parents[1] / "data" / "tokenizer"
NORMAL, UNKNOWN, CONTROL, USER_DEFINED, UNUSED, BYTE = 1, 2, 3, 4, 5, 6

TAIL = r"\s*[\r\n]+|\s+(?!\S)|\s+"
CONTRACTION = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)"
UPPER, LOWER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"


def cl100k(
    numbers: str, word: str = r"\p{L}", joins: str = r"[\r\n]*", punctuation: str | None = None
) -> str:
    inner = word.strip("[]")
    punctuation = punctuation or rf" ?[^\s{inner}\p{{N}}]+{joins}"
    return rf"{CONTRACTION}|[^\r\n\p{{L}}\p{{N}}]?{word}+|{numbers}|{punctuation}|{TAIL}"


def o200k(numbers: str, contraction: str) -> str:
    prefix = r"[^\r\n\p{L}\p{N}]?"
    return (
        rf"{prefix}{UPPER}*{LOWER}+{contraction}|{prefix}{UPPER}+{LOWER}*{contraction}|{numbers}"
        rf"| ?[^\s\p{{L}}\p{{N}}]+[\r\n/]*|{TAIL}"
    )


DEEPSEEK_WORDS = (
    r"""[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+"""
    rf"""| ?[\p{{P}}\p{{S}}]+[\r\n]*|{TAIL}"""
)
BLOOM = r" ?[^(\s|.,!?…。，、।۔،)]+"


def splits(*patterns: str) -> list:
    return [pre_tokenizers.Split(Regex(p), "isolated") for p in patterns]


def digits() -> list:
    return [pre_tokenizers.Digits(individual_digits=True)]


# One `tokenizer.ggml.pre` name per scanner -> (pre-tokenizers before ByteLevel, ByteLevel's own regex, NFC,
# ignore_merges).
SCANNERS = {
    "gpt-2": ([], True, False, False),
    "smollm": (digits(), True, False, False),
    "llama-bpe": (splits(cl100k(r"\p{N}{1,3}")), False, False, True),
    "chatglm-bpe": (splits(cl100k(r"\p{N}{1,3}")), False, False, False),
    "qwen2": (splits(cl100k(r"\p{N}")), False, True, False),
    "stablelm2": (splits(cl100k(r"\p{N}")), False, False, False),
    "bailingmoe": (
        splits(
            r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+"
        ),
        False,
        False,
        False,
    ),
    "qwen35": (splits(cl100k(r"\p{N}", word=r"[\p{L}\p{M}]")), False, True, False),
    "seed-coder": (
        splits(cl100k(r"\p{N}{1}", punctuation=r" ?[^\s\p{L}\p{N}\r\n]+")),
        False,
        False,
        False,
    ),
    "gpt-4o": (splits(o200k(r"\p{N}{1,3}", CONTRACTION + "?")), False, False, False),
    "tekken": (splits(o200k(r"\p{N}", "")), False, False, True),
    "deepseek-v3": (
        splits(r"\p{N}{1,3}", "[一-龥\u3040-ゟ゠-ヿ]+", DEEPSEEK_WORDS),
        False,
        False,
        False,
    ),
    "deepseek-coder": (
        [*splits("[\r\n]", r"\s?\p{L}+", r"\s?\p{P}+", "[一-龥ࠀ-一가-퟿]+"), *digits()],
        False,
        False,
        False,
    ),
    "bloom": (splits(BLOOM), False, False, False),
    "viking": (splits(BLOOM, r"\p{N}"), False, False, False),
}


def small_vocabulary(kind: str) -> dict:
    """`bpe` or `spm`: tests/data/tokenizer, made by tools/golden/make_tokenizer_golden.py."""
    return json.loads((DATA / f"small_{kind}.json").read_text(encoding="utf-8"))


def byte_level(pre: str, vocabulary: dict) -> Tokenizer:
    before, use_regex, nfc, ignore_merges = SCANNERS[pre]
    ids = {
        p: i
        for i, (p, t) in enumerate(zip(vocabulary["pieces"], vocabulary["types"], strict=True))
        if t == NORMAL
    }
    merges = [tuple(m.split(" ")) for m in vocabulary["merges"]]
    tokenizer = Tokenizer(models.BPE(ids, merges, ignore_merges=ignore_merges))
    if nfc:
        tokenizer.normalizer = normalizers.NFC()
    last = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=use_regex)
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([*before, last])
    add_specials(tokenizer, vocabulary)
    return tokenizer


def sentence_piece(vocabulary: dict) -> Tokenizer:
    pieces, types, scores = vocabulary["pieces"], vocabulary["types"], vocabulary["scores"]
    ids = {p: i for i, (p, t) in enumerate(zip(pieces, types, strict=True)) if t != USER_DEFINED}
    merges = []
    for i in sorted((i for i, t in enumerate(types) if t == NORMAL), key=lambda i: -scores[i]):
        piece = pieces[i]
        pairs = [(piece[:k], piece[k:]) for k in range(1, len(piece))]
        merges += sorted(
            (p for p in pairs if p[0] in ids and p[1] in ids), key=lambda p: (ids[p[0]], ids[p[1]])
        )
    tokenizer = Tokenizer(
        models.BPE(ids, merges, unk_token="<unk>", byte_fallback=True, fuse_unk=True)
    )
    tokenizer.normalizer = normalizers.Sequence(
        [normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")]
    )
    add_specials(tokenizer, vocabulary)
    return tokenizer


def add_specials(tokenizer: Tokenizer, vocabulary: dict) -> None:
    for i, (piece, kind) in enumerate(zip(vocabulary["pieces"], vocabulary["types"], strict=True)):
        if kind in (CONTROL, USER_DEFINED, UNKNOWN):
            tokenizer.add_tokens(
                [AddedToken(piece, normalized=False, special=kind != USER_DEFINED)]
            )
            assert tokenizer.token_to_id(piece) == i, f"{piece} must come after the normal pieces"


SPACES = [
    " ", "  ", "\n", "\r\n", "\t", "\u00a0", "\u3000", "\u2028", "\r", "\u0085", "\x0b", "\n\n", "   ",
]  # fmt: skip
BITS = [
    *SPACES, "'s", "'S", "'\u017f", "'re", "'LL", "'d", "'", "don't", "I'VE", "Hello", "WORLD", "camelCase", "of the",
    "0", "12", "123", "1234567", "\u0663\u0664", "\u00bd", "\u2167", "\u4e00\u4e8c", "\u3053\u3093", "\uac00\uac01",
    "e\u0301", "\u00e9", "\u0301", "\u0e01\u0e34", "\u0915\u094d\u0937", "\U0001f600", "\U0001f468\u200d\U0001f469",
    "!", "...", "?!", "//", "/", "$", "+=", "_", "-", "\u2014", "\u00ab", "(", ")", "<|", "|>", "<s>", "\x00", "\ufffd",
    "\u200b", "\ue000", "\U000e0001", "\u1100\u1161\u11a8", "\u0344", "\u212b", "\u2126", "\u01c5", "\u02b0", "\u2026",
    "\u3002", "\uff0c", "\u0964", "\U00016ff4", "\U00011de0", "\u0660", "A", "b", "\u0130", "\u00df", "\u2160",
]  # fmt: skip


def random_texts(seed: int, count: int, longest: int = 30) -> Iterator[str]:
    """Texts of the bits that scanners decide about."""
    rng = random.Random(seed)
    for _ in range(count):
        yield "".join(rng.choice(BITS) for _ in range(rng.randint(1, longest)))
