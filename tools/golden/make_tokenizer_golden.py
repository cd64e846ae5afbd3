#!/usr/bin/env python3
"""Makes tests/tokenizer/cases/*.test and, with --train, tests/data/tokenizer/small_{bpe,spm}.json.

The vocabularies are trained on the Universal Declaration of Human Rights (public domain) in 20 languages, the
expected ids are those of Hugging Face `tokenizers` 0.23.3 with the pipelines of tests/oracles/tokenizer_reference.py.
Its trainer breaks ties by chance, so a vocabulary trained again is another one.

usage: make_tokenizer_golden.py [--train udhr2.zip]
"""

from __future__ import annotations

import argparse
import json
import sys
import zipfile
from pathlib import Path

from tokenizers import Tokenizer, models, pre_tokenizers, trainers

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "oracles"))
import tokenizer_reference as reference  # noqa: E402

LANGUAGES = "eng fra deu spa rus ell_monotonic arb hin tha jpn kor cmn_hans vie tur pol fin heb ben tam kat".split()
CODE = """
int main(int argc, char** argv) {\n  for (int i = 0; i < 1234; ++i) {\n    printf("%d\\n", i);  // it's 100% fine\n  }\n}\n
def f(x):\n\tif x == 12:\n\t\treturn "don't"\n\n\n    e\u0301 \U0001f600 I'VE WE'LL camelCase HTTPServer v1.2.3 2024-01-31 10:59\n
"""


def training_text(archive: Path) -> list[str]:
    lines = []
    with zipfile.ZipFile(archive) as udhr:
        for name in LANGUAGES:
            text = udhr.read(f"udhr2/{name}.txt").decode()
            lines.append(text[:6000] if name == "eng" else text[:1500])
    return [*lines, CODE * 3]


def make_bpe(texts: list[str]) -> dict:
    # Trained without a pre-tokenizer, so that its merges run across words, digits and spaces: where a scanner cuts
    # then shows in the ids.
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    trainer = trainers.BpeTrainer(
        vocab_size=900,
        show_progress=False,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        max_token_length=12,
    )
    lines = [text[i : i + 40] for text in texts for i in range(0, len(text), 40)]
    tokenizer.train_from_iterator(lines, trainer)
    model = json.loads(tokenizer.to_str())["model"]
    pieces = sorted(model["vocab"], key=model["vocab"].get)
    merges = [m if isinstance(m, str) else " ".join(m) for m in model["merges"]]
    # Few real texts hold "12  3's": merges that only a wrong cut could use.
    for left, right in [("1", "2"), ("12", "3"), ("Ġ", "1"), ("Ġ", "Ġ"), ("Ċ", "Ċ"), ("!", "Ċ"), ("'", "S"), ("a", "1"),
                        ("ĠĠ", "ĠĠ"), (".", "."), ("..", "."), ("/", "Ċ"), ("o", "W"), ("Ċ", "Ġ"), ("'", "L")]:  # fmt: skip
        if f"{left} {right}" not in merges and left in pieces and right in pieces:
            merges.append(f"{left} {right}")
            if left + right not in pieces:
                pieces.append(left + right)
    types = [reference.NORMAL] * len(pieces)
    # Normal tokens that no merge reaches: only ignore_merges finds them.
    for unreachable in ("WORLD", "Ġof"):
        if unreachable not in pieces:
            pieces.append(unreachable)
            types.append(reference.NORMAL)
    for name, kind in [("<|end|>", reference.CONTROL), ("<|end|>!", reference.CONTROL), ("<s>", reference.CONTROL),
                       ("<tool>", reference.USER_DEFINED)]:  # fmt: skip
        pieces.append(name)
        types.append(kind)
    return {"pieces": pieces, "types": types, "merges": merges}


