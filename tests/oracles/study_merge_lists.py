"""What Llama 3's list of merges is like, and where a list parts from ranks (ADR 4, docs/tokenizers.md).

    study_merge_lists.py [--all]

Merges the bytes of every token of `tokenizer.json` in plain Python and counts the merges that make a token of its bytes,
and the tokens whose last merge ranks before an earlier one. Counts the words of the Universal Declaration, those that
differ, and their tokens. Then gives the texts of tokenizer_differential.py (with --all the whole of them) to Limpid with
`tokenizer.json` of Llama 3.1 and with `tokenizer.model` of Llama 3, and counts the texts whose ids are not the same.
"""

import argparse
import json
import sys
import zipfile
from collections.abc import Iterator

import limpid_program
import tokenizer_differential as differential
import tokenizers

BATCH = 20_000_000  # characters


def merged(symbols: list[str], ranks: dict[tuple[str, str], int]) -> tuple[int, list[int]]:
    """How many symbols are left, and the ranks of the merges in their order."""
    order = []
    while True:
        pairs = [ranks.get(pair) for pair in zip(symbols, symbols[1:], strict=False)]
        known = [rank for rank in pairs if rank is not None]
        if not known:
            return len(symbols), order
        rank = min(known)
        at = pairs.index(rank)
        symbols[at : at + 2] = [symbols[at] + symbols[at + 1]]
        order.append(rank)


def describe_list(model: dict) -> None:
    merges = [tuple(m.split(" ")) if isinstance(m, str) else tuple(m) for m in model["merges"]]
    ranks = {pair: rank for rank, pair in enumerate(merges)}
    makers, early = set(), 0
    for piece in model["vocab"]:
        n_left, order = merged(list(piece), ranks)
        if n_left == 1 and order:
            makers.add(order[-1])
            early += order[-1] < max(order)
    print(f"{len(merges)} merges, of which {len(makers)} make a token of its bytes")
    print(f"{early} tokens whose last merge ranks before an earlier one")


def describe_words(tokenizer: tokenizers.Tokenizer) -> None:
    with zipfile.ZipFile(limpid_program.shared("text", "udhr2.zip")) as archive:
        names = sorted(name for name in archive.namelist() if name.endswith(".txt"))
        text = "".join(archive.read(name).decode("utf-8", "replace") for name in names)
    words = [word for word, _ in tokenizer.pre_tokenizer.pre_tokenize_str(text)]
    n_tokens = len(tokenizer.encode(text, add_special_tokens=False).ids)
    n_new = len(set(words))
    print(f"Universal Declaration: {len(words)} words, {n_new} of them new, {n_tokens} tokens")


def batches(everything: bool) -> Iterator[list[str]]:
    batch, size = [], 0
    cases = [
        *differential.corpora(everything),
        *differential.code_points(everything),
        *differential.random_texts(everything),
    ]
    for _, text in cases:
        batch.append(json.dumps(text))
        size += len(text)
        if size >= BATCH:
            yield batch
            batch, size = [], 0
    yield batch


def compare(everything: bool) -> None:
    files = [
        limpid_program.shared("tokenizers", name)
        for name in ("llama3.1_tokenizer.json", "llama3_tokenizer.model")
    ]
    n_texts = n_tokens = n_other = 0
    for batch in batches(everything):
        lines = ("\n".join(batch) + "\n").encode()
        by_list, by_ranks = (
            limpid_program.run("tokenize", "-m", file, "--no-bos", "--jsonl", stdin=lines).split(
                b"\n"
            )
            for file in files
        )
        n_texts += len(batch)
        n_tokens += sum(line.count(b",") + (len(line) > 2) for line in by_ranks)
        n_other += sum(a != b for a, b in zip(by_list, by_ranks, strict=True))
    print(
        f"{n_texts} texts, {n_tokens} tokens by ranks: {n_other} texts have other ids by the list"
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--all", action="store_true", help="every text (minutes)")
    arguments = parser.parse_args()
    path = limpid_program.SHARED / "tokenizers" / "llama3.1_tokenizer.json"
    if not path.exists():
        print("skipped: needs ../shared/data")
        return limpid_program.EXIT_SKIPPED
    describe_list(json.loads(path.read_text(encoding="utf-8"))["model"])
    describe_words(tokenizers.Tokenizer.from_file(str(path)))
    compare(arguments.all)
    return 0


if __name__ == "__main__":
    sys.exit(main())
