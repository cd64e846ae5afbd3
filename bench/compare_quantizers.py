"""Speed and memory of `limpid quantize` beside llama.cpp's quantiser: same source, same types of tensors, in turns.

    compare_quantizers.py                                      MiniMind2-Small (../shared/data), one thread, all types
    compare_quantizers.py --source FILE.gguf --types Q4_0 -t 2 one file

A turn is a whole file, reading and writing included: by Limpid with --no-calibrate, by Limpid as it is, by llama.cpp with
its model open in a program of its own that ran once before. Million elements of matrices a second, medians; the ratio is
that of a round's first and third turn, above 1 Limpid is faster. Memory is the most that `limpid quantize` had resident,
mapped pages of the source among it. Needs tools/requirements-oracles.txt.
"""

import argparse
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

# Nothing large in this program: a child's peak begins at what its parent had resident.
ROOT = pathlib.Path(__file__).resolve().parents[1]
TYPES = "Q8_0 Q4_0 Q4_1 Q5_0 Q5_1 IQ4_NL Q2_K Q3_K_M Q4_K_M Q5_K_M Q6_K IQ4_XS".split()


def serve_llama_cpp(source: pathlib.Path | None, n_threads: int) -> None:
    """Prints the source and how many elements its matrices have; then for each line "TYPE FILE", seconds."""
    sys.path.insert(0, str(ROOT / "tests" / "oracles"))
    import gguf
    import live_quantize
    import llama_cpp_oracle

    source = source or live_quantize.source_of("MiniMind2")
    matrices = [t for t in gguf.GGUFReader(source).tensors if len(t.shape) > 1]
    print(source, sum(int(tensor.n_elements) for tensor in matrices), sep="\n", flush=True)
    for line in sys.stdin:
        file_type, target = line.rstrip("\n").split(" ", 1)
        start = time.perf_counter()
        llama_cpp_oracle.quantize(source, pathlib.Path(target), file_type, False, n_threads)
        print(time.perf_counter() - start, flush=True)


class Peer:
    def __init__(self, source: pathlib.Path | None, n_threads: int) -> None:
        command = [sys.executable, __file__, "--peer", "-t", str(n_threads)]
        if source:
            command += ["--source", str(source)]
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.source, self.n_elements = self.read(), int(self.read())

    def read(self) -> str:
        line = self.process.stdout.readline()
        if not line:
            raise SystemExit("llama.cpp's side ended; see above")
        return line.rstrip("\n")

    def take(self, file_type: str, target: pathlib.Path) -> float:
        """Seconds of a turn."""
        self.process.stdin.write(f"{file_type} {target}\n")
        self.process.stdin.flush()
        return float(self.read())


def turn_of_limpid(command: list[str]) -> tuple[float, float]:
    """Seconds, and the peak of resident memory in MiB."""
    start = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    message = process.stderr.read()
    _, status, usage = os.wait4(process.pid, 0)
    if status != 0:
        raise SystemExit(message.decode())
    return time.perf_counter() - start, usage.ru_maxrss / 1024


def compare(arguments: argparse.Namespace, peer: Peer, file_type: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        target = pathlib.Path(folder) / "quantized.gguf"
        command = [arguments.program, "quantize", peer.source, str(target), file_type]
        command += ["-t", str(arguments.t)]
        plain, as_it_is, theirs, peaks = [], [], [], [[], []]
        peer.take(file_type, target)
        for _ in range(arguments.rounds):
            for i, (seconds, options) in enumerate(((plain, ["--no-calibrate"]), (as_it_is, []))):
                took, peak = turn_of_limpid(command + options)
                seconds.append(took)
                peaks[i].append(peak)
            theirs.append(peer.take(file_type, target))
    medians = [statistics.median(seconds) for seconds in (plain, as_it_is, theirs)]
    ratios = [b / a for a, b in zip(plain, theirs, strict=True)]
    speeds = " | ".join(f"{peer.n_elements / 1e6 / seconds:.1f}" for seconds in medians)
    seconds = ", ".join(f"{seconds:.2f}" for seconds in medians)
    ratio = f"{statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})"
    memory = ", ".join(f"{max(peak):.0f}" for peak in peaks)
    print(f"| {file_type} | {speeds} | {ratio} | {seconds} | {memory} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--source", type=pathlib.Path, help="GGUF; default: MiniMind2-Small")
    parser.add_argument("--types", type=lambda text: text.split(","), default=TYPES)
    parser.add_argument("-t", type=int, default=1, help="threads")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--program", default=str(ROOT / "build" / "release" / "limpid"))
    parser.add_argument("--peer", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.peer:
        serve_llama_cpp(arguments.source, arguments.t)
        return
    peer = Peer(arguments.source, arguments.t)
    print(f"{peer.source}: {peer.n_elements / 1e6:.1f} million elements, {arguments.t} threads")
    print("| type | `--no-calibrate` | as it is | llama.cpp | ratio | seconds | peak, MiB |")
    print("|---|---|---|---|---|---|---|")
    for file_type in arguments.types:
        compare(arguments, peer, file_type)
    peer.process.stdin.close()
    peer.process.wait()


if __name__ == "__main__":
    main()
