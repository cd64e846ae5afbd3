"""What the makers of tiny random models share: their weights, their logits as text, and how a GGUF writer ends.

Needs torch, transformers and gguf, as the scripts do that import this.
"""

import json
import pathlib
from collections.abc import Callable
from typing import Any

import gguf
import torch
import transformers


def random_model(
    make: Callable[[transformers.PretrainedConfig], transformers.PreTrainedModel],
    config: transformers.PretrainedConfig,
    seed: int,
    spread: float,
) -> transformers.PreTrainedModel:
    """A model in f32 with weights from a normal distribution of `spread` / sqrt(inputs), norms around 1."""
    torch.manual_seed(seed)
    model = make(config).float().eval()
    with torch.no_grad():
        for name, weight in model.named_parameters():
            if weight.dim() == 1:
                weight.normal_(0.0 if name.endswith("bias") else 1.0, 0.3)
            else:
                # GPT-2's Conv1D keeps [in, out].
                n_in = weight.shape[0] if ".c_" in name else weight.shape[1]
                weight.normal_(0.0, spread / n_in**0.5)
    return model


def finish(writer: gguf.GGUFWriter) -> None:
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def rounded(logits: torch.Tensor) -> list[list[float]]:
    """Nine digits of each: more than an f32 tells apart."""
    return [[float(f"{value:.9g}") for value in row] for row in logits.tolist()]


def spread_of(logits: torch.Tensor) -> float:
    """What errors are measured in."""
    return float(f"{logits.std().item():.6g}")


def write_golden(path: pathlib.Path, golden: dict) -> None:
    text = json.dumps(golden, separators=(",", ":")).replace("],[", "],\n[")
    path.write_text(text + "\n")


def write_golden_of_text(
    path: pathlib.Path,
    model: transformers.PreTrainedModel,
    vocab_size: int,
    n_ids: int,
    positions: list[int],
    seed: int,
) -> None:
    """The logits in f64 at `positions` of a random text of `n_ids` tokens. `model` is left in f64."""
    generator = torch.Generator().manual_seed(seed)
    ids = torch.randint(0, vocab_size, (1, n_ids), generator=generator)
    with torch.no_grad():
        logits = model.double()(ids).logits[0]
    golden = {"ids": ids[0].tolist(), "positions": positions, "std": spread_of(logits)}
    write_golden(path, golden | {"logits": rounded(logits[positions])})
    print(f"{path.stem}: spread of logits {golden['std']}")


def write_models(
    out: pathlib.Path,
    cases: list,
    make_model: Callable[[Any, int], transformers.PreTrainedModel],
    write_gguf: Callable[[pathlib.Path, Any, transformers.PreTrainedModel], None],
    n_ids: int,
    positions: list[int],
) -> None:
    """CASE.gguf and CASE.json of each case (with a name and a vocab_size); its number is the seed."""
    out.mkdir(parents=True, exist_ok=True)
    for seed, case in enumerate(cases, start=1):
        model = make_model(case, seed)
        write_gguf(out / f"{case.name}.gguf", case, model)
        golden = out / f"{case.name}.json"
        write_golden_of_text(golden, model, case.vocab_size, n_ids, positions, seed)
