"""`limpid chat` as a person and as a script meet it, on a tiny model that says nothing sensible."""

import contextlib
import json
import os
import pathlib
import pty
import select
import signal
import subprocess
import tempfile
import termios
import time
import unittest

import limpid_program

TINY = pathlib.Path(__file__).resolve().parents[1] / "data" / "cli" / "tiny_chat.gguf"
GREEDY = ["-m", TINY, "--temp", "0", "-n", "8"]
ENDLESS = ["-m", TINY, "-n", "-1", "--ignore-eos", "--context-shift"]


def chat(*arguments: object, stdin: str = ""):
    command = [str(limpid_program.PROGRAM), "chat", *map(str, arguments)]
    done = subprocess.run(command, input=stdin.encode(), capture_output=True, timeout=120)
    return done.returncode, done.stdout.decode(), done.stderr.decode()


class Scripted(unittest.TestCase):
    def test_single_turn_prints_the_answer_alone(self):
        code, out, err = chat(*GREEDY, "-st", "-p", "hello")
        self.assertEqual((code, err), (0, ""))
        self.assertTrue(out.endswith("\n"))
        self.assertEqual(chat(*GREEDY, "-st", stdin="hello\nnever said\n"), (0, out, ""))

    def test_each_line_is_a_turn_until_exit(self):
        for leave in ("", "exit\nnot this\n", "/exit\nnot this\n"):
            code, out, _ = chat(*GREEDY, "--json", stdin="hello\n\nthe world\n" + leave)
            answers = [json.loads(line) for line in out.splitlines()]
            self.assertEqual((code, len(answers)), (0, 2))
        self.assertGreater(answers[1]["timings"]["n_reused"], 0)

    def test_clear_forgets(self):
        first, _, again = chat(*GREEDY, "--json", stdin="hello\nthe\n/clear\nhello\n")[
            1
        ].splitlines()
        self.assertEqual(json.loads(first)["ids"], json.loads(again)["ids"])

    def test_the_prompt_is_the_template_s(self):
        text = "<|im_start|>system\n{}<|im_end|>\n<|im_start|>user\nhello<|im_end|>\n<|im_start|>assistant\n"
        for flags, system in (([], "You are a helpful assistant."), (["-sys", "the"], "the")):
            chatted = json.loads(chat(*GREEDY, "-st", "--json", "-p", "hello", *flags)[1])
            command = ["tokenize", "-m", TINY, "--special", "-p", text.format(system)]
            ids = limpid_program.run_json(*command)
            self.assertEqual(chatted["timings"]["n_prompt"], len(ids))
            command = [
                "run",
                "-m",
                TINY,
                "--temp",
                "0",
                "-n",
                "8",
                "--json",
                "-p",
                text.format(system),
            ]
        without = json.loads(chat(*GREEDY, "-st", "--json", "-p", "hello", "-sys", "")[1])
        self.assertLess(without["timings"]["n_prompt"], chatted["timings"]["n_prompt"])

    def test_what_a_user_types_is_never_a_control_token(self):
        plain = json.loads(chat(*GREEDY, "-st", "--json", "-p", "hello<|im_end|>")[1])
        clean = json.loads(chat(*GREEDY, "-st", "--json", "-p", "hello")[1])
        extra = plain["timings"]["n_prompt"] - clean["timings"]["n_prompt"]
        command = ["tokenize", "-m", TINY, "-p", "hello<|im_end|>"]
        spelled = len(limpid_program.run_json(*command)) - len(
            limpid_program.run_json(*command[:-1], "hello")
        )
        self.assertGreater(spelled, 1)
        self.assertEqual(extra, spelled)

    def test_a_template_that_refuses_system_messages(self):
        with tempfile.NamedTemporaryFile("w", suffix=".jinja") as file:
            file.write(
                "{% if messages[0].role == 'system' %}{{ raise_exception('no system role') }}{% endif %}"
                "{{ messages[0].content }}"
            )
            file.flush()
            options = [*GREEDY, "-st", "-p", "hello", "--chat-template-file", file.name]
            self.assertEqual(chat(*options)[0], 0)
            code, _, err = chat(*options, "-sys", "the")
            self.assertEqual(code, 1)
            self.assertIn("no system role", err)

    def test_interrupt_of_a_script_is_130(self):
        command = [str(limpid_program.PROGRAM), "chat", *map(str, ENDLESS), "-st", "-p", "the"]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.assertTrue(process.stdout.read(1))
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)
        self.assertEqual(process.returncode, 130)


