"""Writes tests/data/training: gradients and twenty steps of AdamW and Muon of tiny models, by torch in f64.

For each model a folder MODEL (as transformers writes it), a folder MODEL/gradients (the same configuration, and as
"weights" the gradients of the mean loss of the first batch, so that a reader of models puts them into the order of its
own tensors), and steps.json: the batches, and the loss before each update. Muon's losses are there for models of
torch.nn.Linear; GPT-2's matrices lie transposed, and Q, K and V in one.
"""

import copy
import json
import pathlib
import shutil

import torch
import transformers

FOLDER = pathlib.Path(__file__).resolve().parents[2] / "tests" / "data" / "training"
N_STEPS = 20
LENGTHS = (12, 7)  # of the sequences of a batch
LEARNING_RATE, BETAS, EPSILON, WEIGHT_DECAY, CLIP = 1e-2, (0.9, 0.95), 1e-8, 0.1, 1.0

LLAMA = {
    "vocab_size": 29,
    "hidden_size": 24,
    "intermediate_size": 20,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 64,
    "head_dim": 6,
}
SCALED = {
    "rope_theta": 100.0,
    "rope_type": "llama3",
    "factor": 4.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 16,
}
MODELS = {
    "gpt2": transformers.GPT2Config(
        vocab_size=29,
        n_embd=20,
        n_layer=2,
        n_head=2,
        n_positions=32,
        attn_pdrop=0,
        embd_pdrop=0,
        resid_pdrop=0,
    ),
    "llama_tied": transformers.LlamaConfig(
        **LLAMA, tie_word_embeddings=True, rope_parameters=SCALED
    ),
    "llama_untied": transformers.LlamaConfig(**LLAMA, tie_word_embeddings=False),
    "qwen3": transformers.Qwen3Config(**LLAMA, tie_word_embeddings=True),
}


def loss_of(model, batch) -> torch.Tensor:
    """The mean over all predicted tokens of all sequences, each of which stands alone."""
    losses = []
    for ids in batch:
        logits = model(torch.tensor([ids])).logits[0, :-1]
        losses.append(
            torch.nn.functional.cross_entropy(logits, torch.tensor(ids[1:]), reduction="none")
        )
    return torch.cat(losses).mean()


def orthogonalized(gradient, coefficients, n_steps, epsilon) -> torch.Tensor:
    """What torch.optim.Muon computes in bfloat16, in the type of the gradient."""
    a, b, c = coefficients
    wide = gradient.size(0) <= gradient.size(1)
    x = gradient if wide else gradient.T
    x = x / x.norm().clamp(min=epsilon)
    for _ in range(n_steps):
        gram = x @ x.T
        x = a * x + (b * gram + c * gram @ gram) @ x
    return x if wide else x.T


def muon_losses(model, batches) -> list[float]:
    """Muon for the matrices of the blocks, AdamW for the others."""
    torch.optim._muon._zeropower_via_newtonschulz = orthogonalized
    named = dict(model.named_parameters())
    hidden = [name for name, p in named.items() if p.dim() > 1 and ".layers." in name]
    others = [name for name in named if name not in hidden]
    muon = torch.optim.Muon(
        [named[name] for name in hidden],
        lr=LEARNING_RATE,
        weight_decay=WEIGHT_DECAY,
        adjust_lr_fn="match_rms_adamw",
    )
    adamw = adamw_of([named[name] for name in others])
    losses = []
    for batch in batches:
        model.zero_grad()
        loss = loss_of(model, batch)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), CLIP)
        muon.step()
        adamw.step()
        losses.append(loss.item())
    return losses


def adamw_of(parameters) -> torch.optim.AdamW:
    return torch.optim.AdamW(
        [
            {"params": [p for p in parameters if p.dim() > 1], "weight_decay": WEIGHT_DECAY},
            {"params": [p for p in parameters if p.dim() == 1], "weight_decay": 0.0},
        ],
        lr=LEARNING_RATE,
        betas=BETAS,
        eps=EPSILON,
    )


def save(model, folder: pathlib.Path) -> None:
    model.save_pretrained(folder)
    for extra in folder.glob("generation_config.json"):
        extra.unlink()


def make(name: str, config) -> None:
    torch.manual_seed(7)
    config.bos_token_id = config.eos_token_id = config.pad_token_id = None
    model = (
        transformers.AutoModelForCausalLM.from_config(config, attn_implementation="eager")
        .float()
        .train()
    )
    with torch.no_grad():  # larger than usual, so that no gradient is tiny
        for parameter in model.parameters():
            parameter.copy_(
                torch.randn_like(parameter) * 0.3 + (1.0 if parameter.dim() == 1 else 0.0)
            )
    save(model, FOLDER / name)
    model = model.double()
    batches = [[torch.randint(29, (n,)).tolist() for n in LENGTHS] for _ in range(N_STEPS)]

    loss_of(model, batches[0]).backward()
    gradients = transformers.AutoModelForCausalLM.from_config(config).float()
    with torch.no_grad():
        for target, source in zip(gradients.parameters(), model.parameters(), strict=True):
            target.copy_(source.grad)
    save(gradients, FOLDER / name / "gradients")

    steps = {"batches": batches}
    if name != "gpt2":
        steps["muon_losses"] = muon_losses(copy.deepcopy(model), batches)
    optimizer = adamw_of(list(model.parameters()))
    losses, norms = [], []
    for batch in batches:
        optimizer.zero_grad()
        loss = loss_of(model, batch)
        loss.backward()
        norms.append(float(torch.nn.utils.clip_grad_norm_(model.parameters(), CLIP)))
        optimizer.step()
        losses.append(loss.item())
    (FOLDER / name / "steps.json").write_text(
        json.dumps(steps | {"losses": losses, "norms": norms})
    )


if __name__ == "__main__":
    shutil.rmtree(FOLDER, ignore_errors=True)
    for name, config in MODELS.items():
        make(name, config)
