#!/usr/bin/env python3
"""`limpid microgpt` beside other programs that train the same model: microseconds of processor time a step.

    bench/microgpt_peers.py --scalar 'a port=./port {steps}' --analytic 'other=./other_{steps}' \
        --analytic-f64 'third=./third {steps}' --python microgpt.py

A peer is a name and a command in which {steps} stands for the number of steps (of an argument, or of the name of
one program for each). What a program does once, as reading its data, is left out: a step is the difference of a
run of MANY and one of FEW steps. Programs take turns, so that what disturbs one disturbs all; the table has the
median of the rounds, the best one, and the ratio to the median of Limpid's engine of the same kind and precision: graphs
of scalars in f64, derivatives written out in f32 (--analytic) or in f64 (--analytic-f64). --python names Karpathy's script, which has
its number of steps in a line `num_steps = 1000`; it runs fewer steps, and in its folder's input.txt.
"""

import argparse
import pathlib
import re
import resource
import shlex
import statistics
import subprocess
import sys
import tempfile

from this_machine import cpu_name

ROOT = pathlib.Path(__file__).resolve().parents[1]
FEW, MANY = 500, 5500
PYTHON_FEW, PYTHON_MANY = 2, 42


def processor_seconds(command: list[str], folder: str) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, cwd=folder, stdout=subprocess.DEVNULL, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


def microseconds_a_step(template: str, few: int, many: int, folder: str) -> float:
    def seconds(steps: int) -> float:
        return processor_seconds(shlex.split(template.replace("{steps}", str(steps))), folder)

    short = seconds(few)
    return (seconds(many) - short) / (many - few) * 1e6


def limpid(program: pathlib.Path, *flags: str) -> str:
    # The python preset's sizes; --json would print more than the peers do.
    return (
        shlex.join([str(program), "microgpt", "--preset", "python", "--samples", "0", *flags])
        + " --num_steps {steps}"
    )


def python_template(script: pathlib.Path, folder: pathlib.Path) -> str:
    text = script.read_text()
    for steps in (PYTHON_FEW, PYTHON_MANY):
        changed, n = re.subn(r"^num_steps = \d+", f"num_steps = {steps}", text, flags=re.MULTILINE)
        if n != 1:
            raise SystemExit(f"{script}: no line `num_steps = ...` to change")
        changed = re.sub(r"range\(20\)", "range(0)", changed)  # no samples
        (folder / f"microgpt_{steps}.py").write_text(changed)
    return f"{shlex.quote(sys.executable)} {shlex.quote(str(folder))}/microgpt_{{steps}}.py"


def peer(text: str) -> tuple[str, str]:
    name, separator, command = text.partition("=")
    if not separator or "{steps}" not in command:
        raise argparse.ArgumentTypeError(f"{text}: not NAME=COMMAND with {{steps}}")
    return name, command


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--limpid", type=pathlib.Path, default=ROOT / "build/release/limpid")
    parser.add_argument("--scalar", type=peer, action="append", default=[], metavar="NAME=COMMAND")
    parser.add_argument(
        "--analytic", type=peer, action="append", default=[], metavar="NAME=COMMAND"
    )
    parser.add_argument(
        "--analytic-f64", type=peer, action="append", default=[], metavar="NAME=COMMAND"
    )
    parser.add_argument("--python", type=pathlib.Path, metavar="FILE")
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        for data in ("input.txt", "names.txt"):
            (folder / data).write_bytes((ROOT / "data" / "names.txt").read_bytes())
        measured = {
            "Limpid scalar (f64)": (limpid(options.limpid), FEW, MANY, "scalar"),
            "Limpid fast (f64)": (
                limpid(options.limpid, "--engine", "fast", "--dtype", "f64"),
                FEW,
                MANY,
                "fast f64",
            ),
            "Limpid fast (f32)": (limpid(options.limpid, "--engine", "fast"), FEW, MANY, "fast"),
        }
        kinds = (options.scalar, options.analytic, options.analytic_f64)
        for kind, peers in zip(("scalar", "fast", "fast f64"), kinds, strict=True):
            for peer_name, command in peers:
                measured[peer_name] = (command, FEW, MANY, kind)
        if options.python:
            template = python_template(options.python, folder)
            measured["the Python original"] = (template, PYTHON_FEW, PYTHON_MANY, "scalar")
        rounds: dict[str, list[float]] = {key: [] for key in measured}
        for _ in range(options.rounds):
            for key, (command, few, many, _kind) in measured.items():
                rounds[key].append(microseconds_a_step(command, few, many, name))
    print(f"{cpu_name()}; {options.rounds} rounds")
    print("| program | µs a step | best | times Limpid's |\n|---|---|---|---|")
    ours = {
        "scalar": statistics.median(rounds["Limpid scalar (f64)"]),
        "fast": statistics.median(rounds["Limpid fast (f32)"]),
        "fast f64": statistics.median(rounds["Limpid fast (f64)"]),
    }
    for key, (_command, _few, _many, kind) in sorted(
        measured.items(), key=lambda item: statistics.median(rounds[item[0]])
    ):
        median = statistics.median(rounds[key])
        ratio = f"{median / ours[kind]:.2f} ({kind})"
        print(f"| {key} | {median:.2f} | {min(rounds[key]):.2f} | {ratio} |")


if __name__ == "__main__":
    main()