def make_spm(texts: list[str]) -> dict:
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(replacement="▁", prepend_scheme="always")
    trainer = trainers.BpeTrainer(
        vocab_size=700, show_progress=False, limit_alphabet=150, max_token_length=16
    )
    tokenizer.train_from_iterator([line for text in texts for line in text.splitlines()], trainer)
    vocab = tokenizer.get_vocab()
    trained = sorted(vocab, key=vocab.get)
    merged = [p for p in trained if len(p) > 1]
    merged += [p for p in ("▁▁", "▁▁▁▁", "▁▁▁") if p not in merged]
    single = [p for p in trained if len(p) == 1]
    pieces = [
        "<unk>",
        "<s>",
        "</s>",
        *(f"<0x{b:02X}>" for b in range(256)),
        *merged,
        *single,
        "<tool>",
    ]
    types = [reference.UNKNOWN, reference.CONTROL, reference.CONTROL, *[reference.BYTE] * 256]
    types += [reference.NORMAL] * (len(merged) + len(single)) + [reference.USER_DEFINED]
    scores = [0.0] * 259 + [-float(i) for i in range(len(merged) + len(single))] + [0.0]
    return {"pieces": pieces, "types": types, "scores": scores}


TEXTS = [
    "", " ", "  ", "a", "Hello, world!", "Everyone has the right to life, liberty and security of person.",
    "it's we'LL I'VE don'T 'sup ''s 'Re'", "1 12 123 1234 12345 a1b22c333", "  leading and trailing  ",
    "tabs\tand\n\nlines\r\n  indented\n", "price: $12.50!!\n\n(ok)\n//comment\n/path/to", "HTTPServer camelCase ABC's",
    "\u0627\u0644\u062d\u0642 \u0e01\u0e32\u0e23 \u4eba\u4eba\u751f\u800c\u81ea\u7531 \ubaa8\ub4e0 \u0938\u092d\u0940",
    "e\u0301\u0301 \u1100\u1161\u11a8 \u212b \u0344", "\U0001f600\U0001f468\u200d\U0001f469 ok", "<|end|><|end|>! <s>", "<tool>x <tool>",
    "\u00a0x\u3000\u3000y\u2028z", "WORLD of of", "a" * 40 + " " * 40 + "\n" * 5,
    "The General Assembly, proclaims this Universal Declaration of Human Rights as a common standard of achievement",
]  # fmt: skip


def write_cases(path: Path, header: list[str], tokenizer: Tokenizer, seed: int) -> None:
    lines = ["# Made by tools/golden/make_tokenizer_golden.py; do not edit.", *header, ""]
    for special in (False, True):
        tokenizer.encode_special_tokens = not special
        if special:
            texts = [t for t in TEXTS if "<" in t] + [
                "x<s> y<|end|>!z",
                "<<s>>",
                "<s><s>",
                "<|en<s>d|>",
            ]
        else:
            texts = [*TEXTS, *reference.random_texts(seed, 50, 12)]
        for text in texts:
            ids = tokenizer.encode(text, add_special_tokens=False).ids
            lines += [
                ("encode_special " if special else "encode ") + json.dumps(text),
                " ".join(map(str, ids)),
                "",
            ]
    path.write_text("\n".join(lines), encoding="utf-8")


def train(archive: Path) -> None:
    texts = training_text(archive)
    for kind, vocabulary in (("bpe", make_bpe(texts)), ("spm", make_spm(texts))):
        text = json.dumps(vocabulary, ensure_ascii=False, separators=(",", ":"))
        (reference.DATA / f"small_{kind}.json").write_text(text + "\n", encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--train", type=Path, metavar="udhr2.zip")
    arguments = parser.parse_args()
    if arguments.train:
        train(arguments.train)
    cases = ROOT / "tests" / "tokenizer" / "cases"
    bpe = reference.small_vocabulary("bpe")
    for seed, pre in enumerate(reference.SCANNERS):
        write_cases(
            cases / f"bpe_{pre}.test",
            [f"tokenizer bpe {pre}"],
            reference.byte_level(pre, bpe),
            seed,
        )
    spm = reference.small_vocabulary("spm")
    write_cases(cases / "spm.test", ["tokenizer spm"], reference.sentence_piece(spm), 99)


if __name__ == "__main__":
    main()
