"""Makes tests/data/golden/hugging_face: tiny random models as transformers saves them, and their logits in f64.

Needs torch 2.15.0, transformers 5.23.0, numpy 2.4 (tools/requirements-oracles.txt). Each folder is the work of
save_pretrained alone: config.json with its block rope_parameters, model.safetensors (one of them in shards). But for
partial_rotary: no Llama of transformers turns a part of its heads, so that one is a Phi-3, whose fused matrices are
taken apart and get Llama's names. Token i of
the text is (7 i^2 + 3 i + 1) mod vocab_size. Two cases go beyond position 8191; for them there are also logits with
rotary angles in f64, for transformers rounds position * frequency to f32.
"""

import dataclasses
import pathlib
import shutil
import sys

import safetensors.torch
import tiny_model
import torch
import transformers

OUT = pathlib.Path(__file__).resolve().parents[2] / "tests" / "data" / "golden" / "hugging_face"
POSITIONS = [0, 1, 5, 63, 64, 255, 511, 1023]
FAR_POSITIONS = [4095, 8191, 8255]
CHUNK = 1024
VOCAB_SIZE = 61
LLAMA3 = {
    "rope_type": "llama3",
    "factor": 32.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 8192,
}


@dataclasses.dataclass(frozen=True)
class Case:
    name: str
    family: str
    rope: dict
    options: dict = dataclasses.field(default_factory=dict)
    far: bool = False
    n_shards: int = 1


CASES = [
    Case("llama_tied", "llama", {"rope_theta": 10_000.0}, {"tie_word_embeddings": True}),
    Case(
        "llama_biases",
        "llama",
        {"rope_theta": 10_000.0},
        {"attention_bias": True, "mlp_bias": True},
    ),
    Case("llama3", "llama", {"rope_theta": 500_000.0, **LLAMA3}, far=True, n_shards=3),
    Case(
        "linear", "llama", {"rope_theta": 10_000.0, "rope_type": "linear", "factor": 4.0}, far=True
    ),
    Case("mistral", "mistral", {"rope_theta": 1_000_000.0}, {"sliding_window": None}),
    Case("qwen2", "qwen2", {"rope_theta": 1_000_000.0}, {"tie_word_embeddings": True}),
    Case("qwen3", "qwen3", {"rope_theta": 1_000_000.0}, {"head_dim": 12}),
    Case("ernie4_5", "ernie4_5", {"rope_theta": 500_000.0}, {"head_dim": 12, "use_bias": True}),
    Case("partial_rotary", "phi3", {"rope_theta": 10_000.0, "partial_rotary_factor": 0.5}),
]
FAMILIES = {
    "llama": (transformers.LlamaConfig, transformers.LlamaForCausalLM),
    "mistral": (transformers.MistralConfig, transformers.MistralForCausalLM),
    "qwen2": (transformers.Qwen2Config, transformers.Qwen2ForCausalLM),
    "qwen3": (transformers.Qwen3Config, transformers.Qwen3ForCausalLM),
    "ernie4_5": (transformers.Ernie4_5Config, transformers.Ernie4_5ForCausalLM),
    "phi3": (transformers.Phi3Config, transformers.Phi3ForCausalLM),
}


def make_model(case: Case, seed: int) -> transformers.PreTrainedModel:
    make_config, make = FAMILIES[case.family]
    # Defaults of Phi-3 lie outside so small a vocabulary.
    options = {"pad_token_id": 0} if case.family == "phi3" else {}
    config = make_config(
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        hidden_size=32,
        intermediate_size=48,
        vocab_size=VOCAB_SIZE,
        max_position_embeddings=16_384,
        rms_norm_eps=1e-5,
        rope_parameters={"rope_type": "default", **case.rope},
        attn_implementation="sdpa",
        **case.options,
        **options,
    )
    return tiny_model.random_model(make, config, seed, spread=1.2)


