"""Makes tests/data/golden/gpt2: tiny random GPT-2 models as GGUF F32, and their logits in f64.

Needs torch 2.15.0, transformers 5.23.0, gguf 0.19.0, numpy 2.4 (tools/requirements-oracles.txt). The models are
transformers' GPT2LMHeadModel with each option of the family turned on in one of them; nothing of Limpid is used. GGUF has
no key for another activation or scale than GPT-2's own: those files carry Limpid's keys (docs/formats/names.md).
"""

import dataclasses
import pathlib

import gguf
import numpy
import tiny_model
import transformers

OUT = pathlib.Path(__file__).resolve().parents[2] / "tests" / "data" / "golden" / "gpt2"
# Position 64 begins the second block of a KV cache; 79 is the last that the model learned.
N_CTX = 80
N_IDS = 80
POSITIONS = [0, 1, 31, 63, 64, 79]


@dataclasses.dataclass(frozen=True)
class Case:
    name: str
    n_layers: int = 2
    n_heads: int = 4
    d_model: int = 32
    d_ff: int | None = None
    vocab_size: int = 61
    tied: bool = True
    activation: str = "gelu_new"
    epsilon: float = 1e-5
    scale_attention: bool = True
    scale_by_layer: bool = False


CASES = [
    Case("tanh_tied"),
    Case("erf_untied", activation="gelu", tied=False),
    Case("relu_odd_sizes", n_heads=3, d_model=30, d_ff=37, activation="relu", epsilon=1e-2),
    Case("scaled_by_layer", scale_by_layer=True, n_layers=3, d_model=16, n_heads=2),
    Case("unscaled_silu", scale_attention=False, activation="silu", d_model=16, n_heads=1),
]
# What transformers calls the function -> hidden_activation.
ACTIVATIONS = {"gelu_new": "gelu_tanh", "gelu": "gelu_erf", "relu": "relu", "silu": "silu"}


def make_model(case: Case, seed: int) -> transformers.GPT2LMHeadModel:
    config = transformers.GPT2Config(
        n_layer=case.n_layers,
        n_head=case.n_heads,
        n_embd=case.d_model,
        n_inner=case.d_ff,
        n_positions=N_CTX,
        vocab_size=case.vocab_size,
        bos_token_id=0,
        eos_token_id=0,
        activation_function=case.activation,
        layer_norm_epsilon=case.epsilon,
        scale_attn_weights=case.scale_attention,
        scale_attn_by_inverse_layer_idx=case.scale_by_layer,
        tie_word_embeddings=case.tied,
        attn_implementation="eager",
    )
    return tiny_model.random_model(transformers.GPT2LMHeadModel, config, seed, spread=1.5)


def write_gguf(path: pathlib.Path, case: Case, model: transformers.GPT2LMHeadModel) -> None:
    writer = gguf.GGUFWriter(path, "gpt2")
    writer.add_context_length(N_CTX)
    writer.add_embedding_length(case.d_model)
    writer.add_block_count(case.n_layers)
    writer.add_feed_forward_length(case.d_ff or 4 * case.d_model)
    writer.add_head_count(case.n_heads)
    writer.add_layer_norm_eps(case.epsilon)
    writer.add_file_type(gguf.LlamaFileType.ALL_F32)
    writer.add_tokenizer_model("no_vocab")
    if case.activation != "gelu_new":
        writer.add_string("gpt2.hidden_activation", ACTIVATIONS[case.activation])
    if not case.scale_attention:
        writer.add_float32("gpt2.attention.scale", 1.0)
    if case.scale_by_layer:
        writer.add_bool("gpt2.attention.scale_by_inverse_layer", True)
    names = gguf.get_tensor_name_map(gguf.MODEL_ARCH.GPT2, case.n_layers)
    for name, weight in model.state_dict().items():
        if case.tied and name == "lm_head.weight":
            continue
        if ".c_" in name and weight.dim() == 2:
            weight = weight.T
        ours = names.get_name(name, try_suffixes=(".weight", ".bias"))
        writer.add_tensor(ours, numpy.ascontiguousarray(weight.numpy()))
    tiny_model.finish(writer)


if __name__ == "__main__":
    tiny_model.write_models(OUT, CASES, make_model, write_gguf, N_IDS, POSITIONS)
