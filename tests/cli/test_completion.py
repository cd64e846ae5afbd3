"""What shells complete, asked of the shells themselves, and the manual page, asked of man and groff."""

import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest
import unittest.mock

import limpid_program

ASK_BASH = r"""
source "$1"
COMP_WORDS=(limpid "${@:2}")
COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
_limpid
printf '%s\n' "${COMPREPLY[@]}"
"""


# Completion asks the program by the name that stands on the command line.
WITH_LIMPID = {**os.environ, "PATH": f"{limpid_program.PROGRAM.parent}:{os.environ['PATH']}"}


def printed(*arguments: str) -> str:
    return limpid_program.run(*arguments).decode()


def help_options(command: str) -> set[str]:
    """Every spelling that --help shows."""
    lines = printed(command, "--help").split("\nexamples:\n")[0].splitlines()
    names = [re.match(r"  (-[^ ,]+(?:, -[^ ,]+)*)", line) for line in lines]
    return {name for match in names if match for name in match[1].split(", ")}


def command_names() -> list[str]:
    overview = printed("--help").split("limpid COMMAND --help")[0]
    return re.findall(r"^  (\w+) +\S", overview, re.M)


class Bash(unittest.TestCase):
    def setUp(self) -> None:
        holder = tempfile.TemporaryDirectory()
        self.addCleanup(holder.cleanup)
        self.folder = pathlib.Path(holder.name)
        self.script = self.folder / "completion"
        self.script.write_text(printed("completion", "bash"))
        (self.folder / "model one.gguf").touch()
        (self.folder / "models").mkdir()

    def completed(self, *words: str) -> set[str]:
        done = subprocess.run(
            ["bash", "-c", ASK_BASH, "bash", self.script, *words],
            cwd=self.folder,
            env=WITH_LIMPID,
            capture_output=True,
            text=True,
            check=True,
        )
        self.assertEqual(done.stderr, "")
        return set(filter(None, done.stdout.split("\n")))

    def test_commands(self):
        self.assertEqual(self.completed("ch"), {"chat"})
        self.assertEqual(self.completed("de"), {"detokenize", "devices"})
        self.assertEqual(self.completed(""), {*command_names(), "help", "--help", "--version"})
        self.assertEqual(self.completed("help", "ch"), {"chat"})

    def test_options_are_those_of_the_help(self):
        for command in command_names():
            self.assertEqual(
                self.completed(command, "-"), help_options(command) | {"-h", "--help"}, command
            )
        self.assertEqual(self.completed("chat", "--temp"), {"--temp", "--temperature"})
        self.assertEqual(self.completed("chat", "-ct"), {"-ctk", "-ctv"})

    def test_values(self):
        self.assertEqual(self.completed("run", "-m", "mod"), {"model one.gguf", "models"})
        self.assertEqual(self.completed("run", "-m", "smo"), {"smollm2"})
        self.assertEqual(self.completed("run", "mod"), {"model one.gguf", "models"})
        self.assertEqual(
            self.completed("run", "--device", ""), {"cpu", "opencl", "cuda", "reference"}
        )
        self.assertEqual(self.completed("run", "-ctk", "f"), {"f16", "f32"})
        self.assertEqual(self.completed("run", "-p", "mod"), set())
        self.assertEqual(self.completed("completion", "z"), {"zsh"})
        self.assertIn("q4_k_m", self.completed("quantize", "in.gguf", "out.gguf", "q4_k"))

    def test_values_after_an_equals_sign(self):
        # As bash hands them over. The last word is the one that it completes.
        devices = {"cpu", "opencl", "cuda", "reference"}
        self.assertEqual(self.completed("run", "--device", "="), devices)
        self.assertEqual(self.completed("run", "--device", "=", "cp"), {"cpu"})
        self.assertEqual(self.completed("run", "--model", "=", "smo"), {"smollm2"})
        files = {"model one.gguf", "models"}
        self.assertEqual(self.completed("run", "--model", "=", "mod"), files)
        self.assertLess(files, self.completed("run", "--model", "="))


ASK_ZSH = r"""
compdef() { }
compset() { }
_describe() { print -rl -- "${(@P)2}" }
_files() { print -r -- :files }
source "$LIMPID_SCRIPT"
words=(limpid "$@")
CURRENT=$#words
_limpid
"""


