"""What the activations are like that meet each matrix of a model: means and second moments of its inputs."""

import dataclasses
import json
import pathlib
import re

import gguf_llama
import limpid_program
import numpy
import torch

WINDOW = 500


@dataclasses.dataclass
class Moments:
    """Of the inputs x of one matrix, [n_cols]; the first position, which sees only itself, is left out."""

    mean: torch.Tensor  # [n_cols]
    second: torch.Tensor  # E[x xᵀ], [n_cols, n_cols]

    @property
    def energy(self) -> float:
        """E[|x|²]"""
        return self.second.trace().item()

    def directions(self, count: int) -> torch.Tensor:
        """The first principal directions, not centred, as long as the root of their energy; [count, n_cols]"""
        values, vectors = torch.linalg.eigh(self.second)
        return (vectors[:, -count:] * values[-count:].clamp(min=0).sqrt()).T.flip(0)


class MeasuredLlama(gguf_llama.GgufLlama):
    """Sums over the inputs of its matrices, while it is run on the windows of `moments_over`."""

    sums: dict[str, list] | None = None

    def linear(self, x: torch.Tensor, name: str) -> torch.Tensor:
        if self.sums is not None:
            rows = x[1:].double()
            sums = self.sums.setdefault(f"{name}.weight", [0, 0, 0])
            for i, term in enumerate((len(rows), rows.sum(0), rows.T @ rows)):
                sums[i] = sums[i] + term
        return super().linear(x, name)

    def moments_over(self, windows: list[list[int]]) -> dict[str, Moments]:
        """By the names of the weights."""
        self.sums = {}
        for ids in windows:
            self.logits(ids)
        sums, self.sums = self.sums, None
        return {name: Moments(s / n, products / n) for name, (n, s, products) in sums.items()}


def tokens_of(tokenizer: pathlib.Path, text: str) -> list[int]:
    out = limpid_program.run("tokenize", "-m", tokenizer, "--no-bos", "--ids", stdin=text.encode())
    return json.loads(out)


def text_of_the_program() -> str:
    """What `limpid quantize` runs the model on, out of its source."""
    source = (limpid_program.ROOT / "src" / "quantize" / "input_means.cpp").read_text(
        encoding="utf-8"
    )
    literal = re.search(r'kText =\n((?:\s*".*"\n?)+);', source)
    # These literals have the escapes of JSON.
    return "".join(json.loads(line) for line in literal[1].split("\n"))


def random_tokens(count: int, vocab_size: int, seed: int = 1) -> list[int]:
    return numpy.random.default_rng(seed).integers(0, vocab_size, count).tolist()
