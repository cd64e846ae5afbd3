"""Makes tests/data/golden/llama: tiny random Llama models as GGUF F32, and their logits in f64.

Needs torch 2.15.0, transformers 5.23.0, gguf 0.19.0, numpy 2.4 (tools/requirements-oracles.txt). The models are
transformers' LlamaForCausalLM with each of the family's options turned on in one of them, and its relatives Qwen2 (biases
of Q, K, V) and Qwen3 (a norm of each head of Q and K), whose files keep rows half-split, ERNIE 4.5, whose rows are
pairs in transformers too, and Phi-3, which is a Llama that turns a part of each head, with fused matrices, which are taken
apart; nothing of Limpid is used.
"""

import dataclasses
import pathlib

import gguf
import numpy
import tiny_model
import torch
import transformers

OUT = pathlib.Path(__file__).resolve().parents[2] / "tests" / "data" / "golden" / "llama"
# Position 64 begins the second block of a KV cache; the last is where scaled rotations differ most.
N_IDS = 70
POSITIONS = [0, 1, 5, 31, 63, 64, 69]


@dataclasses.dataclass(frozen=True)
class Case:
    name: str
    architecture: str = "llama"
    n_layers: int = 2
    n_heads: int = 4
    n_kv_heads: int = 2
    head_dim: int = 8
    d_model: int = 32
    d_ff: int = 48
    vocab_size: int = 67
    tied: bool = False
    biases: bool = False
    epsilon: float = 1e-5
    theta: float = 10_000.0
    rope: dict = dataclasses.field(default_factory=dict)
    n_rot: int | None = None  # of head_dim, which then is d_model / n_heads


LLAMA3_ROPE = {
    "rope_type": "llama3",
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 32,
}
CASES = [
    Case("mha_tied", n_kv_heads=4, tied=True),
    Case("gqa_untied", n_heads=6, d_model=36, d_ff=32, head_dim=6),
    Case("mqa_one_layer", n_layers=1, n_kv_heads=1),
    Case("wide_heads", head_dim=16, d_ff=32),
    Case("odd_sizes", n_heads=3, n_kv_heads=3, head_dim=10, d_model=30, d_ff=37, vocab_size=61),
    Case("biases", biases=True),
    Case("epsilon_theta", epsilon=1e-2, theta=500_000.0),
    Case("rope_llama3", rope=LLAMA3_ROPE),
    Case("rope_linear", rope={"rope_type": "linear", "factor": 4.0}),
    Case("qwen2_tied", architecture="qwen2", tied=True, theta=1_000_000.0),
    Case("qwen3", architecture="qwen3", head_dim=12, theta=1_000_000.0),
    Case("ernie4_5", architecture="ernie4_5", head_dim=12, tied=True, biases=True, theta=500_000.0),
    Case("partial_rotary", d_model=48, head_dim=12, n_rot=8),
]
FAMILIES = {
    "llama": (transformers.LlamaConfig, transformers.LlamaForCausalLM, gguf.MODEL_ARCH.LLAMA),
    "qwen2": (transformers.Qwen2Config, transformers.Qwen2ForCausalLM, gguf.MODEL_ARCH.QWEN2),
    "qwen3": (transformers.Qwen3Config, transformers.Qwen3ForCausalLM, gguf.MODEL_ARCH.QWEN3),
    "ernie4_5": (
        transformers.Ernie4_5Config,
        transformers.Ernie4_5ForCausalLM,
        gguf.MODEL_ARCH.ERNIE4_5,
    ),
}


PHI3 = (transformers.Phi3Config, transformers.Phi3ForCausalLM)


def make_model(case: Case, seed: int) -> transformers.PreTrainedModel:
    make_config, make = PHI3 if case.n_rot else FAMILIES[case.architecture][:2]
    # Qwen2 has biases of Q, K, V always, and takes its head size from the others.
    options = {
        "llama": {
            "attention_bias": case.biases,
            "mlp_bias": case.biases,
            "head_dim": case.head_dim,
        },
        "qwen2": {},
        "qwen3": {"head_dim": case.head_dim},
        "ernie4_5": {"head_dim": case.head_dim, "use_bias": case.biases},
    }[case.architecture]
    rope = case.rope
    if case.n_rot:
        options = {"pad_token_id": 0}  # its default lies outside so small a vocabulary
        rope = {"partial_rotary_factor": case.n_rot / case.head_dim}
    config = make_config(
        num_hidden_layers=case.n_layers,
        num_attention_heads=case.n_heads,
        num_key_value_heads=case.n_kv_heads,
        hidden_size=case.d_model,
        intermediate_size=case.d_ff,
        vocab_size=case.vocab_size,
        tie_word_embeddings=case.tied,
        rms_norm_eps=case.epsilon,
        max_position_embeddings=128,
        rope_parameters={"rope_type": "default", "rope_theta": case.theta, **rope},
        attn_implementation="eager",
        **options,
    )
    return tiny_model.random_model(make, config, seed, spread=1.5)


