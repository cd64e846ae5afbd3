"""What the program shows on a terminal, and what it says when a file goes away under it."""

import fcntl
import os
import pathlib
import pty
import struct
import subprocess
import tempfile
import termios
import unittest
import unittest.mock

import limpid_program
from mistakes import broken_models

TINY = broken_models.TINY
# A colour by ESC, one by U+009B, text that runs backwards, a title.
EVIL = "a\x1b[31m\x9b31m\u202eb\x1b]0;owned\x07"
SHOWN = "a\\u001b[31m\\u009b31m\\u202eb\\u001b]0;owned\\u0007"


def on_terminal(*arguments: object, columns: int = 80, stdin=subprocess.DEVNULL) -> bytes:
    """What a terminal of that width gets from standard output and standard error."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    command = [str(limpid_program.PROGRAM), *map(str, arguments)]
    process = subprocess.Popen(command, stdin=stdin, stdout=theirs, stderr=theirs)
    os.close(theirs)
    out = b""
    try:
        while chunk := os.read(ours, 65536):
            out += chunk
    except OSError:  # the other side is closed
        pass
    os.close(ours)
    process.wait(timeout=60)
    return out.replace(b"\r\n", b"\n")


class Names(unittest.TestCase):
    """What a file calls its parts is not for the terminal to obey."""

    def setUp(self):
        holder = tempfile.TemporaryDirectory()
        self.addCleanup(holder.cleanup)
        self.path = pathlib.Path(holder.name) / "evil.gguf"

    def assert_harmless(self, out: bytes) -> None:
        text = out.decode()
        # The program's own: erase the line of a progress bar.
        for mine in ("\r", "\x1b[K"):
            text = text.replace(mine, "")
        bad = [
            c
            for c in text
            if (c < " " and c not in "\n\t") or "\x7f" <= c < "\xa0" or c == "\u202e"
        ]
        self.assertEqual(bad, [], text)

    def test_keys_and_values_of_metadata(self):
        broken_models.write_gguf(self.path, "llama", {EVIL: EVIL})
        self.assert_harmless(on_terminal("inspect", self.path))
        self.assertIn(SHOWN.encode(), on_terminal("inspect", self.path))
        self.assert_harmless(on_terminal("inspect", self.path, "--json"))

    def test_a_long_value_is_cut_between_characters(self):
        broken_models.write_gguf(self.path, "llama", {"long": "x" + "é" * 60, "lines": "\n" * 60})
        out = limpid_program.run("inspect", self.path).decode()
        self.assertIn('"x' + "é" * 49 + '"… (121 bytes)', out)
        self.assertIn('"' + "\\n" * 60 + '"\n', out)

    def test_an_architecture_in_an_error(self):
        broken_models.write_gguf(self.path, EVIL, {})
        done = subprocess.run(
            [limpid_program.PROGRAM, "run", "-m", self.path, "-p", "x"], capture_output=True
        )
        self.assertEqual(done.returncode, 1)
        self.assert_harmless(done.stderr)
        self.assertIn(SHOWN.encode(), done.stderr)

    def test_a_path_in_an_error(self):
        done = subprocess.run(
            [limpid_program.PROGRAM, "run", "-m", f"./{EVIL}", "-p", "x"], capture_output=True
        )
        self.assert_harmless(done.stderr)
        self.assertIn(SHOWN.encode(), done.stderr)

    def test_ids_that_a_terminal_would_obey(self):
        ids = limpid_program.run("tokenize", "-m", TINY, "-p", EVIL).decode().strip()
        self.assertEqual(
            on_terminal("detokenize", "-m", TINY, "--ids", ids), SHOWN.encode() + b"\n"
        )
        # To a file or a program go the bytes as they are.
        self.assertEqual(limpid_program.run("detokenize", "-m", TINY, "--ids", ids), EVIL.encode())


class Width(unittest.TestCase):
    def test_help_fits_the_terminal(self):
        for columns in (40, 80, 132):
            lines = on_terminal("run", "--help", columns=columns).decode().split("\nexamples:")[0]
            # A word that is longer than the line stays whole.
            longest = max(len(line) for line in lines.splitlines() if " " in line.strip())
            self.assertLessEqual(longest, columns)
            self.assertGreater(longest, columns * 0.8)

    def test_a_loading_bar_fits_the_terminal(self):
        for columns in (20, 40, 80):
            out = on_terminal("run", "-m", TINY, "-p", "a", "-n", "1", columns=columns).decode()
            bars = [part.split("\x1b[K")[0] for part in out.split("\r") if "loading" in part]
            self.assertTrue(bars)
            for bar in bars:
                self.assertLess(len(bar), columns)


class Colours(unittest.TestCase):
    def note(self, no_color: str) -> bytes:
        with unittest.mock.patch.dict(os.environ, {"TERM": "xterm", "NO_COLOR": no_color}):
            return on_terminal("chat", "-m", TINY, "-n", "1")

    def test_notes_are_dim_and_no_color_says_otherwise(self):
        self.assertIn(b"\x1b[2mstandard input is empty", self.note(""))
        plain = self.note("1")
        self.assertIn(b"standard input is empty", plain)
        self.assertNotIn(b"[2m", plain)


class Typed(unittest.TestCase):
    def test_one_control_d_ends_a_text(self):
        expected = limpid_program.run("tokenize", "-m", TINY, stdin=b"hello\n")
        ours, theirs = pty.openpty()
        command = [limpid_program.PROGRAM, "tokenize", "-m", TINY]
        process = subprocess.Popen(command, stdin=theirs, stdout=subprocess.PIPE)
        os.write(ours, b"hello\n\x04")
        try:
            self.assertEqual(process.communicate(timeout=60)[0], expected)
        finally:
            process.kill()
            os.close(ours)
            os.close(theirs)


class Truncated(unittest.TestCase):
    """A model that is replaced while it is in use, as by a second download."""

    def test_the_file_is_named(self):
        with tempfile.TemporaryDirectory() as folder:
            model = pathlib.Path(folder) / "model.gguf"
            limpid_program.run("quantize", TINY, model, "f32", "--allow-requantize")
            process = subprocess.Popen(
                [limpid_program.PROGRAM, "chat", "-m", model, "-n", "4", "-v"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
            )
            while b"opened in" not in (line := process.stderr.readline()):
                self.assertTrue(line)
            os.truncate(model, 0)
            _, err = process.communicate(b"hello\n", timeout=60)
            self.assertEqual(process.returncode, 1, err)
            last = err.decode().splitlines()[-1]
            self.assertEqual(
                last,
                f"limpid: {model} became unreadable while it was in use: it was truncated, or its disk "
                "failed",
            )


if __name__ == "__main__":
    limpid_program.main()
