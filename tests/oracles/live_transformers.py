"""The measure itself: gguf_llama.py against transformers in f64, on real and on tiny files."""

import json
import sys
import unittest

import gguf
import gguf_llama
import limpid_program
import numpy
import torch
import transformers

GOLDEN = limpid_program.ROOT / "tests" / "data" / "golden" / "llama"


def half_split(rows: torch.Tensor, n_heads: int) -> torch.Tensor:
    """Rows of Q or K from pairs side by side (GGUF `llama`) to half-split (transformers)."""
    pairs = rows.reshape(n_heads, -1, 2, rows.shape[1])
    return pairs.swapaxes(1, 2).reshape(rows.shape)


def transformers_logits(measure: gguf_llama.GgufLlama, ids: list[int]) -> numpy.ndarray:
    """The same weights in transformers' own LlamaForCausalLM."""
    shape = measure.shape
    config = transformers.LlamaConfig(
        num_hidden_layers=shape.n_layers,
        num_attention_heads=shape.n_heads,
        num_key_value_heads=shape.n_kv_heads,
        head_dim=shape.head_dim,
        hidden_size=shape.d_model,
        intermediate_size=shape.d_ff,
        vocab_size=measure.weights["token_embd.weight"].shape[0],
        tie_word_embeddings="output.weight" not in measure.weights,
        rms_norm_eps=shape.rms_epsilon,
        rope_parameters={"rope_type": "default", "rope_theta": shape.rope_base},
        attn_implementation="eager",
    )
    model = transformers.LlamaForCausalLM(config).double().eval()
    names = gguf.get_tensor_name_map(gguf.MODEL_ARCH.LLAMA, shape.n_layers)
    state = model.state_dict()
    for name in state:
        weight = measure.weights.get(names.get_name(name, try_suffixes=(".weight",)))
        if weight is None:  # the head of a tied model
            weight = measure.weights["token_embd.weight"]
        if "q_proj" in name:
            weight = half_split(weight, shape.n_heads)
        elif "k_proj" in name:
            weight = half_split(weight, shape.n_kv_heads)
        state[name] = weight
    model.load_state_dict(state)
    with torch.no_grad():
        return model(torch.tensor([ids])).logits[0].numpy()


class Measure(unittest.TestCase):
    def assert_close(self, got: numpy.ndarray, expected: numpy.ndarray, tolerance: float) -> None:
        self.assertEqual(got.shape, expected.shape)
        self.assertLessEqual(numpy.abs(got - expected).max() / expected.std(), tolerance)

    def test_smollm2_in_transformers(self):
        path = limpid_program.SMOLLM2
        if not path.exists():
            self.skipTest("needs the model; run `make model`")
        ids = numpy.random.default_rng(3).integers(0, 49_152, 24).tolist()
        measure = gguf_llama.GgufLlama(path)
        # transformers computes rotary angles in f32.
        self.assert_close(measure.logits(ids), transformers_logits(measure, ids), 1e-5)

    def test_tiny_models_of_the_goldens(self):
        for case in sorted(GOLDEN.glob("*.json")):
            path = case.with_suffix(".gguf")
            if gguf_llama.architecture(path) != "llama":
                continue
            with self.subTest(case=case.stem):
                golden = json.loads(case.read_text())
                got = gguf_llama.GgufLlama(path).logits(golden["ids"])
                self.assert_close(got[golden["positions"]], numpy.array(golden["logits"]), 1e-5)


if __name__ == "__main__":
    sys.exit(limpid_program.main())
