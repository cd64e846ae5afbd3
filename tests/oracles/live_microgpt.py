"""microgpt against torch: the same weights and documents, autograd and Adam in f64, both engines.

Every batch holds all documents, so that the order in which they are shuffled does not matter. The weights after
some steps of Adam agree only where every gradient of the whole model did.
"""

import json
import pathlib
import tempfile
import unittest

import limpid_program
import numpy
import torch
from safetensors.numpy import load_file, save_file

DOCUMENTS = ["abba", "cab", "deed", "faced", "beef", "a"]
LETTERS = "abcdef"
N_EMBD, N_LAYER, N_HEAD, BLOCK_SIZE, N_STEPS = 12, 2, 3, 5, 20
LEARNING_RATE, BETA1, BETA2, EPSILON = 0.01, 0.85, 0.99, 1e-8


def initial_weights() -> dict[str, numpy.ndarray]:
    generator = numpy.random.default_rng(5)
    vocab_size = len(LETTERS) + 1
    shapes = {"wte": (vocab_size, N_EMBD), "wpe": (BLOCK_SIZE, N_EMBD)}
    shapes["lm_head"] = (vocab_size, N_EMBD)
    for i in range(N_LAYER):
        for name in ("attn_wq", "attn_wk", "attn_wv", "attn_wo"):
            shapes[f"layer{i}.{name}"] = (N_EMBD, N_EMBD)
        shapes[f"layer{i}.mlp_fc1"] = (4 * N_EMBD, N_EMBD)
        shapes[f"layer{i}.mlp_fc2"] = (N_EMBD, 4 * N_EMBD)
    return {name: generator.normal(0, 0.3, shape) for name, shape in shapes.items()}


def rms_norm(x: torch.Tensor) -> torch.Tensor:
    return x * (x.pow(2).mean(-1, keepdim=True) + 1e-5).rsqrt()


def document_loss(w: dict[str, torch.Tensor], text: str) -> torch.Tensor:
    bos = len(LETTERS)
    tokens = [bos, *(LETTERS.index(c) for c in text), bos]
    n = min(BLOCK_SIZE, len(tokens) - 1)
    x = rms_norm(w["wte"][tokens[:n]] + w["wpe"][:n])
    for i in range(N_LAYER):
        h = rms_norm(x)
        q, k, v = (
            (h @ w[f"layer{i}.attn_w{name}"].T).view(n, N_HEAD, -1).transpose(0, 1)
            for name in "qkv"
        )
        attended = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + attended.transpose(0, 1).reshape(n, N_EMBD) @ w[f"layer{i}.attn_wo"].T
        hidden = torch.relu(rms_norm(x) @ w[f"layer{i}.mlp_fc1"].T)
        x = x + hidden @ w[f"layer{i}.mlp_fc2"].T
    return torch.nn.functional.cross_entropy(x @ w["lm_head"].T, torch.tensor(tokens[1 : n + 1]))


def train_in_torch(start: dict[str, numpy.ndarray]) -> tuple[list[float], dict[str, numpy.ndarray]]:
    weights = {name: torch.tensor(value, requires_grad=True) for name, value in start.items()}
    adam = torch.optim.Adam(weights.values(), LEARNING_RATE, (BETA1, BETA2), EPSILON)
    losses = []
    for step in range(N_STEPS):
        adam.param_groups[0]["lr"] = LEARNING_RATE * (1 - step / N_STEPS)
        adam.zero_grad()
        loss = torch.stack([document_loss(weights, text) for text in DOCUMENTS]).mean()
        loss.backward()
        adam.step()
        losses.append(loss.item())
    return losses, {name: value.detach().numpy() for name, value in weights.items()}


class Microgpt(unittest.TestCase):
    def check(self, *engine: str) -> None:
        start = initial_weights()
        expected_losses, expected_weights = train_in_torch(start)
        metadata = {"format": "limpid.microgpt", "characters": LETTERS}
        for key, value in (("n_embd", N_EMBD), ("n_layer", N_LAYER), ("n_head", N_HEAD)):
            metadata[key] = str(value)
        metadata["block_size"] = str(BLOCK_SIZE)
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            save_file(start, folder / "start.safetensors", metadata)
            (folder / "documents.txt").write_text("\n".join(DOCUMENTS))
            options = ("--batch_size", len(DOCUMENTS), "--num_steps", N_STEPS, "--samples", 0)
            files = ("--load", folder / "start.safetensors", "--save", folder / "end.safetensors")
            data = ("--data", folder / "documents.txt", "--json")
            out = limpid_program.run("microgpt", *engine, *options, *files, *data)
            weights = load_file(folder / "end.safetensors")
        losses = [json.loads(line)["loss"] for line in out.splitlines()]
        numpy.testing.assert_allclose(losses, expected_losses, rtol=1e-9)
        self.assertEqual(weights.keys(), expected_weights.keys())
        for key, value in expected_weights.items():
            numpy.testing.assert_allclose(weights[key], value, rtol=0, atol=1e-9, err_msg=key)

    def test_scalar(self):
        self.check("--engine", "scalar")

    def test_fast(self):
        self.check("--engine", "fast", "--dtype", "f64")


if __name__ == "__main__":
    limpid_program.main()
