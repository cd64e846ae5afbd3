"""Writes tests/data/cli/tiny_chat.gguf, the chat model that the program's tests talk with.

Needs gguf 0.19 and numpy 2.4. Two layers of random weights over a byte-level vocabulary of 256 bytes,
40 merges, <|im_start|>, <|im_end|> and <|endoftext|>, with a ChatML template. It says nothing sensible and
always the same.
"""

import pathlib

import gguf
import numpy

TARGET = pathlib.Path(__file__).resolve().parents[2] / "tests" / "data" / "cli" / "tiny_chat.gguf"
SEED = 7
N_LAYERS, N_HEADS, N_KV_HEADS, HEAD_DIM, D_FF, N_CTX = 2, 4, 2, 16, 96, 256
D_MODEL = N_HEADS * HEAD_DIM

TEMPLATE = (
    "{% for message in messages %}{{'<|im_start|>' + message['role'] + '\n' + message['content'] "
    "+ '<|im_end|>' + '\n'}}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)
CONTROL = ["<|im_start|>", "<|im_end|>", "<|endoftext|>"]
# Each merges two pieces that stand before it.
MERGES = [
    ("h", "e"), ("t", "he"), ("Ġ", "the"), ("i", "n"), ("e", "r"), ("a", "n"), ("o", "n"), ("r", "e"),
    ("Ġ", "a"), ("an", "d"), ("Ġ", "and"), ("o", "u"), ("Ġ", "w"), ("l", "l"), ("Ġ", "s"), ("e", "n"),
    ("a", "t"), ("i", "t"), ("i", "s"), ("Ġ", "is"), ("o", "r"), ("e", "s"), ("in", "g"), ("e", "d"),
    ("Ġ", "c"), ("Ġ", "b"), ("Ġ", "f"), ("Ġ", "m"), ("he", "ll"), ("hell", "o"), ("Ġ", "hello"),
    ("or", "l"), ("orl", "d"), ("Ġw", "orld"), ("u", "s"), ("er", "e"), ("Ġ", "he"), ("Ġ", "o"),
    ("Ġo", "f"), ("Ġ", "in"),
]  # fmt: skip


def byte_pieces() -> list[str]:
    """GPT-2's printable code point for each byte (Radford et al. 2019), in order of the bytes."""
    printable = [*range(ord("!"), ord("~") + 1), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = iter(range(256, 512))
    return [chr(byte if byte in printable else next(others)) for byte in range(256)]


def vocabulary() -> tuple[list[str], list[int]]:
    pieces = byte_pieces() + [left + right for left, right in MERGES]
    types = [gguf.TokenType.NORMAL] * len(pieces) + [gguf.TokenType.CONTROL] * len(CONTROL)
    return pieces + CONTROL, types


def add_metadata(writer: gguf.GGUFWriter) -> None:
    pieces, types = vocabulary()
    writer.add_name("tiny chat")
    writer.add_context_length(N_CTX)
    writer.add_embedding_length(D_MODEL)
    writer.add_block_count(N_LAYERS)
    writer.add_feed_forward_length(D_FF)
    writer.add_head_count(N_HEADS)
    writer.add_head_count_kv(N_KV_HEADS)
    writer.add_rope_dimension_count(HEAD_DIM)
    writer.add_rope_freq_base(10_000.0)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("smollm")
    writer.add_token_list(pieces)
    writer.add_token_types(types)
    writer.add_token_merges([f"{left} {right}" for left, right in MERGES])
    writer.add_bos_token_id(pieces.index("<|im_start|>"))
    writer.add_eos_token_id(pieces.index("<|im_end|>"))
    writer.add_add_bos_token(False)
    writer.add_chat_template(TEMPLATE)


def add_tensors(writer: gguf.GGUFWriter, n_vocab: int) -> None:
    random = numpy.random.default_rng(SEED)
    q, kv = N_HEADS * HEAD_DIM, N_KV_HEADS * HEAD_DIM

    def matrix(name: str, rows: int, cols: int) -> None:
        weight = random.standard_normal((rows, cols), dtype=numpy.float32) / numpy.sqrt(cols)
        writer.add_tensor(name, weight.astype(numpy.float16))

    def norm(name: str) -> None:
        writer.add_tensor(name, numpy.ones(D_MODEL, dtype=numpy.float32))

    matrix("token_embd.weight", n_vocab, D_MODEL)
    for i in range(N_LAYERS):
        norm(f"blk.{i}.attn_norm.weight")
        matrix(f"blk.{i}.attn_q.weight", q, D_MODEL)
        matrix(f"blk.{i}.attn_k.weight", kv, D_MODEL)
        matrix(f"blk.{i}.attn_v.weight", kv, D_MODEL)
        matrix(f"blk.{i}.attn_output.weight", D_MODEL, q)
        norm(f"blk.{i}.ffn_norm.weight")
        matrix(f"blk.{i}.ffn_gate.weight", D_FF, D_MODEL)
        matrix(f"blk.{i}.ffn_up.weight", D_FF, D_MODEL)
        matrix(f"blk.{i}.ffn_down.weight", D_MODEL, D_FF)
    norm("output_norm.weight")


def main() -> None:
    TARGET.parent.mkdir(parents=True, exist_ok=True)
    for target, with_tensors in ((TARGET, True), (TARGET.with_name("vocabulary.gguf"), False)):
        writer = gguf.GGUFWriter(target, "llama")
        add_metadata(writer)
        if with_tensors:
            add_tensors(writer, len(vocabulary()[0]))
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        if with_tensors:
            writer.write_tensors_to_file()
        writer.close()
        print(f"{target}: {target.stat().st_size} bytes")


if __name__ == "__main__":
    main()
