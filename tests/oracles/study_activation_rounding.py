"""What rounding activations to eight bits costs, by the projections that read them (ADR 3).

SmolLM2-135M-Instruct at Q8_0, its own dequantised weights in torch f32. The input of one kind of projection at a time,
then of all, is rounded as docs/numerics.md has it, with one scale for 32 columns and for 16; the mean KLD over
WikiText-2 from the same model unrounded is what the rounding alone costs.

    study_activation_rounding.py [--positions 1000]
"""

import argparse
import os
import sys

import gguf_llama
import limpid_program
import numpy
import torch
from live_kld import agreement, model_file, windows_of

FILE = "SmolLM2-Q8_0"
GROUPS = (32, 16)  # columns that share a scale
KINDS = {
    "Q, K, V": ("attn_q", "attn_k", "attn_v"),
    "attention output": ("attn_output",),
    "gate, up": ("ffn_gate", "ffn_up"),
    "down": ("ffn_down",),
    "head": ("token_embd", "output"),
}


def rounded(x: torch.Tensor, group: int) -> torch.Tensor:
    """The nearest of 255 levels, evenly spaced up to the largest magnitude of each `group` columns."""
    groups = x.unflatten(-1, (-1, group))
    scale = groups.abs().amax(-1, keepdim=True) / 127
    levels = torch.where(scale > 0, groups / scale, 0).round()
    return (levels * scale).flatten(-2)


class RoundingLlama(gguf_llama.GgufLlama):
    """Rounds what the projections in `rounds` read."""

    rounds: tuple[str, ...] = ()
    group = 32

    def linear(self, x: torch.Tensor, name: str) -> torch.Tensor:
        if name.split(".")[-1] in self.rounds:
            x = rounded(x, self.group)
        return super().linear(x, name)


def kld_of(model: RoundingLlama, measure: list[numpy.ndarray], windows: list[list[int]]) -> float:
    return agreement(measure, [model.logits(ids) for ids in windows]).kld


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--positions", type=int, default=1000)
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    arguments = parser.parse_args()
    if not limpid_program.SMOLLM2.exists():
        print("skipped: needs the model; run `make model`")
        return limpid_program.EXIT_SKIPPED
    if not (limpid_program.SHARED / "text" / "wiki.test.raw").exists():
        print("skipped: needs ../shared/data/text/wiki.test.raw")
        return limpid_program.EXIT_SKIPPED
    torch.set_num_threads(arguments.threads)
    windows = windows_of(FILE, arguments.positions)
    model = RoundingLlama(model_file(FILE), torch.float32)
    measure = [model.logits(ids) for ids in windows]
    print("| rounded | " + " | ".join(f"{group} columns" for group in GROUPS) + " | ratio |")
    print("|---|---|---|---|")
    for kind, names in (*KINDS.items(), ("all", sum(KINDS.values(), ()))):
        klds = []
        for group in GROUPS:
            model.rounds, model.group = names, group
            klds.append(kld_of(model, measure, windows))
        columns = " | ".join(f"{kld:.6f}" for kld in klds)
        print(f"| {kind} | {columns} | {klds[1] / klds[0]:.2f} |", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
