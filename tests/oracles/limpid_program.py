"""Runs the program under test, the way scripts of users do."""

import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import unittest

import numpy

ROOT = pathlib.Path(__file__).resolve().parents[2]
DATA = ROOT / "tests" / "data"
SHARED = ROOT.parent / "shared" / "data"
PROGRAM = pathlib.Path(os.environ.get("LIMPID_PROGRAM", ROOT / "build" / "release" / "limpid"))
CACHE = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "limpid"
SMOLLM2 = CACHE / "models" / "SmolLM2-135M-Instruct.Q4_1.gguf"
EXIT_SKIPPED = 77
# A shell ignores SIGINT in what it runs in the background, and programs inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)


def shared(*parts: str) -> pathlib.Path:
    """A file of the shared data; skips the test where that is not beside the clone."""
    path = SHARED.joinpath(*parts)
    if not path.exists():
        raise unittest.SkipTest(f"needs ../shared/data/{'/'.join(parts)}")
    return path


def outcome(*arguments: object, stdin: str = "", env: dict | None = None) -> tuple[int, str, str]:
    """Exit code, standard output and standard error."""
    done = subprocess.run(
        [str(PROGRAM), *map(str, arguments)],
        input=stdin.encode(),
        capture_output=True,
        timeout=120,
        env={**os.environ, **(env or {})},
    )
    return done.returncode, done.stdout.decode(errors="replace"), done.stderr.decode()


def run(*arguments: object, stdin: bytes = b"", timeout: float = 1800) -> bytes:
    """Standard output; a failure shows what stood on standard error."""
    command = [str(PROGRAM), *map(str, arguments)]
    done = subprocess.run(command, input=stdin, capture_output=True, timeout=timeout)
    if done.returncode != 0:
        message = done.stderr.decode(errors="replace").strip()
        raise AssertionError(
            f"{' '.join(command)[:400]}: exit {done.returncode}: {message[-2000:]}"
        )
    return done.stdout


def run_json(*arguments: object, timeout: float = 1800):
    return json.loads(run(*arguments, timeout=timeout))


def require_device(name: str) -> None:
    """Skips the test where the program finds no such device."""
    found = run_json("devices", "--json")
    if name not in [gpu["device"] for gpu in found["gpus"]]:
        raise unittest.SkipTest(found["gpu_problems"][name])


def logits(
    model: pathlib.Path, ids: list[int], *options: object, timeout: float = 3600
) -> numpy.ndarray:
    """f32 [positions, vocab_size] from `limpid logits`; KV in f32 unless the options say otherwise."""
    with tempfile.TemporaryDirectory() as directory:
        ids_file = pathlib.Path(directory) / "ids.txt"
        ids_file.write_text(",".join(map(str, ids)) + "\n")
        out = pathlib.Path(directory) / "out.npy"
        run("logits", "-m", model, "--ids-file", ids_file, "-o", out, *options, timeout=timeout)
        return numpy.load(out)


def main() -> None:
    """unittest.main() for ctest: exits with 77 when every test of the file was skipped, and says why."""
    result = unittest.main(module="__main__", exit=False, verbosity=1).result
    all_of_it = bool(result.skipped) and len(result.skipped) >= result.testsRun
    for reason in dict.fromkeys(reason for _, reason in result.skipped):
        print(f"skipped{'' if all_of_it else ' part'}: {reason}", flush=True)
    if not result.wasSuccessful():
        sys.exit(1)
    sys.exit(EXIT_SKIPPED if all_of_it else 0)