def prompt(seen: bytes) -> bool:
    return b"> " in seen


class Terminal:
    """The program on a terminal of its own."""

    def __init__(self, *arguments: object) -> None:
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            command = [str(limpid_program.PROGRAM), "chat", *map(str, arguments)]
            os.execve(command[0], command, {**os.environ, "TERM": "xterm", "LC_ALL": "C.UTF-8"})
        self.seen = b""

    def type(self, text: str) -> None:
        os.write(self.fd, text.encode())

    def read_until(self, done, seconds: float = 60) -> None:
        """Reads until `done(what came since the last call)`."""
        start = len(self.seen)
        end = time.monotonic() + seconds
        while not done(self.seen[start:]):
            if time.monotonic() > end:
                raise AssertionError(f"nothing more came after {self.seen[start:]!r}")
            if select.select([self.fd], [], [], 0.1)[0]:
                self.seen += os.read(self.fd, 4096)

    def wait_for_prompt(self, done=prompt, seconds: float = 60) -> None:
        """Also until the line editor listens: what is typed before it takes the terminal over is not its own."""
        self.read_until(done, seconds)
        end = time.monotonic() + seconds
        while termios.tcgetattr(self.fd)[3] & termios.ICANON and time.monotonic() < end:
            time.sleep(0.01)

    def exit_code(self, seconds: float = 60) -> int:
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if select.select([self.fd], [], [], 0.05)[0]:
                with contextlib.suppress(OSError):  # when the other side is gone
                    self.seen += os.read(self.fd, 4096)
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                os.close(self.fd)
                return os.waitstatus_to_exitcode(status)
        os.kill(self.pid, signal.SIGKILL)
        raise AssertionError("the program did not leave")


class Typed(unittest.TestCase):
    def test_exit_and_control_d_leave(self):
        for keys in ("/exit\r", "exit\r", "\x04"):
            terminal = Terminal(*GREEDY)
            terminal.wait_for_prompt()
            terminal.type(keys)
            self.assertEqual(terminal.exit_code(), 0)

    def test_an_answer_and_another_prompt(self):
        terminal = Terminal(*GREEDY)
        terminal.wait_for_prompt()
        terminal.type("hello\r")
        terminal.wait_for_prompt(
            lambda seen: b"hello" in seen and prompt(seen.split(b"hello", 1)[1])
        )
        terminal.type("/exit\r")
        self.assertEqual(terminal.exit_code(), 0)

    def test_control_c_stops_the_answer_only(self):
        terminal = Terminal(*ENDLESS)
        terminal.wait_for_prompt()
        terminal.type("the\r")
        terminal.read_until(lambda seen: len(seen) > 200)
        terminal.type("\x03")
        terminal.wait_for_prompt(
            lambda seen: seen.rstrip(b" ").endswith(b">") or b"\n> " in seen or b"\r> " in seen
        )
        terminal.type("/exit\r")
        self.assertEqual(terminal.exit_code(), 0)

    def test_control_c_twice_leaves_with_130(self):
        terminal = Terminal(*GREEDY)
        terminal.wait_for_prompt()
        terminal.type("\x03")
        time.sleep(0.3)
        terminal.type("\x03")
        self.assertEqual(terminal.exit_code(), 130)


if __name__ == "__main__":
    limpid_program.main()
