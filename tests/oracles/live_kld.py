"""How far quantised inference is from the weights it is given: KLD and top-1 agreement.

The measure is a file's own dequantised weights run in torch f64 (gguf_llama.py), so the loss of quantisation itself
is not in it. Files: SmolLM2-135M-Instruct as released (Q4_1), the same requantised by llama.cpp, and random
weights of a shape that blocks of 256 divide. `reference` must be exact but for f32 storage, `cpu` no further away than
llama.cpp, and both near what was measured.

    live_kld.py [--files SmolLM2-Q4_1,tiny-Q4_K_M] [--positions 2000] [--reference-positions 200]

What is made here (files, logits of the measure) is kept in ${XDG_CACHE_HOME:-~/.cache}/limpid/oracles.
"""

import argparse
import dataclasses
import hashlib
import os
import pathlib
import sys

import gguf_llama
import limpid_program
import llama_cpp_oracle
import numpy
import torch

sys.path.insert(0, str(limpid_program.ROOT / "tools" / "golden"))
import random_llama_gguf

WINDOW = 500
N_CTX = 512
# File -> the largest mean KLD that `cpu` may have. Measured: SmolLM2 0.00178, 0.00179, 0.00211, 0.00213 and less than
# 1e-11; tiny 0.00074 (IQ4_NL) to 0.00090 (Q2_K), and 9.5e-13 for BF16.
CPU_LIMITS = {
    "SmolLM2-Q4_1": 0.0020,
    "SmolLM2-Q8_0": 0.0020,
    "SmolLM2-Q4_0": 0.0024,
    "SmolLM2-Q5_1": 0.0024,
    "SmolLM2-F16": 1e-11,
    "SmolLM2-BF16": 1e-11,
    "tiny-Q2_K": 0.0012,
    "tiny-Q3_K_M": 0.0011,
    "tiny-Q4_K_M": 0.0011,
    "tiny-Q5_K_M": 0.0011,
    "tiny-Q6_K": 0.0010,
    "tiny-IQ4_NL": 0.0010,
    "tiny-IQ4_XS": 0.0010,
    "tiny-Q5_0": 0.0010,
    "tiny-BF16": 2e-12,
}
# By family, as `reference` reads every type exactly. Measured: 2.6e-13 and at most 8.6e-14, part of it from keeping the
# measure as f32.
REFERENCE_LIMITS = {"SmolLM2": 5e-13, "tiny": 1.5e-13}
ORACLES = limpid_program.CACHE / "oracles"


@dataclasses.dataclass
class Agreement:
    kld: float
    top1: float
    n_positions: int


def model_file(name: str) -> pathlib.Path:
    """`SmolLM2-TYPE` or `tiny-TYPE`, made when it is not in the cache."""
    family, file_type = name.split("-", 1)
    if name == "SmolLM2-Q4_1":
        return limpid_program.SMOLLM2
    ORACLES.mkdir(parents=True, exist_ok=True)
    path = ORACLES / f"{name}.gguf"
    if not path.exists():
        if family == "SmolLM2":
            llama_cpp_oracle.quantize(limpid_program.SMOLLM2, path, file_type, False, n_threads=0)
        else:
            # Pure: a K type on every matrix; in a mixture some would hide behind Q6_K.
            shape = random_llama_gguf.SHAPES["tiny"]
            random_llama_gguf.write(path, shape, file_type, tied=True, seed=1, pure=True)
    return path


def windows_of(name: str, n_positions: int) -> list[list[int]]:
    if name.startswith("SmolLM2"):
        text = limpid_program.shared("text", "wiki.test.raw").read_text(encoding="utf-8")[
            : n_positions * 8
        ]
        with llama_cpp_oracle.opened(limpid_program.SMOLLM2, N_CTX, 1) as model:
            ids = model.tokenize(text, add_special=False)[:n_positions]
    else:
        random = numpy.random.default_rng(7)
        ids = random.integers(0, random_llama_gguf.SHAPES["tiny"].vocab_size, n_positions).tolist()
    return [ids[begin : begin + WINDOW] for begin in range(0, len(ids), WINDOW)]


def measure_of(path: pathlib.Path, windows: list[list[int]]) -> list[numpy.ndarray]:
    """Logits in f64, kept as f32: what rounding does to the KLD is of second order, about 1e-13."""
    key = hashlib.sha256(f"{path.name} {path.stat().st_size} {windows}".encode()).hexdigest()[:16]
    kept = [ORACLES / f"logits-{key}-{i}.npy" for i in range(len(windows))]
    ORACLES.mkdir(parents=True, exist_ok=True)
    model = None
    for ids, file in zip(windows, kept, strict=True):
        if not file.exists():
            model = model or gguf_llama.GgufLlama(path)
            partial = file.with_suffix(".partial.npy")
            numpy.save(partial, model.logits(ids).astype(numpy.float32))
            partial.replace(file)
    return [numpy.load(file, mmap_mode="r") for file in kept]


