"""Writes tests/data/stories260K/greedy.json: the greedy continuation of the model beside it, by numpy in f64.

A forward pass of Llama on a llama2.c file (docs/formats/llama2c.md), written from the paper and independently of src/:
rotary pairs are interleaved, as llama2.c has them, and there is no cache. Needs numpy.
Run: python tools/golden/make_greedy.py
"""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np

FOLDER = Path(__file__).resolve().parents[2] / "tests" / "data" / "stories260K"
BOS = 1
N_TOKENS = 200
N_TOP = 8


def read(path: Path) -> tuple[dict[str, int], dict[str, np.ndarray]]:
    """Sizes and f64 weights of a legacy file whose output matrix is the embedding."""
    raw = path.read_bytes()
    names = ("dim", "hidden", "layers", "heads", "kv_heads", "vocab", "seq_len")
    sizes = dict(zip(names, np.frombuffer(raw, "<i4", 7).tolist(), strict=True))
    floats = np.frombuffer(raw, "<f4", offset=28).astype(np.float64)
    n, d, f = sizes["layers"], sizes["dim"], sizes["hidden"]
    k = d // sizes["heads"] * sizes["kv_heads"]
    shapes = {"embedding": (sizes["vocab"], d), "attention_norm": (n, d)}
    shapes |= {"wq": (n, d, d), "wk": (n, k, d), "wv": (n, k, d), "wo": (n, d, d)}
    shapes |= {"mlp_norm": (n, d), "w1": (n, f, d), "w2": (n, d, f), "w3": (n, f, d), "norm": (d,)}
    weights, at = {}, 0
    for name, shape in shapes.items():
        size = math.prod(shape)
        weights[name] = floats[at : at + size].reshape(shape)
        at += size
    return sizes, weights


def norm(x: np.ndarray, weight: np.ndarray) -> np.ndarray:
    return x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-5) * weight


def rotate(x: np.ndarray) -> np.ndarray:
    """x [positions, heads, head_dim]: pair i of position p turns by p * 10000^(-2i / head_dim)."""
    n, _, head_dim = x.shape
    angles = np.arange(n)[:, None] * 10000.0 ** (-np.arange(0, head_dim, 2) / head_dim)
    pairs = x.reshape(n, -1, head_dim // 2, 2)
    turned = (pairs[..., 0] + 1j * pairs[..., 1]) * np.exp(1j * angles)[:, None, :]
    return np.stack([turned.real, turned.imag], -1).reshape(x.shape)


def logits(sizes: dict[str, int], w: dict[str, np.ndarray], ids: list[int]) -> np.ndarray:
    """[positions, vocab]."""
    x = w["embedding"][ids]
    n, heads, kv_heads = len(ids), sizes["heads"], sizes["kv_heads"]
    unseen = np.triu(np.full((n, n), -np.inf), 1)
    for i in range(sizes["layers"]):
        h = norm(x, w["attention_norm"][i])
        q = rotate((h @ w["wq"][i].T).reshape(n, heads, -1))
        k = rotate((h @ w["wk"][i].T).reshape(n, kv_heads, -1))
        v = (h @ w["wv"][i].T).reshape(n, kv_heads, -1)
        k, v = (np.repeat(a, heads // kv_heads, axis=1) for a in (k, v))
        scores = np.einsum("qhd,khd->hqk", q, k) / math.sqrt(q.shape[-1]) + unseen
        odds = np.exp(scores - scores.max(-1, keepdims=True))
        mixed = np.einsum("hqk,khd->qhd", odds / odds.sum(-1, keepdims=True), v)
        x = x + mixed.reshape(n, -1) @ w["wo"][i].T
        h = norm(x, w["mlp_norm"][i])
        gate = h @ w["w1"][i].T
        x = x + (gate / (1 + np.exp(-gate)) * (h @ w["w3"][i].T)) @ w["w2"][i].T
    return norm(x, w["norm"]) @ w["embedding"].T


def pieces(path: Path, vocab: int) -> list[bytes]:
    """Of llama2.c's tokenizer file."""
    raw, at, found = path.read_bytes(), 4, []
    for _ in range(vocab):
        length = int.from_bytes(raw[at + 4 : at + 8], "little")
        found.append(raw[at + 8 : at + 8 + length])
        at += 8 + length
    return found


def text_of(ids: list[int], words: list[bytes]) -> str:
    """llama2.c leaves out the space of the first token."""
    text = b""
    for token_id in ids:
        piece = words[token_id]
        text += bytes([int(piece[3:5], 16)]) if piece.startswith(b"<0x") else piece
    return text.removeprefix(b" ").decode()


def main() -> None:
    sizes, weights = read(FOLDER / "stories260K.bin")
    ids = [BOS]
    first = logits(sizes, weights, ids)[0]
    top = np.argsort(-first)[:N_TOP]
    while len(ids) <= N_TOKENS:
        ids.append(int(logits(sizes, weights, ids)[-1].argmax()))
    case = {
        "prompt_tokens": [BOS],
        "greedy_tokens": ids[1:],
        "text": text_of(ids[1:], pieces(FOLDER / "tok512.bin", sizes["vocab"])),
        "top8_logits_after_bos": [[int(i), float(first[i])] for i in top],
    }
    (FOLDER / "greedy.json").write_text(json.dumps(case) + "\n")


if __name__ == "__main__":
    main()