def interleave_pairs(rows: torch.Tensor, n_heads: int, n_rot: int | None = None) -> torch.Tensor:
    """Rows of Q or K from half-split (transformers) to pairs side by side (GGUF `llama`); of those that turn."""
    heads = rows.reshape(n_heads, -1, *rows.shape[1:])
    turning, rest = heads[:, :n_rot], heads[:, n_rot or heads.shape[1] :]
    halves = turning.reshape(n_heads, 2, -1, *rows.shape[1:])
    return torch.cat([halves.swapaxes(1, 2).reshape(turning.shape), rest], 1).reshape(rows.shape)


def taken_apart(case: Case, state: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """Phi-3's fused matrices under Llama's names."""
    n_rows = [n * case.head_dim for n in (case.n_heads, case.n_kv_heads, case.n_kv_heads)]
    parts = {}
    for name, weight in state.items():
        if "qkv_proj" in name:
            for part, rows in zip("qkv", weight.split(n_rows), strict=True):
                parts[name.replace("qkv_proj", f"{part}_proj")] = rows
        elif "gate_up_proj" in name:
            for part, rows in zip(("gate", "up"), weight.chunk(2), strict=True):
                parts[name.replace("gate_up_proj", f"{part}_proj")] = rows
        else:
            parts[name] = weight
    return parts


def gguf_name(architecture: str, name: str) -> str:
    names = gguf.get_tensor_name_map(FAMILIES[architecture][2], 16)
    return names.get_name(name, try_suffixes=(".weight", ".bias"))


def write_gguf(path: pathlib.Path, case: Case, model: transformers.PreTrainedModel) -> None:
    writer = gguf.GGUFWriter(path, case.architecture)
    writer.add_context_length(128)
    writer.add_embedding_length(case.d_model)
    writer.add_block_count(case.n_layers)
    writer.add_feed_forward_length(case.d_ff)
    writer.add_head_count(case.n_heads)
    writer.add_head_count_kv(case.n_kv_heads)
    writer.add_key_length(case.head_dim)
    writer.add_value_length(case.head_dim)
    writer.add_rope_dimension_count(case.n_rot or case.head_dim)
    writer.add_rope_freq_base(case.theta)
    writer.add_layer_norm_rms_eps(case.epsilon)
    writer.add_vocab_size(case.vocab_size)
    writer.add_file_type(gguf.LlamaFileType.ALL_F32)
    writer.add_tokenizer_model("no_vocab")
    if case.rope.get("rope_type") == "linear":
        writer.add_rope_scaling_type(gguf.RopeScalingType.LINEAR)
        writer.add_rope_scaling_factor(case.rope["factor"])
    if case.rope.get("rope_type") == "llama3":
        # transformers has the scaled frequencies; the file has what to divide the plain ones by.
        scaled = model.model.rotary_emb.inv_freq.double()
        plain = case.theta ** (-torch.arange(0, case.head_dim, 2).double() / case.head_dim)
        writer.add_tensor("rope_freqs.weight", (plain / scaled).float().numpy())
    for name, weight in taken_apart(case, model.state_dict()).items():
        if case.tied and name == "lm_head.weight":
            continue
        if case.architecture == "llama" and "q_proj" in name:
            weight = interleave_pairs(weight, case.n_heads, case.n_rot)
        elif case.architecture == "llama" and "k_proj" in name:
            weight = interleave_pairs(weight, case.n_kv_heads, case.n_rot)
        writer.add_tensor(
            gguf_name(case.architecture, name), numpy.ascontiguousarray(weight.numpy())
        )
    tiny_model.finish(writer)


if __name__ == "__main__":
    tiny_model.write_models(OUT, CASES, make_model, write_gguf, N_IDS, POSITIONS)
