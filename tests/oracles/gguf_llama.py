"""The Llama forward pass in torch, f64 unless asked otherwise, from the dequantised weights of a GGUF file.

Written from the papers (RMSNorm arXiv:1910.07467, RoPE arXiv:2104.09864, GQA arXiv:2305.13245, SwiGLU
arXiv:2002.05202) and apart from Limpid's, so that an error would have to be made twice to go unseen.
`live_transformers.py` checks it against transformers.
"""

import dataclasses
import math
import pathlib

import gguf
import numpy
import torch


@dataclasses.dataclass(frozen=True)
class Shape:
    n_layers: int
    n_heads: int
    n_kv_heads: int
    head_dim: int
    n_rot: int  # the first elements of each head, which positions turn
    d_model: int
    d_ff: int
    rope_base: float
    rms_epsilon: float


def field(reader: gguf.GGUFReader, key: str, default=None):
    found = reader.get_field(key)
    if found is not None:
        return found.contents()
    if default is None:
        raise KeyError(f"{key} is missing")
    return default


def architecture(path: pathlib.Path) -> str:
    return field(gguf.GGUFReader(path), "general.architecture")


class GgufLlama:
    """A GGUF file of architecture `llama`. Rows of Q and K are interleaved pairs, as that architecture has them."""

    def __init__(self, path: pathlib.Path, dtype: torch.dtype = torch.float64) -> None:
        reader = gguf.GGUFReader(path)
        arch = field(reader, "general.architecture")
        if arch != "llama":
            raise ValueError(f"{path}: architecture {arch}, not llama")
        n_heads = field(reader, "llama.attention.head_count")
        d_model = field(reader, "llama.embedding_length")
        self.shape = Shape(
            n_layers=field(reader, "llama.block_count"),
            n_heads=n_heads,
            n_kv_heads=field(reader, "llama.attention.head_count_kv", n_heads),
            head_dim=field(reader, "llama.attention.key_length", d_model // n_heads),
            n_rot=field(reader, "llama.rope.dimension_count", d_model // n_heads),
            d_model=d_model,
            d_ff=field(reader, "llama.feed_forward_length"),
            rope_base=field(reader, "llama.rope.freq_base", 10000.0),
            rms_epsilon=field(reader, "llama.attention.layer_norm_rms_epsilon"),
        )
        self.linear_factor = 1.0
        if field(reader, "llama.rope.scaling.type", "none") == "linear":
            self.linear_factor = field(reader, "llama.rope.scaling.factor")
        self.weights = {
            tensor.name: torch.from_numpy(
                numpy.array(gguf.dequantize(tensor.data, tensor.tensor_type))
            ).to(dtype)
            for tensor in reader.tensors
        }
        self.head = "output" if "output.weight" in self.weights else "token_embd"

    def angles(self, n_positions: int) -> torch.Tensor:
        """[n_positions, n_rot / 2]"""
        pairs = torch.arange(0, self.shape.n_rot, 2, dtype=torch.float64)
        frequencies = self.shape.rope_base ** (-pairs / self.shape.n_rot) / self.linear_factor
        if "rope_freqs.weight" in self.weights:
            frequencies = frequencies / self.weights["rope_freqs.weight"]
        return torch.outer(torch.arange(n_positions, dtype=torch.float64), frequencies)

    def rms_norm(self, x: torch.Tensor, name: str) -> torch.Tensor:
        mean_square = x.square().mean(dim=-1, keepdim=True)
        return x / torch.sqrt(mean_square + self.shape.rms_epsilon) * self.weights[name]

    def linear(self, x: torch.Tensor, name: str) -> torch.Tensor:
        y = x @ self.weights[f"{name}.weight"].T
        bias = self.weights.get(f"{name}.bias")
        return y if bias is None else y + bias

    def heads(self, x: torch.Tensor, angles: torch.Tensor | None) -> torch.Tensor:
        """[n, heads * head_dim] -> [heads, n, head_dim], rotated when angles are given."""
        x = x.view(x.shape[0], -1, self.shape.head_dim).transpose(0, 1)
        if angles is None:
            return x
        turning, rest = x[..., : self.shape.n_rot], x[..., self.shape.n_rot :]
        even, odd = turning[..., 0::2], turning[..., 1::2]
        cos, sin = angles.cos().to(x.dtype), angles.sin().to(x.dtype)
        turned = torch.stack((even * cos - odd * sin, even * sin + odd * cos), dim=-1).flatten(-2)
        return torch.cat((turned, rest), dim=-1)

    def attention(self, x: torch.Tensor, layer: str, angles: torch.Tensor) -> torch.Tensor:
        n = x.shape[0]
        q = self.heads(self.linear(x, f"{layer}.attn_q"), angles)
        k = self.heads(self.linear(x, f"{layer}.attn_k"), angles)
        v = self.heads(self.linear(x, f"{layer}.attn_v"), None)
        groups = self.shape.n_heads // self.shape.n_kv_heads
        k, v = k.repeat_interleave(groups, dim=0), v.repeat_interleave(groups, dim=0)
        scores = q @ k.transpose(1, 2) / math.sqrt(self.shape.head_dim)
        future = torch.ones(n, n, dtype=torch.bool).triu(1)
        mixed = scores.masked_fill(future, -math.inf).softmax(dim=-1) @ v
        return self.linear(mixed.transpose(0, 1).reshape(n, -1), f"{layer}.attn_output")

    @torch.no_grad()
    def logits(self, ids: list[int]) -> numpy.ndarray:
        """[len(ids), vocab_size]"""
        x = self.weights["token_embd.weight"][torch.tensor(ids)]
        angles = self.angles(len(ids))
        for i in range(self.shape.n_layers):
            layer = f"blk.{i}"
            x = x + self.attention(self.rms_norm(x, f"{layer}.attn_norm.weight"), layer, angles)
            h = self.rms_norm(x, f"{layer}.ffn_norm.weight")
            gate = torch.nn.functional.silu(self.linear(h, f"{layer}.ffn_gate"))
            x = x + self.linear(gate * self.linear(h, f"{layer}.ffn_up"), f"{layer}.ffn_down")
        x = self.rms_norm(x, "output_norm.weight")
        return self.linear(x, self.head).numpy()