def save_phi3_as_llama(folder: pathlib.Path, model: transformers.Phi3ForCausalLM) -> None:
    config = model.config
    n_rows = config.hidden_size // config.num_attention_heads
    rows = [n * n_rows for n in (config.num_attention_heads, *[config.num_key_value_heads] * 2)]
    state = {}
    for name, weight in model.state_dict().items():
        if "qkv_proj" in name:
            parts = zip("qkv", weight.split(rows), strict=True)
            state |= {name.replace("qkv_proj", f"{part}_proj"): rows for part, rows in parts}
        elif "gate_up_proj" in name:
            parts = zip(("gate_proj", "up_proj"), weight.chunk(2), strict=True)
            state |= {name.replace("gate_up_proj", part): rows for part, rows in parts}
        else:
            state[name] = weight
    llama = transformers.LlamaConfig(
        num_hidden_layers=config.num_hidden_layers,
        num_attention_heads=config.num_attention_heads,
        num_key_value_heads=config.num_key_value_heads,
        hidden_size=config.hidden_size,
        intermediate_size=config.intermediate_size,
        vocab_size=config.vocab_size,
        max_position_embeddings=config.max_position_embeddings,
        rms_norm_eps=config.rms_norm_eps,
        rope_parameters=config.rope_parameters,
        architectures=["LlamaForCausalLM"],
    )
    llama.save_pretrained(folder)
    state = {name: weight.contiguous() for name, weight in state.items()}
    safetensors.torch.save_file(state, folder / "model.safetensors", {"format": "pt"})


def logits_at(model: transformers.PreTrainedModel, positions: list[int]) -> torch.Tensor:
    """In pieces, so that no whole square of attention lies in memory."""
    ids = torch.tensor([[(7 * i * i + 3 * i + 1) % VOCAB_SIZE for i in range(positions[-1] + 1)]])
    cache = transformers.DynamicCache(config=model.config)
    pieces = []
    with torch.no_grad():
        for begin in range(0, ids.shape[1], CHUNK):
            piece = ids[:, begin : begin + CHUNK]
            pieces.append(model(piece, past_key_values=cache, use_cache=True).logits[0])
    return torch.cat(pieces)[positions]


def use_f64_angles(model: transformers.PreTrainedModel) -> None:
    rotary = model.model.rotary_emb

    def forward(x, position_ids):
        angles = position_ids[..., None].double() * rotary.inv_freq.double()
        angles = torch.cat((angles, angles), dim=-1)
        return angles.cos(), angles.sin()

    rotary.forward = forward


def main() -> None:
    wanted = sys.argv[1:]  # names of cases; none: all
    for seed, case in enumerate(CASES, start=1):
        if wanted and case.name not in wanted:
            continue
        folder = OUT / case.name
        shutil.rmtree(folder, ignore_errors=True)
        model = make_model(case, seed)
        size = sum(p.numel() for p in model.parameters()) * 4
        shard = "5GB" if case.n_shards == 1 else size // case.n_shards + 4096
        if case.family == "phi3":
            save_phi3_as_llama(folder, model)
        else:
            model.save_pretrained(folder, max_shard_size=shard)
        (folder / "generation_config.json").unlink(missing_ok=True)
        # float() first rounds the frequencies, as a model that was loaded in f32 has them.
        model = model.double()
        positions = POSITIONS + (FAR_POSITIONS if case.far else [])
        logits = logits_at(model, positions)
        golden = {"positions": positions, "std": tiny_model.spread_of(logits)}
        golden["logits"] = tiny_model.rounded(logits)
        if case.far:
            use_f64_angles(model)
            golden["logits_f64_angles"] = tiny_model.rounded(logits_at(model, positions))
        tiny_model.write_golden(folder / "golden.json", golden)
        names = sorted(path.name for path in folder.glob("*.safetensors"))
        print(f"{case.name}: {size:,} bytes in {names}, spread of logits {golden['std']}")


if __name__ == "__main__":
    main()
