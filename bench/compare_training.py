"""A step of training beside PyTorch's: the same model, the same shapes, the same threads, turn about.

    compare_training.py --case gpt2-124m --case nanogpt --rounds 3 --threads 2

A case is a model and a batch. A round times Limpid (`limpid train --json`, the program of LIMPID_PROGRAM or
build/release) and then torch in a process of its own: a forward pass, a backward pass and an update by AdamW, in f32,
on random tokens; eager and compiled (`--compile`). Each cell has the median over rounds of the median step.
The share is 6 x parameters x tokens / seconds of what the multiply-adds of f32 reach on this CPU, all threads together
(`limpid devices --measure`). Needs tools/requirements-oracles.txt.
"""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import random
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
PROGRAM = os.environ.get("LIMPID_PROGRAM", str(ROOT / "build" / "release" / "limpid"))


def gpt2(n_layers: int, d_model: int, n_heads: int, n_positions: int, vocab_size: int) -> dict:
    return {
        "architectures": ["GPT2LMHeadModel"],
        "model_type": "gpt2",
        "vocab_size": vocab_size,
        "n_embd": d_model,
        "n_layer": n_layers,
        "n_head": n_heads,
        "n_positions": n_positions,
        "resid_pdrop": 0.0,
        "embd_pdrop": 0.0,
        "attn_pdrop": 0.0,
    }


# name -> configuration, sequences in a batch, tokens of a sequence, steps to time
CASES = {
    "gpt2-124m": (gpt2(12, 768, 12, 1024, 50257), 4, 64, 5),
    "gpt2-124m-long": (gpt2(12, 768, 12, 1024, 50257), 1, 1024, 3),
    "nanogpt": (gpt2(4, 128, 4, 64, 65), 12, 64, 60),
}


def tokenizer_json(vocab_size: int) -> str:
    """So many tokens: the bytes, and names that no text has."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [b for b in range(256) if b not in printable]
    spelling = {b: chr(b) for b in printable} | {b: chr(256 + i) for i, b in enumerate(others)}
    pieces = [spelling[b] for b in range(32, 32 + min(vocab_size, 95))][:vocab_size]
    pieces += [f"unused{i}" for i in range(vocab_size - len(pieces))]
    return json.dumps(
        {
            "version": "1.0",
            "added_tokens": [],
            "normalizer": None,
            "pre_tokenizer": {
                "type": "ByteLevel",
                "add_prefix_space": False,
                "trim_offsets": True,
                "use_regex": True,
            },
            "post_processor": None,
            "decoder": {
                "type": "ByteLevel",
                "add_prefix_space": True,
                "trim_offsets": True,
                "use_regex": True,
            },
            "model": {"type": "BPE", "vocab": {p: i for i, p in enumerate(pieces)}, "merges": []},
        }
    )


def time_limpid(name: str, threads: int, folder: pathlib.Path) -> tuple[float, float]:
    """Seconds of a step, and MB of memory at most."""
    config, batch_size, seq_len, n_steps = CASES[name]
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "tokenizer.json").write_text(tokenizer_json(config["vocab_size"]))
    generator = random.Random(1)
    length = batch_size * seq_len * (n_steps + 4)
    (folder / "text.txt").write_text(
        "".join(chr(generator.randrange(33, 90)) for _ in range(length))
    )
    command = [
        PROGRAM, "train", "--config", folder / "config.json", "--tokenizer", folder / "tokenizer.json",
        "--data", folder / "text.txt", "--val", "0", "--batch-size", batch_size, "--seq-len", seq_len,
        "--steps", n_steps + 1, "--out", folder / "run", "--json", "-t", threads,
    ]  # fmt: skip
    process = subprocess.Popen(
        [str(c) for c in command], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    out, err = process.communicate()
    if process.returncode != 0:
        sys.exit(err.decode())
    steps = [json.loads(line) for line in out.splitlines()]
    seconds = [batch_size * seq_len / step["tokens_per_second"] for step in steps[1:-1]]
    return statistics.median(seconds), 0.0


def time_torch(name: str, threads: int, compiled: bool) -> float:
    import torch
    import transformers

    torch.set_num_threads(threads)
    torch.manual_seed(1)
    config, batch_size, seq_len, n_steps = CASES[name]
    config = {k: v for k, v in config.items() if k not in ("architectures", "model_type")}
    model = transformers.AutoModelForCausalLM.from_config(
        transformers.GPT2Config(**config, bos_token_id=None, eos_token_id=None, use_cache=False),
        attn_implementation="sdpa",
    ).float()
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4, fused=True)
    run = torch.compile(model) if compiled else model
    seconds = []
    for _ in range(n_steps + 2):
        ids = torch.randint(config["vocab_size"], (batch_size, seq_len))
        start = time.perf_counter()
        optimizer.zero_grad(set_to_none=True)
        logits = run(ids).logits
        loss = torch.nn.functional.cross_entropy(logits[:, :-1].flatten(0, 1), ids[:, 1:].flatten())
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        seconds.append(time.perf_counter() - start)
    return statistics.median(seconds[2:])


def run_torch(name: str, threads: int, compiled: bool) -> float:
    command = [sys.executable, __file__, "--child", name, "--threads", str(threads)]
    out = subprocess.run(command + ["--compile"] * compiled, capture_output=True, text=True)
    if out.returncode != 0:
        sys.exit(out.stderr)
    return float(out.stdout.split()[-1])


def n_parameters(config: dict) -> int:
    d = config["n_embd"]
    return config["n_layer"] * 12 * d * d + config["vocab_size"] * d


def f32_limit() -> float:
    """Floating-point operations in a second of all threads together."""
    out = subprocess.run(
        [PROGRAM, "devices", "--measure", "--json"], capture_output=True, text=True, check=True
    )
    found = json.loads(out.stdout)
    return float(found["limits"]["f32_flops_per_second"])


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--case", action="append", choices=CASES)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--compile", action="store_true", help="torch compiled too")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        print(time_torch(options.child, options.threads, options.compile))
        return
    limit = f32_limit()
    print(
        "| case | Limpid s | torch s | torch compiled s | times torch's best | share of the f32 limit |"
    )
    print("| -- | -- | -- | -- | -- | -- |")
    for name in options.case or CASES:
        times: dict[str, list[float]] = {"limpid": [], "torch": [], "compiled": []}
        for _ in range(options.rounds):
            with tempfile.TemporaryDirectory() as folder:
                times["limpid"].append(time_limpid(name, options.threads, pathlib.Path(folder))[0])
            times["torch"].append(run_torch(name, options.threads, False))
            if options.compile:
                times["compiled"].append(run_torch(name, options.threads, True))
        median = {who: statistics.median(values) for who, values in times.items() if values}
        best = min(median["torch"], median.get("compiled", float("inf")))
        config, batch_size, seq_len, _ = CASES[name]
        flops = 6 * n_parameters(config) * batch_size * seq_len
        print(
            f"| {name} | {median['limpid']:.4f} | {median['torch']:.4f} | {median.get('compiled', float('nan')):.4f} "
            f"| {best / median['limpid']:.2f} | {flops / median['limpid'] / limit:.0%} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
