"""The program for another CPU, run by an emulator, gives the bytes that this machine's program gives: logits of every
architecture, quantised files, sampled texts, a chat.

    equal_bits.py NATIVE_PROGRAM COMMAND...      COMMAND runs the other program: qemu-aarch64 -L SYSROOT PROGRAM

Runs it as a Cortex-A72 (a Raspberry Pi 4: neither half-precision arithmetic nor dot products) and as the emulator's
largest CPU, with each of its instruction sets.
"""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys
import tempfile

DATA = pathlib.Path(__file__).resolve().parents[1] / "data"
STORIES = DATA / "stories260K" / "stories260K.bin"
CHAT = DATA / "cli" / "tiny_chat.gguf"
MODELS = [*sorted((DATA / "golden").glob("*/*.gguf")), STORIES]
IDS = ",".join(map(str, range(1, 25)))
TYPES = ("q8_0", "q4_0", "q5_1", "iq4_nl")
MACHINES = [("cortex-a72", "neon"), ("cortex-a72", "scalar"), ("max", "neon")]


class Program:
    def __init__(self, command: list[str], cpu: str, isa: str, folder: pathlib.Path) -> None:
        self.command, self.folder = command, folder
        self.environment = os.environ | {"QEMU_CPU": cpu, "LIMPID_ISA": isa}
        self.environment["XDG_CACHE_HOME"] = str(folder)

    def __call__(self, *arguments: object, text: str = "") -> bytes:
        done = subprocess.run(
            [*self.command, *map(str, arguments)],
            input=text.encode(),
            capture_output=True,
            env=self.environment,
            timeout=600,
        )
        if done.returncode != 0:
            message = done.stderr.decode(errors="replace")
            raise SystemExit(f"{arguments}: exit {done.returncode}: {message}")
        return done.stdout


def results(program: Program) -> dict[str, bytes]:
    """What is compared, by a name that says what it is."""
    out = program.folder / "out"
    found = {}

    def logits(model: pathlib.Path, name: str) -> None:
        program("logits", "-m", model, "--ids", IDS, "-o", out)
        found[f"logits of {name}"] = out.read_bytes()

    for model in MODELS:
        logits(model, f"{model.parent.name}/{model.name}")
    for file_type in TYPES:
        quantised = program.folder / f"{file_type}.gguf"
        program("quantize", STORIES, quantised, file_type)
        found[f"the file of type {file_type}"] = quantised.read_bytes()
        logits(quantised, file_type)
    found["a sampled text"] = program("run", "-m", STORIES, "-s", 7, "--temp", 0.8, "-n", 100)
    turns = "What is the sea?\nAnd the sky?\n"
    found["a chat"] = program("chat", "-m", CHAT, "-s", 7, "--temp", 0.8, "-n", 40, text=turns)
    return found


def main() -> int:
    native_program, *command = sys.argv[1:]
    with tempfile.TemporaryDirectory() as name:
        expected = results(Program([native_program], "", "", pathlib.Path(name)))
    differing = []
    for cpu, isa in MACHINES:
        with tempfile.TemporaryDirectory() as name:
            found = results(Program(command, cpu, isa, pathlib.Path(name)))
        differing += [f"{cpu}, {isa}: {what}" for what in expected if found[what] != expected[what]]
        print(f"{cpu}, {isa}: {len(expected)} results compared", flush=True)
    for line in differing:
        print(f"error: not the same bytes: {line}", file=sys.stderr)
    return 1 if differing else 0


if __name__ == "__main__":
    sys.exit(main())
