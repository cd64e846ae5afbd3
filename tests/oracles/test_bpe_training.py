"""`limpid tokenizer train` against `BpeTrainer` of `tokenizers`: the same vocabulary and the same merges."""

import json
import pathlib
import sysconfig
import tempfile
import unittest
import zipfile

import bpe_training_reference as reference
import limpid_program
from limpid_program import run
from tokenizers import Tokenizer

N_CHARACTERS = 400_000  # of a text: a second or two for `tokenizers`


def english() -> str:
    path = limpid_program.shared("text", "tinyshakespeare.txt")
    return path.read_text(encoding="utf-8")[:N_CHARACTERS]


def code() -> str:
    """Python's own library, as far as it is UTF-8."""
    text = ""
    for path in sorted(pathlib.Path(sysconfig.get_paths()["stdlib"]).glob("*.py")):
        text += path.read_text(encoding="utf-8", errors="ignore")
        if len(text) >= N_CHARACTERS:
            break
    return text[:N_CHARACTERS]


def many_languages() -> str:
    with zipfile.ZipFile(limpid_program.shared("text", "udhr2.zip")) as archive:
        names = sorted(name for name in archive.namelist() if name.endswith(".txt"))
        texts = [archive.read(name).decode("utf-8", errors="replace") for name in names]
    return "".join(text[: N_CHARACTERS // len(texts)] for text in texts)


class BpeTraining(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.out = self.folder / "tokenizer.json"

    def write(self, text: str) -> pathlib.Path:
        path = self.folder / "text.txt"
        path.write_bytes(text.encode())
        return path

    def train(self, path: pathlib.Path, *options: object) -> tuple[list[str], list[str]]:
        run("tokenizer", "train", path, "-o", self.out, *options)
        return reference.pieces_and_merges(self.out.read_text(encoding="utf-8"))

    def compare(
        self, text: str, pre_tokenizer: str, vocab_size: int, special: list[str]
    ) -> Tokenizer:
        """Trains with both; the reference's tokenizer."""
        wanted = reference.train([text], pre_tokenizer, vocab_size, special)
        options = ["--vocab-size", vocab_size, "--pre-tokenizer", pre_tokenizer, "-t", 2]
        if special:
            options += ["--special", ",".join(special)]
        pieces, merges = self.train(self.write(text), *options)
        wanted_pieces, wanted_merges = reference.pieces_and_merges(wanted.to_str())
        same = sum(1 for _ in zip(merges, wanted_merges, strict=False))
        for i in range(same):
            self.assertEqual(merges[i], wanted_merges[i], f"merge {i}")
        self.assertEqual(len(merges), len(wanted_merges))
        self.assertEqual(pieces, wanted_pieces)
        return wanted

    def compare_ids(self, trained: Tokenizer, texts: list[str]) -> None:
        """The file in Limpid, the file in `tokenizers`, and the tokenizer that `tokenizers` trained."""
        lines = "".join(json.dumps(text) + "\n" for text in texts).encode()
        done = run("tokenize", "-m", self.out, "--jsonl", "--special", stdin=lines)
        read = Tokenizer.from_file(str(self.out))
        for text, line in zip(texts, done.splitlines(), strict=True):
            ids = json.loads(line)
            self.assertEqual(ids, trained.encode(text).ids)
            self.assertEqual(ids, read.encode(text).ids)
            self.assertEqual(read.decode(ids, skip_special_tokens=False), text)

    def check_sizes(self, text: str, pre_tokenizer: str) -> None:
        special = ["<|endoftext|>", "<|pad|>"]
        for vocab_size in (1000, 8000, 32000):
            with self.subTest(vocab_size=vocab_size):
                trained = self.compare(text, pre_tokenizer, vocab_size, special)
                parts = [text[i : i + 2000] for i in range(0, len(text), len(text) // 20)]
                self.compare_ids(trained, [*parts, "a<|endoftext|>b <|pad|>", "\u00e9\U0001f600"])

    def test_english(self) -> None:
        self.check_sizes(english(), "gpt2")

    def test_code(self) -> None:
        self.check_sizes(code(), "llama3")

    def test_many_languages(self) -> None:
        self.check_sizes(many_languages(), "qwen2")

    def test_without_pre_tokenizer(self) -> None:
        text = code()[:30_000]
        self.compare_ids(self.compare(text, "none", 700, []), [text, "def f(x):\n    return x"])

    def test_a_name_of_a_special_token_in_the_text(self) -> None:
        text = "one<|endoftext|>two <|endoftext|>\n" * 20 + code()[:20_000]
        trained = self.compare(text, "gpt2", 900, ["<|endoftext|>"])
        self.compare_ids(trained, [text[:200], "<|endoftext", "x<|endoftext|>y"])

    def test_files_by_lines(self) -> None:
        """`tokenizers` reads files line by line, which --lines repeats."""
        path = self.write(code()[:200_000] + "\r\n  the end, without a line break")
        other = self.folder / "other.txt"
        other.write_text("A second text.\n\n\n  It's short.")
        wanted = reference.untrained("gpt2")
        wanted.train([str(path), str(other)], reference.trainer(2000, [], 2))
        options = ["--lines", "--vocab-size", 2000, "--min-frequency", 2]
        pieces, merges = self.train(path, other, *options)
        self.assertEqual((pieces, merges), reference.pieces_and_merges(wanted.to_str()))


if __name__ == "__main__":
    limpid_program.main()
