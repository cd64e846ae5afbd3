"""Files of torch itself: what torch.save writes, run by us; what we write, opened by torch.load(weights_only=True).

Tiny Llama models with Meta's names in one and two shards, in f32, f16 and bf16: the same logits, to the bit, as the same
weights in a GGUF file, and within 1e-4 of torch in f64.
"""

import json
import pathlib
import subprocess
import tempfile
import unittest

import gguf
import gguf_llama
import limpid_program
import numpy
import torch

TOOL = limpid_program.PROGRAM.parent / "tests" / "gguf_tool"
TORCH_DTYPES = {"F32": torch.float32, "F16": torch.float16, "BF16": torch.bfloat16}
D_MODEL, D_FF, N_LAYERS, N_HEADS, N_KV_HEADS, VOCAB_SIZE, THETA = 64, 192, 2, 4, 2, 67, 500_000.0
HEAD_DIM = D_MODEL // N_HEADS
COLUMNS = ("wo.weight", "w2.weight")
GGUF_NAMES = {
    "attention_norm": "attn_norm",
    "attention.wq": "attn_q",
    "attention.wk": "attn_k",
    "attention.wv": "attn_v",
    "attention.wo": "attn_output",
    "ffn_norm": "ffn_norm",
    "feed_forward.w1": "ffn_gate",
    "feed_forward.w2": "ffn_down",
    "feed_forward.w3": "ffn_up",
}


def gguf_name(name: str) -> str:
    top = {"tok_embeddings": "token_embd", "norm": "output_norm", "output": "output"}
    stem = name.removesuffix(".weight")
    if stem in top:
        return f"{top[stem]}.weight"
    _, block, rest = stem.split(".", 2)
    return f"blk.{block}.{GGUF_NAMES[rest]}.weight"


def make_state(dtype: torch.dtype, tied: bool) -> dict[str, torch.Tensor]:
    generator = torch.Generator().manual_seed(7)
    d_kv = N_KV_HEADS * HEAD_DIM
    shapes = {"tok_embeddings.weight": (VOCAB_SIZE + 1, D_MODEL)}
    for i in range(N_LAYERS):
        shapes |= {
            f"layers.{i}.attention.wq.weight": (D_MODEL, D_MODEL),
            f"layers.{i}.attention.wk.weight": (d_kv, D_MODEL),
            f"layers.{i}.attention.wv.weight": (d_kv, D_MODEL),
            f"layers.{i}.attention.wo.weight": (D_MODEL, D_MODEL),
            f"layers.{i}.feed_forward.w1.weight": (D_FF, D_MODEL),
            f"layers.{i}.feed_forward.w2.weight": (D_MODEL, D_FF),
            f"layers.{i}.feed_forward.w3.weight": (D_FF, D_MODEL),
            f"layers.{i}.attention_norm.weight": (D_MODEL,),
            f"layers.{i}.ffn_norm.weight": (D_MODEL,),
        }
    shapes["norm.weight"] = (D_MODEL,)
    state = {}
    for name, shape in shapes.items():
        weight = torch.randn(shape, generator=generator) * (
            0.1 if len(shape) == 1 else 1.5 / shape[1] ** 0.5
        )
        state[name] = (weight + (1.0 if len(shape) == 1 else 0.0)).to(dtype)
    if tied:
        state["output.weight"] = state["tok_embeddings.weight"]
    else:
        head = torch.randn((VOCAB_SIZE + 1, D_MODEL), generator=generator) / D_MODEL**0.5
        state["output.weight"] = head.to(dtype)
    return state


