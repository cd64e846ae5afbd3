"""Training with `tokenizers`: the reference of `limpid tokenizer train`."""

from __future__ import annotations

import json

import tokenizer_reference
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

# Names of `--pre-tokenizer` -> those of tokenizer_reference.SCANNERS.
NAMES = {"gpt2": "gpt-2", "llama3": "llama-bpe", "qwen2": "qwen2"}


def untrained(pre_tokenizer: str) -> Tokenizer:
    tokenizer = Tokenizer(models.BPE())
    before, use_regex = [], False
    if pre_tokenizer != "none":
        before, use_regex, _, _ = tokenizer_reference.SCANNERS[NAMES[pre_tokenizer]]
    last = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=use_regex)
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([*before, last])
    tokenizer.decoder = decoders.ByteLevel()
    return tokenizer


def trainer(vocab_size: int, special: list[str], min_frequency: int = 0) -> trainers.BpeTrainer:
    return trainers.BpeTrainer(
        vocab_size=vocab_size,
        special_tokens=special,
        min_frequency=min_frequency,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )


def train(
    texts: list[str],
    pre_tokenizer: str,
    vocab_size: int,
    special: list[str] | None = None,
    min_frequency: int = 0,
) -> Tokenizer:
    """Trained on whole texts. `tokenizers` itself reads files line by line (`train`)."""
    tokenizer = untrained(pre_tokenizer)
    tokenizer.train_from_iterator(texts, trainer(vocab_size, special or [], min_frequency))
    return tokenizer


def lines_of(text: str) -> list[str]:
    """Lines with their "\\n", as `tokenizers` reads a file. Other line breaks end no line."""
    return [line + "\n" for line in text.split("\n")[:-1]] + [text.split("\n")[-1]]


def pieces_and_merges(tokenizer_json: str) -> tuple[list[str], list[str]]:
    """The vocabulary in the order of ids, and "left right" for each merge."""
    model = json.loads(tokenizer_json)["model"]
    merges = [merge if isinstance(merge, str) else " ".join(merge) for merge in model["merges"]]
    return sorted(model["vocab"], key=model["vocab"].get), merges
