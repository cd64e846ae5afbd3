"""`limpid tokenizer train`: what it writes and says, and that it can be interrupted."""

import json
import pathlib
import signal
import subprocess
import tempfile
import unittest

import limpid_program

TEXT = "the cat sat on the mat, the cat sat\n" * 20


class Train(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.text = self.folder / "text.txt"
        self.text.write_text(TEXT)
        self.out = self.folder / "tokenizer.json"

    def train(self, *options: object, stdin: str = "") -> tuple[str, str]:
        """Standard output and standard error of a success."""
        code, out, err = limpid_program.outcome("tokenizer", "train", *options, stdin=stdin)
        self.assertEqual(code, 0, err)
        return out, err

    def test_json_says_what_was_learned(self):
        options = ("--vocab-size", 270, "--special", "<s>,</s>", "--json", "-t", 2)
        out, err = self.train(self.text, "-o", self.out, *options)
        report = json.loads(out)
        self.assertGreater(report.pop("seconds"), 0)
        self.assertGreater(report.pop("last_count"), 1)
        self.assertEqual(
            report,
            {
                "output": str(self.out),
                "vocab_size": 270,
                "n_merges": 12,
                "special_tokens": {"<s>": 0, "</s>": 1},
                "pre_tokenizer": "gpt2",
                "n_bytes": len(TEXT),
                "n_words": 20 * 11,
                "n_different_words": 8,  # "the" with and without a space before it
            },
        )
        self.assertRegex(
            err, r"^.*/tokenizer.json: 270 tokens, 12 merges, from 720 B with 220 words"
        )
        self.assertEqual(len(json.loads(self.out.read_text())["model"]["vocab"]), 270)

    def test_lines_of_json_are_read_as_for_training(self):
        lines = self.folder / "lines.jsonl"
        chat = {
            "messages": [{"role": "user", "content": "hi"}, {"role": "assistant", "content": None}]
        }
        lines.write_text(f"{json.dumps({'text': TEXT})}\n\n{json.dumps(chat)}\n")
        plain = [self.folder / "plain.txt", self.folder / "chat.txt"]
        plain[0].write_text(TEXT)
        plain[1].write_text("hi")
        self.train(*plain, "-o", self.out, "--vocab-size", 270)
        for name in ("lines.jsonl", "lines.JSONL", "lines.ndjson"):
            lines = lines.rename(self.folder / name)
            out, _ = self.train(lines, "-o", "-", "--vocab-size", 270)
            self.assertEqual(out, self.out.read_text())

    def test_no_merge_crosses_from_one_document_to_the_next(self):
        lines = self.folder / "lines.jsonl"
        lines.write_text('{"text": "ab"}\n' * 9)
        options = ("--vocab-size", 300, "--pre-tokenizer", "none", "--json")
        out, err = self.train(lines, "-o", self.out, *options)
        self.assertIn("for GGUF, train it with --pre-tokenizer gpt2, llama3 or qwen2", err)
        report = json.loads(out)
        self.assertEqual(
            [report[key] for key in ("n_bytes", "n_words", "n_merges", "last_count")],
            [18, 9, 1, 9],
        )
        vocab = json.loads(self.out.read_text())["model"]["vocab"]
        self.assertEqual([token for token in vocab if len(token) > 1], ["ab"])

    def test_lines_of_json_without_a_text(self):
        lines = self.folder / "lines.jsonl"
        lines.write_text('{"text": ""}\n')
        code, _, err = limpid_program.outcome("tokenizer", "train", lines, "-o", self.out)
        self.assertEqual(code, 1)
        self.assertIn("lines.jsonl is empty: nothing to learn from", err)

    def test_a_text_that_runs_out_of_pairs(self):
        _, err = self.train(self.text, "-o", self.out, "--vocab-size", 5000)
        self.assertRegex(
            err, r"^the text has enough pairs for only \d+ of the 5000 tokens; more text g"
        )
        n_all = len(json.loads(self.out.read_text())["model"]["vocab"])
        options = ("--vocab-size", 5000, "--min-frequency", 30)
        _, err = self.train(self.text, "-o", self.out, *options)
        self.assertIn("; more text, or a smaller --min-frequency, gives more\n", err)
        self.assertLess(len(json.loads(self.out.read_text())["model"]["vocab"]), n_all)

    def test_standard_input_and_output(self):
        self.train(self.text, "-o", self.out, "--vocab-size", 270)
        out, _ = self.train("-", "-o", "-", "--vocab-size", 270, stdin=TEXT)
        self.assertEqual(out, self.out.read_text())
        command = (
            f"{limpid_program.PROGRAM} tokenizer train <(cat {self.text}) -o - --vocab-size 270"
        )
        done = subprocess.run(["bash", "-c", command], capture_output=True, check=True)
        self.assertEqual(done.stdout.decode(), out)

    def test_any_number_of_threads_gives_the_same_file(self):
        self.text.write_text("".join(f"word{i} and {i * i} of\t{i}\n\n  x" for i in range(90_000)))
        self.assertGreater(self.text.stat().st_size, 2 << 20)  # several parts
        written = set()
        for n_threads in (1, 2, 5):
            self.train(self.text, "-o", self.out, "--vocab-size", 400, "-t", n_threads)
            written.add(self.out.read_bytes())
        self.assertEqual(len(written), 1)

    def test_an_interrupted_training_keeps_the_old_file(self):
        with self.text.open("w") as file:
            for i in range(400_000):
                file.write(f"{i * 7919} {i * i}x{i} ")
        self.out.write_text("old")
        options = ["--vocab-size", "500000", "--pre-tokenizer", "none"]
        command = [
            limpid_program.PROGRAM,
            "tokenizer",
            "train",
            self.text,
            "-o",
            self.out,
            *options,
        ]
        process = subprocess.Popen(
            command,
            stderr=subprocess.PIPE,
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        )
        with self.assertRaises(subprocess.TimeoutExpired):
            process.wait(0.3)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=60)
        self.assertEqual((process.returncode, err), (130, b"limpid: stopped\n"))
        self.assertEqual(self.out.read_text(), "old")
        self.assertEqual({path.name for path in self.folder.iterdir()}, {"text.txt", self.out.name})

    def test_help_names_every_option(self):
        code, out, _ = limpid_program.outcome("tokenizer", "--help")
        self.assertEqual(code, 0)
        for option in (
            "--vocab-size",
            "--pre-tokenizer",
            "--special",
            "--min-frequency",
            "--lines",
        ):
            self.assertIn(f"\n  {option} ", out)


if __name__ == "__main__":
    limpid_program.main()
