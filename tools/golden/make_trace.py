"""Makes a trace for `limpid verify`: what transformers computes for some tokens, layer by layer, in f64.

    make_trace.py FOLDER TRACE.safetensors [--ids 1,2,3 | --prompt TEXT]
    make_trace.py

The first form reads a model in transformers' layout (Llama and its relatives, GPT-2); the second makes the traces beside
tests/data/golden/*/*.gguf that tests use. Needs torch 2.15.0, transformers 5.23.0, safetensors 0.6, numpy 2.4
(tools/requirements-oracles.txt). The file holds `token_ids` and one f32 tensor [tokens, width] for each activation that Limpid's
decoder names: embedding, blk.N.{attn_heads, attn_residual, ffn_residual}, output_norm, logits.
"""

import argparse
import pathlib

import make_tiny_gpt2
import make_tiny_llama
import safetensors.torch
import torch
import transformers

GOLDEN = pathlib.Path(__file__).resolve().parents[2] / "tests" / "data" / "golden"
N_GOLDEN_TOKENS = 9


class Parts:
    """Where a family of transformers keeps what Limpid's decoder names."""

    def __init__(self, model: transformers.PreTrainedModel) -> None:
        if hasattr(model, "transformer"):  # GPT-2
            body = model.transformer
            self.embedding, self.blocks, self.norm = body.drop, body.h, body.ln_f
            self.mix = [block.attn.c_proj for block in self.blocks]
            self.ffn_norm = [block.ln_2 for block in self.blocks]
        else:
            body = model.model
            self.embedding, self.blocks, self.norm = body.embed_tokens, body.layers, body.norm
            self.mix = [block.self_attn.o_proj for block in self.blocks]
            self.ffn_norm = [block.post_attention_layernorm for block in self.blocks]


@torch.no_grad()
def trace(model: transformers.PreTrainedModel, ids: list[int]) -> dict[str, torch.Tensor]:
    found: dict[str, torch.Tensor] = {"token_ids": torch.tensor(ids)}

    def keep(name: str, value: torch.Tensor) -> None:
        found[name] = value.detach().reshape(len(ids), -1).float().contiguous()

    def after(module: torch.nn.Module, name: str) -> None:
        def hook(_module, _inputs, output):
            keep(name, output[0] if isinstance(output, tuple) else output)

        module.register_forward_hook(hook)

    def before(module: torch.nn.Module, name: str) -> None:
        module.register_forward_pre_hook(lambda _module, inputs: keep(name, inputs[0]))

    parts = Parts(model)
    after(parts.embedding, "embedding")
    for i, block in enumerate(parts.blocks):
        before(parts.mix[i], f"blk.{i}.attn_heads")
        before(parts.ffn_norm[i], f"blk.{i}.attn_residual")
        after(block, f"blk.{i}.ffn_residual")
    after(parts.norm, "output_norm")
    keep("logits", model.double()(torch.tensor([ids])).logits[0])
    return found


def make_goldens() -> None:
    for family, module, wanted in (
        ("gpt2", make_tiny_gpt2, "tanh_tied"),
        ("llama", make_tiny_llama, "gqa_untied"),
    ):
        for seed, case in enumerate(module.CASES, start=1):
            if case.name != wanted:
                continue
            model = module.make_model(case, seed)
            ids = torch.randint(
                0, case.vocab_size, (1, 64), generator=torch.Generator().manual_seed(seed)
            )
            path = GOLDEN / family / f"{case.name}.trace.safetensors"
            safetensors.torch.save_file(trace(model, ids[0].tolist()[:N_GOLDEN_TOKENS]), path)
            print(f"{path.name}: {path.stat().st_size:,} bytes")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folder", nargs="?")
    parser.add_argument("trace", nargs="?")
    parser.add_argument("--ids")
    parser.add_argument("--prompt", default="The quick brown fox jumps over the lazy dog.")
    arguments = parser.parse_args()
    if not arguments.folder:
        make_goldens()
        return
    if not arguments.trace:
        parser.error("give FOLDER and TRACE.safetensors, or neither")
    model = transformers.AutoModelForCausalLM.from_pretrained(
        arguments.folder, dtype=torch.float32, attn_implementation="eager"
    ).eval()
    if arguments.ids:
        ids = [int(word) for word in arguments.ids.split(",")]
    else:
        ids = transformers.AutoTokenizer.from_pretrained(arguments.folder).encode(arguments.prompt)
    safetensors.torch.save_file(trace(model, ids), arguments.trace)


if __name__ == "__main__":
    main()
