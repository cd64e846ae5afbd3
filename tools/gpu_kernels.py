"""The GPU kernels without a GPU: what NVIDIA's compiler makes of them, and what they move.

    gpu_kernels.py [--architectures sm_80,sm_89,sm_90a,sm_100] [--programs matrix_f16,ops] [--problems]

Prints two tables in Markdown. The first, which needs nvcc, has a row for each kernel and a column for each architecture:
registers of an item, bytes of local memory of a group, and what is wrong: bytes spilled, or waits for tensor cores that
the compiler added. With --problems it has only kernels with one. The second is of tests/kernel_counts, where that is
built: the bytes that the kernels of decoding move, counted, beside those that they must move. Exits with 77 where there
is neither, and with 1 when a kernel of decoding moves too much or has a problem, but for the spills that
tests/executor/known_spills.txt names, which the tests allow too.
"""

import argparse
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
PROGRAM = pathlib.Path(os.environ.get("LIMPID_PROGRAM", ROOT / "build" / "release" / "limpid"))
COUNTS = PROGRAM.parent / "tests" / "kernel_counts"
TABLE_OF_SPILLS = ROOT / "tests" / "executor" / "known_spills.txt"
KNOWN_SPILLS = {
    (program, kernel, architecture): int(n_bytes)
    for program, kernel, architecture, n_bytes in map(
        str.split, TABLE_OF_SPILLS.read_text().splitlines()[1:]
    )
}
KNOWN = ", as is known"
ARCHITECTURES = ("sm_80", "sm_89", "sm_90a", "sm_100")
# All others run for every token that is generated, or are products of halves, of prompts too: there
# a spill costs more than it saves.
NOT_OF_DECODE = {"pack", "linear_many"}
ENTRY = re.compile(r"Compiling entry function '(\w+)'")
SPILLS = re.compile(r"(\d+) bytes spill stores, (\d+) bytes spill loads")
# The compiler makes warps wait for products where the program touches sums too early.
WAITS = re.compile(r"\(C75\d\d\).* in (?:the )?function '(\w+)'")
USED = re.compile(r"Used (\d+) registers(?:.*?, (\d+) bytes smem)?")
EXIT_SKIPPED = 77


def kernels_of(source: pathlib.Path, architecture: str) -> dict[str, tuple[int, int, str]]:
    """Registers, bytes of shared memory and the problem, if any, by the kernel's name."""
    options = "-x cu -cubin -fmad=false -w -Xptxas -v".split()
    command = ["nvcc", *options, f"-arch={architecture}", "-o", os.devnull, str(source)]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"error: {source.name} does not compile for {architecture}:\n{done.stderr}")
    found = {}
    name, spilled = "", 0
    waiting = {match[1] for match in WAITS.finditer(done.stderr)}
    for line in done.stderr.splitlines():
        if entry := ENTRY.search(line):
            name, spilled = entry[1], 0
        elif spills := SPILLS.search(line):
            spilled = int(spills[1]) + int(spills[2])
        elif used := USED.search(line):
            problem = f"{spilled} B spilled" if spilled else "waits" if name in waiting else ""
            if 0 < spilled <= KNOWN_SPILLS.get((source.stem, name, architecture), 0):
                problem += KNOWN
            found[name] = (int(used[1]), int(used[2] or 0), problem)
    return found


def cell(kernel: tuple[int, int, str]) -> str:
    registers, shared, problem = kernel
    return f"{registers}, {shared} B" + (f", **{problem}**" if problem else "")


def print_registers(arguments: argparse.Namespace) -> bool:
    """Whether no kernel of decoding has a problem that is not known."""
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([str(PROGRAM), "devices", "--kernels", folder], check=True)
        sources = sorted(pathlib.Path(folder).glob("*.cl"))
        if arguments.programs:
            sources = [source for source in sources if source.stem in arguments.programs]
        rows = []
        for source in sources:
            by_architecture = [kernels_of(source, name) for name in arguments.architectures]
            for kernel in by_architecture[0]:
                rows.append((source.stem, kernel, [kernels[kernel] for kernels in by_architecture]))
    print(f"| program | kernel | {' | '.join(arguments.architectures)} |")
    print(f"| -- | -- | {' | '.join('--' for _ in arguments.architectures)} |")
    for program, kernel, found in rows:
        if any(problem for _, _, problem in found) or not arguments.problems:
            print(f"| {program} | {kernel} | {' | '.join(map(cell, found))} |")
    return not any(
        kernel not in NOT_OF_DECODE
        and any(each[2] and not each[2].endswith(KNOWN) for each in found)
        for _, kernel, found in rows
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--architectures", type=lambda text: text.split(","), default=list(ARCHITECTURES)
    )
    parser.add_argument("--programs", type=lambda text: text.split(","), default=[])
    parser.add_argument("--problems", action="store_true", help="only kernels with one")
    arguments = parser.parse_args()
    has_compiler = shutil.which("nvcc") is not None
    if not has_compiler:
        print("skipped part: there is no nvcc; the CUDA toolkit brings it")
    if not COUNTS.exists():
        print(f"skipped part: {COUNTS} is not built")
    if not has_compiler and not COUNTS.exists():
        return EXIT_SKIPPED
    ok = print_registers(arguments) if has_compiler else True
    if COUNTS.exists():
        print(flush=True)
        ok = subprocess.run([str(COUNTS), "--all"]).returncode == 0 and ok
    return 0 if ok else 1


if __name__ == "__main__":
    sys.exit(main())
