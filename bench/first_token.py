"""How long a model takes from the start of the program to the logits of the first token, beside one plain read of its files.

    first_token.py MODEL --program build/release/limpid --rounds 5 [--cold]

Reads and runs alternate. A plain read is read(2) through one buffer of 1 MiB, from the first byte to the last. --cold drops the
files from the page cache before each (posix_fadvise; the files must not be mapped or dirty). Peak memory is the program's own,
against what it planned: mapped weights, packed weights, KV cache, activations. Only the standard library.
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import tempfile
import time

BUFFER = bytearray(1 << 20)


def weight_files(model: pathlib.Path) -> list[pathlib.Path]:
    if model.is_file():
        return [model]
    endings = {".pth", ".safetensors", ".gguf"}
    return sorted(path for path in model.iterdir() if path.suffix in endings)


def drop(paths: list[pathlib.Path]) -> None:
    for path in paths:
        descriptor = os.open(path, os.O_RDONLY)
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
        os.close(descriptor)


def plain_read(paths: list[pathlib.Path]) -> float:
    start = time.perf_counter()
    for path in paths:
        descriptor = os.open(path, os.O_RDONLY)
        while os.readv(descriptor, [BUFFER]) > 0:
            pass
        os.close(descriptor)
    return time.perf_counter() - start


def first_token(command: list[str]) -> tuple[float, int]:
    """Seconds until the program says that the logits are written, and its peak of resident memory in bytes."""
    start = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    process.stderr.read(1)
    seconds = time.perf_counter() - start
    _, status, usage = os.wait4(process.pid, 0)
    if status != 0:
        raise SystemExit(process.stderr.read().decode())
    return seconds, usage.ru_maxrss * 1024


def planned_bytes(program: str, model: pathlib.Path, context: list[str]) -> int:
    report = subprocess.run(
        [program, "inspect", "-m", str(model), "--json", *context], capture_output=True, check=True
    )
    plan = json.loads(report.stdout)["memory_plan"]
    return sum(
        plan[key] for key in ("weights_in_file", "weights_packed", "kv_cache", "activations")
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model", type=pathlib.Path)
    parser.add_argument("--program", default="build/release/limpid")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--context", type=int, default=0, help="0: the model's own")
    parser.add_argument("--cold", action="store_true")
    a = parser.parse_args()
    paths = weight_files(a.model)
    context = ["-c", str(a.context)] if a.context else []
    reads, runs, peaks = [], [], []
    with tempfile.TemporaryDirectory() as directory:
        output = str(pathlib.Path(directory) / "logits.npy")
        command = [a.program, "logits", "-m", str(a.model), "--ids", "1", "-o", output, *context]
        if not a.cold:
            plain_read(paths)
            first_token(command)
        for _ in range(a.rounds):
            if a.cold:
                drop(paths)
            reads.append(plain_read(paths))
            if a.cold:
                drop(paths)
            seconds, peak = first_token(command)
            runs.append(seconds)
            peaks.append(peak)
    ratios = [run / read for run, read in zip(runs, reads, strict=True)]
    n_bytes = sum(path.stat().st_size for path in paths)
    kind = "cold" if a.cold else "warm"
    print(f"{kind}: {n_bytes / 1e9:.2f} GB; read {statistics.median(reads):.3f} s, first token")
    print(f"  {statistics.median(runs):.3f} s; ratio {statistics.median(ratios):.2f}", end=" ")
    print(f"({min(ratios):.2f} to {max(ratios):.2f}); peak {max(peaks) / 1e6:.0f} MB", end="")
    try:
        planned = planned_bytes(a.program, a.model, context)
        print(f" of {planned / 1e6:.0f} MB planned ({max(peaks) / planned:.3f})")
    except (KeyError, ValueError, subprocess.CalledProcessError):
        print()


if __name__ == "__main__":
    main()
