"""Small models as others save them, made on the spot: weights are random unless a test says otherwise."""

import base64
import json
import pathlib
import sys

import limpid_program
import numpy
import safetensors.numpy

sys.path.insert(0, str(limpid_program.ROOT / "tools" / "golden"))
import torch_file  # noqa: E402

# 128,000 ranks and 256 special tokens, as Llama 3 has them.
LLAMA3_VOCABULARY = 128_256

Tensors = dict[str, numpy.ndarray]


def meta_llama(vocab_size: int, width: int = 16, seed: int = 5) -> Tensors:
    """One layer of two heads, under Meta's names."""
    random = numpy.random.default_rng(seed)

    def matrix(rows: int, columns: int) -> numpy.ndarray:
        return random.normal(0, 0.3, (rows, columns)).astype(numpy.float16)

    tensors = {
        "tok_embeddings.weight": matrix(vocab_size, width),
        "norm.weight": numpy.ones(width, numpy.float16),
        "output.weight": matrix(vocab_size, width),
    }
    for name in ("attention_norm", "ffn_norm"):
        tensors[f"layers.0.{name}.weight"] = numpy.ones(width, numpy.float16)
    for name in ("wq", "wk", "wv", "wo"):
        tensors[f"layers.0.attention.{name}.weight"] = matrix(width, width)
    for name, shape in (("w1", (32, width)), ("w2", (width, 32)), ("w3", (32, width))):
        tensors[f"layers.0.feed_forward.{name}.weight"] = matrix(*shape)
    return tensors


def write_meta_folder(folder: pathlib.Path, tensors: Tensors) -> pathlib.Path:
    """params.json and consolidated.00.pth; the tokenizer is the caller's."""
    folder.mkdir()
    width = tensors["norm.weight"].shape[0]
    params = {"dim": width, "n_layers": 1, "n_heads": 2, "multiple_of": 32}
    params |= {"ffn_dim_multiplier": 0.5, "norm_eps": 1e-5, "rope_theta": 500000.0}
    (folder / "params.json").write_text(json.dumps(params))
    table = [(name, value.shape) for name, value in tensors.items()]
    torch_file.write(folder / "consolidated.00.pth", table, iter(tensors.values()), "f16")
    return folder


def rank_file(n_ranks: int = 128_000) -> bytes:
    """Ranks of all bytes, then of pairs, then of threes."""
    lines = []
    for rank in range(n_ranks):
        size = 1 + (rank >= 256) + (rank >= 256 + 65_536)
        first = (0, 256, 256 + 65_536)[size - 1]
        token = (rank - first).to_bytes(size, "big")
        lines.append(base64.b64encode(token) + b" %d" % rank)
    return b"\n".join(lines) + b"\n"


def write_llama_folder(folder: pathlib.Path, vocab_size: int, width: int = 16) -> pathlib.Path:
    """The same shape as Hugging Face keeps it; the tokenizer is the caller's."""
    folder.mkdir()
    named = {"tok_embeddings": "model.embed_tokens", "norm": "model.norm", "output": "lm_head"}
    named |= {f"layers.0.attention.w{x}": f"model.layers.0.self_attn.{x}_proj" for x in "qkvo"}
    named |= {"layers.0.attention_norm": "model.layers.0.input_layernorm"}
    named |= {"layers.0.ffn_norm": "model.layers.0.post_attention_layernorm"}
    for ours, theirs in (("w1", "gate"), ("w2", "down"), ("w3", "up")):
        named[f"layers.0.feed_forward.{ours}"] = f"model.layers.0.mlp.{theirs}_proj"
    tensors = {
        named[name.removesuffix(".weight")] + ".weight": value
        for name, value in meta_llama(vocab_size, width).items()
    }
    safetensors.numpy.save_file(tensors, folder / "model.safetensors", {"format": "pt"})
    config = {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "hidden_size": width,
        "intermediate_size": 32,
        "num_hidden_layers": 1,
        "num_attention_heads": 2,
        "num_key_value_heads": 2,
        "vocab_size": vocab_size,
        "max_position_embeddings": 256,
        "rms_norm_eps": 1e-5,
        "rope_theta": 10000.0,
        "tie_word_embeddings": False,
    }
    (folder / "config.json").write_text(json.dumps(config))
    return folder
