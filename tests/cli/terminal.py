"""The program on a terminal of its own, driven as a person would."""

import contextlib
import fcntl
import os
import pathlib
import pty
import select
import signal
import struct
import tempfile
import termios
import time

import limpid_program

TINY = pathlib.Path(__file__).resolve().parents[1] / "data" / "cli" / "tiny_chat.gguf"
PROMPT = "\x1b[1;36m> "
SECONDS = 120  # that the slowest machine may need for one step


class Terminal:
    """`chat` with `arguments`. `state` is its XDG_STATE_HOME; a folder of its own unless given."""

    def __init__(self, *arguments: object, state: pathlib.Path | None = None, **environment: str):
        self.folder = tempfile.TemporaryDirectory()
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            command = [str(limpid_program.PROGRAM), "chat", *map(str, arguments)]
            variables = {"TERM": "xterm", "LC_ALL": "C.UTF-8", "NO_COLOR": ""}
            variables["XDG_STATE_HOME"] = str(state or self.folder.name)
            os.execve(command[0], command, {**os.environ, **variables, **environment})
        self.seen = ""
        self.read = 0  # characters of `seen` that read_until has gone past

    def __enter__(self):
        return self

    def __exit__(self, *_):
        with contextlib.suppress(ProcessLookupError, ChildProcessError):
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
            os.close(self.fd)
        self.folder.cleanup()

    def type(self, text: str) -> None:
        os.write(self.fd, text.encode())

    def resize(self, rows: int, columns: int) -> None:
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def _read_more(self, until: float) -> None:
        if time.monotonic() > until:
            raise AssertionError(f"nothing more came after {self.seen[-2000:]!r}")
        if select.select([self.fd], [], [], 0.1)[0]:
            self.seen += os.read(self.fd, 65536).decode(errors="replace")

    def read_until(self, text: str) -> str:
        """Reads up to the next `text`; gives what came before it."""
        until = time.monotonic() + SECONDS
        while (found := self.seen.find(text, self.read)) < 0:
            self._read_more(until)
        before = self.seen[self.read : found]
        self.read = found + len(text)
        return before

    def wait_for(self, n_characters: int) -> None:
        """Reads until so many characters came after what read_until has gone past."""
        until = time.monotonic() + SECONDS
        while len(self.seen) - self.read < n_characters:
            self._read_more(until)

    def say(self, line: str) -> str:
        """Types a line and reads up to the prompt after what comes of it, which is given."""
        self.type(line + "\r")
        self.read_until("\x1b[0m")  # the end of the line
        return self.read_until(PROMPT)

    def exit_code(self) -> int:
        until = time.monotonic() + SECONDS
        while True:
            with contextlib.suppress(OSError):  # when the other side is gone
                self._read_more(until)
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                os.close(self.fd)
                return os.waitstatus_to_exitcode(status)
