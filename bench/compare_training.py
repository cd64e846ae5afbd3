"""A step of training beside PyTorch's: the same model, the same shapes, the same threads, in turns.

    compare_training.py --case gpt2-124m --case nanogpt --rounds 3 --threads 2

A case is a model and a batch. A round times Limpid (`limpid train --json`, the program of LIMPID_PROGRAM or
build/release) and then torch in a process of its own: a forward pass, a backward pass and an update by AdamW, in f32,
on random tokens; eager and compiled (`--compile`). `smollm2-lora` trains an adapter of rank 8 of SmolLM2's weights in
f32, beside PEFT. Each cell has the median over rounds of the median step; the memory is the most that the process had
in RAM. The share is 6 x parameters x tokens / seconds (4 x for an adapter, whose frozen matrices need no gradient) of
what the multiply-adds of f32 reach on this CPU, all threads together (`limpid devices --measure`). Needs
tools/requirements-oracles.txt.
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
import typing

from this_machine import CACHE

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


SMOLLM2 = "smollm2"
# name -> configuration (or SMOLLM2, of which an adapter learns), sequences in a batch, tokens of a sequence, steps
CASES = {
    "gpt2-124m": (gpt2(12, 768, 12, 1024, 50257), 4, 64, 5),
    "gpt2-124m-long": (gpt2(12, 768, 12, 1024, 50257), 1, 1024, 3),
    "nanogpt": (gpt2(4, 128, 4, 64, 65), 12, 64, 60),
    "smollm2-lora": (SMOLLM2, 4, 128, 4),
}
RANK = 8


class Measured(typing.NamedTuple):
    seconds: float  # of the median step
    peak_bytes: int


def run_measured(command: list[object]) -> tuple[str, int]:
    """Standard output, and the most bytes that the process had in RAM."""
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        process = subprocess.Popen([str(c) for c in command], stdout=out, stderr=err)
        _, status, usage = os.wait4(process.pid, 0)
        out.seek(0)
        err.seek(0)
        if status != 0:
            sys.exit(err.read().decode())
        return out.read().decode(), usage.ru_maxrss * 1024


def smollm2_f32() -> pathlib.Path:
    """SmolLM2's weights as f32 in a folder of safetensors, made when they are first asked for."""
    folder = CACHE / "bench" / "smollm2-f32"
    if not (folder / "config.json").exists():
        folder.parent.mkdir(parents=True, exist_ok=True)
        run_measured(
            [PROGRAM, "convert", "smollm2", folder, "--to", "safetensors", "--dtype", "f32"]
        )
    return folder


def tokenizer_json(vocab_size: int) -> str:
    """So many tokens: the characters of ASCII, and names that no text has."""
    pieces = ["\u0120", *map(chr, range(0x21, 0x7F))][:vocab_size]  # the first spells a space
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


def time_limpid(name: str, threads: int, folder: pathlib.Path) -> Measured:
    config, batch_size, seq_len, n_steps = CASES[name]
    generator = random.Random(1)
    length = 2 * batch_size * seq_len * (n_steps + 4)
    (folder / "text.txt").write_text(
        "".join(chr(generator.randrange(33, 90)) for _ in range(length))
    )
    if config == SMOLLM2:
        model = ["-m", smollm2_f32(), "--lora", RANK]
    else:
        (folder / "config.json").write_text(json.dumps(config))
        (folder / "tokenizer.json").write_text(tokenizer_json(config["vocab_size"]))
        model = ["--config", folder / "config.json", "--tokenizer", folder / "tokenizer.json"]
    out, peak = run_measured(
        [PROGRAM, "train", *model, "--data", folder / "text.txt", "--val", "0", "--batch-size", batch_size,
         "--seq-len", seq_len, "--steps", n_steps + 1, "--out", folder / "run", "--json", "-t", threads]
    )  # fmt: skip
    steps = [json.loads(line) for line in out.splitlines()]
    seconds = [batch_size * seq_len / step["tokens_per_second"] for step in steps[1:-1]]
    return Measured(statistics.median(seconds), peak)


