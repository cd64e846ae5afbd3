"""Every mistake of tests/cli/mistakes/ is answered by one line that says what is wrong and what to do,
with exit code 1, and leaves nothing behind.
"""

import base64
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

import limpid_program
from mistakes import broken_models, table

NOBODY = 65534
SMALL_DISK = "mount -t tmpfs -o size=64k tmpfs small && "


def files_in(folder: pathlib.Path) -> dict[str, bytes | None]:
    """Every file with its content; a folder counts for nothing (`~/.cache` may come to be)."""
    return {
        str(path.relative_to(folder)): path.read_bytes() if os.access(path, os.R_OK) else None
        for path in folder.rglob("*")
        if path.is_file()
    }


def pattern(answer: str) -> str:
    return ".*".join(map(re.escape, answer.split("…")))


class Mistakes(unittest.TestCase):
    def setUp(self) -> None:
        holder = tempfile.TemporaryDirectory()
        self.addCleanup(holder.cleanup)
        pathlib.Path(holder.name).chmod(0o755)
        self.folder = pathlib.Path(holder.name) / "work"
        self.folder.mkdir()
        broken_models.make(self.folder)
        self.program = limpid_program.PROGRAM
        self.n_answered = 0
        self.environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(self.folder / "home"),
            "LANG": "C.UTF-8",
            "POCL_CACHE_DIR": holder.name,  # where PoCL leaves a file when devices are looked for
        }

    def answered(self, mistake: table.Mistake, prefix: list[str] | None = None, **options) -> None:
        shell = f'limpid() {{ "{self.program}" "$@"; }}\n'
        # `env` and the like find no shell functions.
        command = re.sub(r"^env (.*)limpid", rf"env \1'{self.program}'", mistake.command)
        done = subprocess.run(
            [*(prefix or []), "bash", "-c", shell + command],
            cwd=self.folder,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=60,
            **options,
        )
        with self.subTest(mistake.command):
            self.assertEqual((done.returncode, done.stdout), (1, b""), done.stderr)
            error = done.stderr.decode()
            self.assertRegex(error, rf"\Alimpid: {pattern(mistake.answer)}\n\Z")
            self.assertEqual(error.count("\n"), 1)
        self.n_answered += 1

    def test_each_gets_its_line_and_leaves_nothing(self):
        before = files_in(self.folder)
        for mistake in table.MISTAKES:
            self.answered(mistake)
            self.assertEqual(files_in(self.folder), before, mistake.command)
        self.assertGreaterEqual(self.n_answered, 20)

    def test_what_may_not_be_read_or_written(self):
        shutil.copy(broken_models.TINY, self.folder / "secret.gguf")
        (self.folder / "secret.gguf").chmod(0)
        (self.folder / "closed").mkdir()
        (self.folder / "closed").chmod(0o555)
        options = {}
        if os.geteuid() == 0:  # root may do everything
            options = {"user": NOBODY, "group": NOBODY, "extra_groups": []}
            self.program = self.folder.parent / "limpid"
            shutil.copy(limpid_program.PROGRAM, self.program)
            # What `make coverage` counts would go into the build folder, which is root's.
            counts = self.folder.parent / "counts"
            counts.mkdir()
            counts.chmod(0o777)
            self.environment["GCOV_PREFIX"] = str(counts)
        before = files_in(self.folder)
        for mistake in table.UNPRIVILEGED:
            self.answered(mistake, **options)
            self.assertEqual(files_in(self.folder), before, mistake.command)

    def test_a_full_disk(self):
        unshare = ["unshare", "--map-root-user", "--mount"]
        (self.folder / "small").mkdir()
        may = shutil.which("unshare") and not subprocess.run(
            [*unshare, "sh", "-c", SMALL_DISK + "true"], cwd=self.folder, capture_output=True
        ).returncode  # fmt: skip
        if not may:
            self.skipTest("needs the right to mount a small disk (unshare --map-root-user --mount)")
        for mistake in table.FULL_DISK:
            # Whatever is left on the disk is said behind the answer, and makes it two lines.
            command = (
                f"{SMALL_DISK}{{ {mistake.command}; code=$?; find small -type f >&2; exit $code; }}"
            )
            self.answered(table.Mistake(command, mistake.answer), unshare)


class NoMistakes(unittest.TestCase):
    """What looks like one, and is answered as asked."""

    def answer(self, *arguments: str) -> subprocess.CompletedProcess:
        command = [
            limpid_program.PROGRAM,
            "run",
            "-m",
            broken_models.TINY,
            "-p",
            "hello",
            "-n",
            "8",
        ]
        return subprocess.run(
            [*command, "--temp", "0", *arguments], capture_output=True, timeout=60, check=True
        )

    def test_no_threads_means_as_many_as_cores(self):
        expected = self.answer().stdout
        for n in ("0", "-1"):
            self.assertEqual(self.answer("-t", n).stdout, expected)

    def test_an_encoding_is_for_a_file_of_ranks_on_either_side(self):
        with tempfile.TemporaryDirectory() as folder:
            ranks = pathlib.Path(folder) / "bytes.tiktoken"
            lines = (f"{base64.b64encode(bytes([i])).decode()} {i}\n" for i in range(256))
            ranks.write_text("".join(lines))
            options = ("-p", "hi", "--no-bos", "--encoding", "llama3")
            ids = limpid_program.run("tokenize", "-m", ranks, *options)
            self.assertEqual(ids, b"[104, 105]\n")
            compared = ("-m", broken_models.TINY, "--compare", ranks)
            self.assertIn(b'104 "h"', limpid_program.run("tokenize", *compared, *options))

    def test_another_tokenizer_is_for_the_first_of_two_models(self):
        stories = limpid_program.DATA / "stories260K"
        model = ("-m", stories / "stories260K.bin", "--tokenizer", stories / "tok512.bin")
        options = ("-p", "the world", "--no-bos", "--compare", broken_models.TINY)
        rows = limpid_program.run("tokenize", *model, *options).decode()
        self.assertRegex(rows, r'265 " the" +\| 257 "the"')

    def test_more_context_than_the_model_learned_is_said(self):
        self.assertIn(
            b"-c 1000: the model learned 256 tokens of context", self.answer("-c", "1000").stderr
        )
        self.assertNotIn(b"learned", self.answer("-c", "256").stderr)
        with tempfile.TemporaryDirectory() as folder:
            given = (
                "-m",
                broken_models.TINY,
                "--ids",
                "5,6",
                "-c",
                "1000",
                "-o",
                f"{folder}/x.npy",
            )
            _, _, err = limpid_program.outcome("logits", *given)
        self.assertIn("-c 1000: the model learned 256 tokens of context", err)

    def test_a_tokenizer_with_more_tokens_than_the_model_is_said(self):
        with tempfile.TemporaryDirectory() as folder:
            larger = pathlib.Path(folder) / "larger.json"
            text = limpid_program.ROOT / "README.md"
            limpid_program.run("tokenizer", "train", text, "--vocab-size", 400, "-o", larger)
            _, _, err = limpid_program.outcome(
                "run", "-m", broken_models.TINY, "--tokenizer", larger, "-p", "a", "-n", 1
            )
        self.assertIn(
            "the tokenizer (--tokenizer) has 400 tokens and the model 299: it may belong to", err
        )


if __name__ == "__main__":
    limpid_program.main()
