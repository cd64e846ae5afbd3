"""A mistake and its answer, and short ways to write one."""

from dataclasses import dataclass

READABLE = (
    "Limpid reads folders of Hugging Face and Meta, safetensors, PyTorch .pth and .pt, GGUF, and llama2.c "
    ".bin files"
)
TYPES = (
    "f32, f16, bf16, q8_0, q4_0, q4_1, q5_0, q5_1, iq4_nl, iq4_xs, q2_k, q3_k_s, q3_k_m, q3_k_l, q4_k_s, "
    "q4_k_m, q5_k_s, q5_k_m, q6_k"
)


@dataclass(frozen=True)
class Mistake:
    command: str  # for bash; `limpid` is the program
    answer: str


def running(model: str, answer: str) -> Mistake:
    return Mistake(f"limpid run -m {model} -p hi", answer)


def asking(options: str, answer: str) -> Mistake:
    return Mistake(f"limpid run -m tiny.gguf -p hi {options}", answer)
