"""Runs clang-tidy over the tree, and again only over what changed since it was last clean.

    run_tidy.py BUILD_DIRECTORY [FILE.cpp]...

A source that was clean is remembered by the hash of what its compiler sees (after the preprocessor) together
with .clang-tidy, in BUILD_DIRECTORY/tidy. Kernels, compiled once for each instruction set, are read once.
"""

import concurrent.futures
import hashlib
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
FOLDERS = ("src", "tests", "fuzz", "bench", "examples")
# What a build without ccache includes first, compiled by gcc: clang cannot read it, and sources do not need it.
PRECOMPILED = re.compile(r" -Winvalid-pch| -include \S+/cmake_pch\.hxx")
# Of the sets that a kernel is compiled for, one whose intrinsics clang and gcc both know.
KERNELS = re.compile(r"limpid_(?:\w+_)?kernels_(?!avx2\.)")


def commands_of(build: pathlib.Path, wanted: list[pathlib.Path]) -> list[dict]:
    """One compile command for each source of the tree, or of those wanted."""
    chosen = {}
    for command in json.loads((build / "compile_commands.json").read_text()):
        path = pathlib.Path(command["directory"], command["file"]).resolve()
        if not path.is_relative_to(ROOT) or path.relative_to(ROOT).parts[0] not in FOLDERS:
            continue
        if KERNELS.search(command.get("output", command["command"])):
            continue
        if not wanted or path in wanted:
            command["command"] = PRECOMPILED.sub("", command["command"])
            chosen.setdefault(path, command)
    return list(chosen.values())


def hash_of(command: dict, settings: bytes) -> str:
    arguments = shlex.split(command["command"])
    arguments[arguments.index("-o") + 1] = "-"
    arguments[arguments.index("-c")] = "-E"
    seen = subprocess.run(
        arguments, cwd=command["directory"], capture_output=True, check=True
    ).stdout
    return hashlib.sha256(settings + seen).hexdigest()


def findings(database: pathlib.Path, command: dict, settings: bytes) -> str:
    """What clang-tidy says of one source; empty when it is clean."""
    clean = database / hash_of(command, settings)
    if clean.exists():
        return ""
    arguments = ["clang-tidy", "--quiet", "-p", str(database), command["file"]]
    done = subprocess.run(arguments, cwd=command["directory"], capture_output=True, text=True)
    if done.returncode == 0:
        clean.touch()
        return ""
    return done.stdout or done.stderr


def main() -> int:
    build = pathlib.Path(sys.argv[1]).resolve()
    commands = commands_of(build, [pathlib.Path(path).resolve() for path in sys.argv[2:]])
    if not commands:
        print(f"error: no source to read in {build}/compile_commands.json", file=sys.stderr)
        return 1
    database = build / "tidy"
    database.mkdir(exist_ok=True)
    (database / "compile_commands.json").write_text(json.dumps(commands))
    settings = (ROOT / ".clang-tidy").read_bytes()
    n_unclean = 0
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for text in pool.map(lambda command: findings(database, command, settings), commands):
            if text:
                n_unclean += 1
                print(text, flush=True)
    print(f"clang-tidy: {n_unclean} of {len(commands)} sources have findings")
    return 1 if n_unclean else 0


if __name__ == "__main__":
    sys.exit(main())