class OtherShells(unittest.TestCase):
    def asked(self, shell: str, *command: str) -> list[str]:
        """What the shell prints for a command that finds the script of `limpid completion` in $LIMPID_SCRIPT."""
        if not shutil.which(shell):
            self.skipTest(f"needs {shell}")
        with tempfile.NamedTemporaryFile("w") as script:
            script.write(printed("completion", shell))
            script.flush()
            done = subprocess.run(
                [shell, *command],
                env={**WITH_LIMPID, "LIMPID_SCRIPT": script.name},
                capture_output=True,
                text=True,
            )
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return done.stdout.splitlines()

    def test_zsh(self):
        def asked(*words: str) -> list[str]:
            return self.asked("zsh", "-fc", ASK_ZSH, "zsh", *words)

        self.assertEqual(asked("ch"), ["chat:talk with a model"])
        self.assertIn(
            "--temp:how much chance decides: logits are divided by X", asked("run", "--te")
        )
        self.assertEqual(asked("run", "-ctk", ""), ["f16:", "f32:"])
        self.assertEqual(asked("run", "-m", "smo"), ["smollm2:", ":files"])
        self.assertEqual(asked("run", "--model=smo"), ["--model=smollm2:", ":files"])
        self.assertEqual(asked("run", "-ctk=f3"), ["-ctk=f32:"])
        self.assertEqual(asked("run", "-p", ""), [])

    def test_fish(self):
        def asked(line: str) -> list[str]:
            return self.asked("fish", "-c", f"source $LIMPID_SCRIPT; complete -C '{line}'")

        self.assertEqual(asked("limpid ch"), ["chat\ttalk with a model"])
        self.assertEqual([line.strip() for line in asked("limpid run -ctk ")], ["f16", "f32"])
        self.assertIn("smollm2", [line.strip() for line in asked("limpid run -m s")])
        self.assertEqual([line.strip() for line in asked("limpid run -ctk=f3")], ["-ctk=f32"])
        home = tempfile.TemporaryDirectory()
        self.addCleanup(home.cleanup)
        (pathlib.Path(home.name) / "mine.gguf").touch()
        with unittest.mock.patch.dict(WITH_LIMPID, HOME=home.name):
            for before, begun in (("-m ", "~/"), ("", "--model=~/")):
                words = [line.split("\t")[0] for line in asked(f"limpid run {before}{begun}m")]
                self.assertIn(f"{begun}mine.gguf", words)

    def test_unknown_shells_are_named(self):
        done = subprocess.run([limpid_program.PROGRAM, "completion", "tcsh"], capture_output=True)
        self.assertEqual(done.returncode, 1)
        self.assertEqual(
            done.stderr, b"limpid: no completion for tcsh; there are bash, zsh and fish\n"
        )


class ManualPage(unittest.TestCase):
    def test_it_has_every_command_option_and_example(self):
        page = printed("man")
        plain = re.sub(r"\\f[BIR]", "", page).replace("\\-", "-").replace("\\(aq", "'")
        plain = plain.replace("\\(ti", "~").replace("\\e", "\\")
        for command in command_names():
            self.assertIn(f"\n.SS limpid {command}\n", plain)
            for option in help_options(command):
                self.assertRegex(plain, rf"(?m)^(.*, )?{re.escape(option)}[,\s]")
            for example in printed(command, "--help").split("\nexamples:\n")[1].splitlines():
                self.assertIn(f"\n{example}\n", plain)
        for heading in ("NAME", "SYNOPSIS", "ENVIRONMENT", "FILES", "EXIT STATUS"):
            self.assertIn(f"\n.SH {heading}\n", page)
        self.assertIn("\n.B LLAMA_ARG_MODEL\n", page)
        self.assertTrue(page.isascii())

    def test_groff_has_nothing_to_say_against_it(self):
        if not (groff := shutil.which("groff")):
            self.skipTest("needs groff")
        done = subprocess.run(
            [groff, "-man", "-Tutf8", "-ww", "-z"],
            input=printed("man").encode(),
            capture_output=True,
        )
        if b"cannot open" in done.stderr or b"can't open" in done.stderr:
            self.skipTest("needs all of groff (its macros)")
        self.assertEqual((done.returncode, done.stderr.decode()), (0, ""))

    def test_man_shows_it(self):
        if not (man := shutil.which("man")):
            self.skipTest("needs man")
        with tempfile.NamedTemporaryFile("w", suffix=".1") as file:
            file.write(printed("man"))
            file.flush()
            done = subprocess.run([man, "-l", file.name], capture_output=True, text=True)
        if done.returncode != 0:
            self.skipTest(f"man does not work here: {done.stderr.strip()}")
        self.assertIn("limpid chat -m FILE [options]", done.stdout)


if __name__ == "__main__":
    limpid_program.main()