def agreement(measure: list[numpy.ndarray], logits: list[numpy.ndarray]) -> Agreement:
    """Mean over positions of KLD(measure || logits) in nats, and how often the largest logit is the same."""
    klds, same = [], []
    for expected, got in zip(measure, logits, strict=True):
        if expected.shape[0] < got.shape[0] or expected.shape[1] != got.shape[1]:
            raise AssertionError(f"logits {got.shape}, expected {expected.shape}")
        for begin in range(0, got.shape[0], 64):
            p = torch.from_numpy(
                numpy.array(expected[begin : begin + 64][: got.shape[0] - begin])
            ).double()
            q = torch.from_numpy(numpy.array(got[begin : begin + 64])).double()
            p, q = p.log_softmax(-1), q.log_softmax(-1)
            klds.append((p.exp() * (p - q)).sum(-1))
            same.append(p.argmax(-1) == q.argmax(-1))
    kld, top1 = torch.cat(klds), torch.cat(same).double()
    return Agreement(kld.mean().item(), top1.mean().item(), len(kld))


def problems_of(name: str, found: dict[str, Agreement]) -> list[str]:
    problems = []
    reference, cpu, peer = found.get("reference"), found.get("cpu"), found["llama.cpp"]
    if reference and not reference.kld < (limit := REFERENCE_LIMITS[name.split("-")[0]]):
        problems.append(f"KLD of reference {reference.kld:.3g}, not below {limit:g}")
    if cpu and not cpu.kld <= (limit := min(CPU_LIMITS.get(name, numpy.inf), peer.kld)):
        problems.append(f"KLD of cpu {cpu.kld:.3g}, above {limit:.3g}, llama.cpp {peer.kld:.3g}")
    # Both round activations to bf16.
    bf16 = found.get("cpu bf16")
    if bf16 and not bf16.kld <= 1.1 * peer.kld:
        problems.append(f"KLD of bf16 products {bf16.kld:.3g}, above llama.cpp {peer.kld:.3g}")
    if cpu and cpu.top1 < peer.top1:
        problems.append(f"top-1 agreement of cpu {cpu.top1:.4f}, below {peer.top1:.4f}")
    return problems


def compare(name: str, arguments: argparse.Namespace) -> list[str]:
    path = model_file(name)
    windows = windows_of(name, arguments.positions)
    measure = measure_of(path, windows)
    found = {}
    for kv in ("f16", "f32"):
        with llama_cpp_oracle.opened(path, N_CTX, arguments.threads, kv) as model:
            label = "llama.cpp" if kv == "f16" else "llama.cpp, f32 KV"
            found[label] = agreement(measure, [model.logits(ids) for ids in windows])
    ours = arguments.executors + (["cpu bf16"] if name.endswith("-BF16") else [])
    for executor in ours:
        # The plain loops of `reference` take minutes a window; fewer positions there lose nothing, as an error
        # of it would show at every position.
        n_left = arguments.reference_positions if executor == "reference" else arguments.positions
        logits = []
        for ids in windows:
            part = ids[: max(n_left, 0)]
            n_left -= len(part)
            if part:
                device, *products = executor.split()
                options = ["--device", device, "-t", arguments.threads, "-c", N_CTX]
                options += ["--products", *products] if products else []
                logits.append(limpid_program.logits(path, part, *options))
        found[executor] = agreement(measure[: len(logits)], logits)
    for label, result in found.items():
        print(
            f"| {name} | {label} | {result.kld:.3e} | {result.top1:.4f} | {result.n_positions} |",
            flush=True,
        )
    return [f"{name}: {problem}" for problem in problems_of(name, found)]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--files", type=lambda text: text.split(","), default=list(CPU_LIMITS))
    parser.add_argument("--positions", type=int, default=2000)
    parser.add_argument("--reference-positions", type=int, default=200)
    parser.add_argument(
        "--executors", type=lambda text: text.split(","), default=["reference", "cpu"]
    )
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    arguments = parser.parse_args()
    arguments.executors = [executor for executor in arguments.executors if executor]
    if not limpid_program.SMOLLM2.exists():
        print("skipped: needs the model; run `make model`")
        return limpid_program.EXIT_SKIPPED
    if not (limpid_program.SHARED / "text" / "wiki.test.raw").exists():
        arguments.files = [name for name in arguments.files if not name.startswith("SmolLM2")]
        print("skipped part: SmolLM2 needs ../shared/data/text/wiki.test.raw")
    torch.set_num_threads(arguments.threads)
    print("| file | who | mean KLD | top-1 | positions |\n|---|---|---|---|---|")
    problems = [problem for name in arguments.files for problem in compare(name, arguments)]
    for problem in problems:
        print(f"error: {problem}", file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