def write_meta(
    folder: pathlib.Path, state: dict[str, torch.Tensor], n_shards: int, scaled: bool
) -> None:
    params = {"dim": D_MODEL, "n_layers": N_LAYERS, "n_heads": N_HEADS, "n_kv_heads": N_KV_HEADS}
    params |= {"multiple_of": 32, "ffn_dim_multiplier": 1.1, "norm_eps": 1e-5, "vocab_size": -1}
    params |= {"rope_theta": THETA, "use_scaled_rope": scaled, "max_seq_len": 2048}
    folder.mkdir()
    (folder / "params.json").write_text(json.dumps(params))
    for shard in range(n_shards):
        parts = {}
        for name, weight in state.items():
            if weight.ndim == 1 or n_shards == 1:
                parts[name] = weight
            else:
                # Views with strides, as a script that cuts a model leaves them.
                parts[name] = weight.chunk(n_shards, 1 if name.endswith(COLUMNS) else 0)[shard]
                parts[name] = parts[name].clone() if shard == 0 else parts[name]
        parts["rope.freqs"] = torch.zeros(HEAD_DIM // 2)
        torch.save(parts, folder / f"consolidated.{shard:02}.pth")


def scaled_divisors() -> numpy.ndarray:
    frequencies = THETA ** (-numpy.arange(0, HEAD_DIM, 2) / HEAD_DIM)
    smooth = numpy.clip((8192 / (2 * numpy.pi / frequencies) - 1) / 3, 0, 1)
    return (1 / ((1 - smooth) / 8 + smooth)).astype(numpy.float32)


def write_gguf(
    path: pathlib.Path, state: dict[str, torch.Tensor], file_type: str, scaled: bool
) -> None:
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_context_length(2048)
    writer.add_embedding_length(D_MODEL)
    writer.add_block_count(N_LAYERS)
    writer.add_feed_forward_length(D_FF)
    writer.add_head_count(N_HEADS)
    writer.add_head_count_kv(N_KV_HEADS)
    writer.add_rope_dimension_count(HEAD_DIM)
    writer.add_rope_freq_base(THETA)
    writer.add_layer_norm_rms_eps(1e-5)
    if scaled:
        writer.add_tensor("rope_freqs.weight", scaled_divisors())
    tied = state["output.weight"].data_ptr() == state["tok_embeddings.weight"].data_ptr()
    for name, weight in state.items():
        if name == "output.weight" and tied:
            continue
        values = weight.float().numpy()
        kind = gguf.GGMLQuantizationType[file_type if values.ndim == 2 else "F32"]
        writer.add_tensor(gguf_name(name), gguf.quantize(values, kind), raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


class TorchFiles(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def check_logits(
        self, file_type: str, tied: bool, scaled: bool = False, n_ids: int = 130
    ) -> None:
        state = make_state(TORCH_DTYPES[file_type], tied)
        path = self.folder / f"{file_type}{tied}{scaled}.gguf"
        write_gguf(path, state, file_type, scaled)
        ids = numpy.random.default_rng(5).integers(0, VOCAB_SIZE, n_ids).tolist()
        oracle = gguf_llama.GgufLlama(path).logits(ids)
        for executor in ("reference", "cpu"):
            options = ("--device", executor)
            expected = limpid_program.logits(path, ids, *options)
            error = numpy.abs(expected - oracle).max() / oracle.std()
            self.assertLessEqual(error, 1e-4, (file_type, executor))
            for n_shards in (1, 2):
                folder = self.folder / f"{file_type}{tied}{scaled}{executor}{n_shards}"
                write_meta(folder, state, n_shards, scaled)
                got = limpid_program.logits(folder, ids, *options)
                numpy.testing.assert_array_equal(got, expected)

    def test_every_type_tied_and_untied(self) -> None:
        for file_type in TORCH_DTYPES:
            for tied in (True, False):
                with self.subTest(file_type=file_type, tied=tied):
                    self.check_logits(file_type, tied)

    def test_scaled_rotation_up_to_position_1023(self) -> None:
        self.check_logits("F32", tied=False, scaled=True, n_ids=1024)

    def test_torch_opens_what_we_write(self) -> None:
        for file_type, dtype in TORCH_DTYPES.items():
            for tied in (True, False):
                theirs, ours = self.folder / "theirs.pth", self.folder / "ours.pth"
                state = make_state(dtype, tied) | {"mask": torch.tensor([True, False])}
                torch.save(state, theirs)
                subprocess.run([TOOL, "torch", theirs, ours], check=True)
                for mmap in (False, True):
                    opened = torch.load(ours, weights_only=True, mmap=mmap)
                    self.assertEqual(list(opened), list(state), file_type)
                    for name, weight in opened.items():
                        self.assertTrue(torch.equal(weight, state[name]), name)
                    shared = opened["output.weight"].data_ptr()
                    self.assertEqual(shared == opened["tok_embeddings.weight"].data_ptr(), tied)

    def test_older_formats_are_refused_with_advice(self) -> None:
        path = self.folder / "old.pt"
        torch.save({"w": torch.zeros(2)}, path, _use_new_zipfile_serialization=False)
        with self.assertRaisesRegex(AssertionError, "PyTorch before 1.6.*torch.save"):
            limpid_program.run("inspect", "-m", path)

    def test_other_protocols_are_refused_by_instruction(self) -> None:
        path = self.folder / "p4.pt"
        torch.save({"w": torch.zeros(2)}, path, pickle_protocol=4)
        with self.assertRaisesRegex(AssertionError, "data.pkl: instruction 0x95.*protocol 2"):
            limpid_program.run("inspect", "-m", path)


if __name__ == "__main__":
    limpid_program.main()
