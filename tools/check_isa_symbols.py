"""Holds the kernel objects of each instruction set to symbols of their own namespace.

The same sources are compiled once for each instruction set. A function that two of the objects share
(an inline function, a template of the standard library) is kept once by the linker, and if that is the
copy built with AVX-512, a machine without it stops with SIGILL. So every weak or global
symbol of an object of limpid_kernels_<isa> (and of the kernels of train, insight and the tests) must lie in namespace limpid::isa_<isa>.

    check_isa_symbols.py BUILD_DIRECTORY      exits with 77 when no kernel is built there yet
"""

import pathlib
import re
import subprocess
import sys

LIBRARY = re.compile(r"limpid_(?:\w+_)?kernels_(\w+)\.dir$")
# Letters of nm for symbols that others can see or merge with: all capitals but U (undefined), and u, v, w.
SHARED = set("ABCDGRSTVW") | set("uvw")
# What the compiler adds for itself: coverage counters, sanitizers' registrations, the personality routine.
OF_THE_COMPILER = re.compile(r"^(__odr_asan|__asan|__gcov|__llvm|__sancov|_?_?tsan|DW\.ref\.)")


def own_symbol(isa: str) -> re.Pattern[str]:
    """Mangled names in limpid::isa_<isa>: its functions, locals, guards, tables and type information."""
    namespace = f"isa_{isa}"
    return re.compile(rf"^_Z(?:GV|GR|T[VISTCh]|Z)*N[KVrORC]*6limpid{len(namespace)}{namespace}")


def foreign_symbols(symbols: str, isa: str) -> list[str]:
    """Names that are shared and not of this instruction set; `symbols` as `nm --format=posix` prints them."""
    own = own_symbol(isa)
    found = []
    for line in symbols.splitlines():
        fields = line.split()
        if len(fields) < 2 or fields[1] not in SHARED:
            continue
        if not own.match(fields[0]) and not OF_THE_COMPILER.match(fields[0]):
            found.append(fields[0])
    return found


def main() -> int:
    build = pathlib.Path(sys.argv[1])
    n_objects = 0
    problems = []
    for directory in sorted(build.rglob("limpid_*kernels_*.dir")):
        isa = LIBRARY.search(directory.name).group(1)
        for path in sorted(directory.rglob("*.o")):
            n_objects += 1
            command = ["nm", "--defined-only", "--format=posix", str(path)]
            symbols = subprocess.run(command, capture_output=True, text=True, check=True).stdout
            for name in foreign_symbols(symbols, isa):
                readable = subprocess.run(
                    ["c++filt", name], capture_output=True, text=True, check=True
                )
                problems.append(f"{path.relative_to(build)}: {readable.stdout.strip()}")
    for problem in problems:
        print(f"error: shared by all instruction sets: {problem}", file=sys.stderr)
    if n_objects == 0:
        print(f"skipped: no kernel object under {build}")
        return 77
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