def torch_model(name: str):
    """The model in f32, and its vocabulary's size."""
    import transformers

    config = CASES[name][0]
    if config == SMOLLM2:
        import peft

        model = transformers.AutoModelForCausalLM.from_pretrained(
            smollm2_f32(), dtype="float32", attn_implementation="sdpa"
        )
        adapter = peft.LoraConfig(
            r=RANK, lora_alpha=16, target_modules=["q_proj", "v_proj"], task_type="CAUSAL_LM"
        )
        return peft.get_peft_model(model, adapter), model.config.vocab_size
    settings = {k: v for k, v in config.items() if k not in ("architectures", "model_type")}
    model = transformers.AutoModelForCausalLM.from_config(
        transformers.GPT2Config(**settings, bos_token_id=None, eos_token_id=None, use_cache=False),
        attn_implementation="sdpa",
    )
    return model.float(), config["vocab_size"]


def time_torch(name: str, threads: int, compiled: bool) -> float:
    import torch

    torch.set_num_threads(threads)
    torch.manual_seed(1)
    _, batch_size, seq_len, n_steps = CASES[name]
    model, vocab_size = torch_model(name)
    learns = [p for p in model.parameters() if p.requires_grad]
    optimizer = torch.optim.AdamW(learns, lr=3e-4, fused=True)
    run = torch.compile(model) if compiled else model
    seconds = []
    for _ in range(n_steps + 2):
        ids = torch.randint(vocab_size, (batch_size, seq_len))
        start = time.perf_counter()
        optimizer.zero_grad(set_to_none=True)
        logits = run(ids, use_cache=False).logits
        loss = torch.nn.functional.cross_entropy(logits[:, :-1].flatten(0, 1), ids[:, 1:].flatten())
        loss.backward()
        torch.nn.utils.clip_grad_norm_(learns, 1.0)
        optimizer.step()
        seconds.append(time.perf_counter() - start)
    return statistics.median(seconds[2:])


def run_torch(name: str, threads: int, compiled: bool) -> Measured:
    command = [sys.executable, __file__, "--child", name, "--threads", threads]
    out, peak = run_measured(command + ["--compile"] * compiled)
    return Measured(float(out.split()[-1]), peak)


def n_operations(name: str) -> int:
    """Of a step: of the products with matrices of weights, forward and backward."""
    config, batch_size, seq_len, _ = CASES[name]
    if config == SMOLLM2:
        return 4 * 134_515_008 * batch_size * seq_len
    d = config["n_embd"]
    n_parameters = config["n_layer"] * 12 * d * d + config["vocab_size"] * d
    return 6 * n_parameters * batch_size * seq_len


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
        "| case | Limpid s | torch s | torch compiled s | times torch's best | share of the f32 limit "
        "| Limpid MB | torch MB |"
    )
    print("| -- | -- | -- | -- | -- | -- | -- | -- |")
    for name in options.case or CASES:
        found: dict[str, list[Measured]] = {"limpid": [], "torch": [], "compiled": []}
        for _ in range(options.rounds):
            with tempfile.TemporaryDirectory() as folder:
                found["limpid"].append(time_limpid(name, options.threads, pathlib.Path(folder)))
            found["torch"].append(run_torch(name, options.threads, False))
            if options.compile:
                found["compiled"].append(run_torch(name, options.threads, True))
        seconds = {
            who: statistics.median(m.seconds for m in all) for who, all in found.items() if all
        }
        best = min(seconds["torch"], seconds.get("compiled", float("inf")))
        megabytes = {
            who: statistics.median(m.peak_bytes for m in all) / 1e6
            for who, all in found.items()
            if all
        }
        print(
            f"| {name} | {seconds['limpid']:.4f} | {seconds['torch']:.4f} "
            f"| {seconds.get('compiled', float('nan')):.4f} | {best / seconds['limpid']:.2f} "
            f"| {n_operations(name) / seconds['limpid'] / limit:.0%} "
            f"| {megabytes['limpid']:.0f} | {megabytes['torch']:.0f} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
