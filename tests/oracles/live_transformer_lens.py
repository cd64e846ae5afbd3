"""`limpid explain` beside TransformerLens 4, on the tiny models of live_explain.py: the logit lens and the direct parts of
each logit, within 1e-4.

TransformerLens is given the model of transformers with random norms, and folds the last norm's weights into its output
matrix (`fold_ln`). Other changes of weights, which would move parts from one component to another, are switched off:
it would else centre what is written to the residual stream, and move the biases of values to the output projection.

    live_transformer_lens.py
"""

import sys
import tempfile
import unittest

import limpid_program
import live_explain
import tokenizers
import torch
import transformers
from live_explain import HEADS, IDS, LAYERS, VOCABULARY
from transformer_lens import TransformerBridge
from transformer_lens.tools.analysis import logit_lens


def some_tokenizer() -> transformers.PreTrainedTokenizerBase:
    """TransformerLens wants one, and the test gives it ids."""
    words = {str(i): i for i in range(VOCABULARY)}
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=tokenizers.Tokenizer(tokenizers.models.WordLevel(words, unk_token="0")),
        bos_token="0",
        eos_token="0",
        pad_token="0",
    )


class BesideTransformerLens:
    """One family; the test cases below say which."""

    make: staticmethod

    @classmethod
    def setUpClass(cls) -> None:
        torch.manual_seed(11)
        model = live_explain.with_random_norms(cls.make()).float().eval()
        model.set_attn_implementation("eager")
        with tempfile.TemporaryDirectory() as folder:
            model.save_pretrained(folder)
            options = ("--ids", ",".join(map(str, IDS)), "--json", "--no-measure")
            cls.json = limpid_program.run_json("explain", "-m", folder, *options)
            some_tokenizer().save_pretrained(folder)
            cls.lens = TransformerBridge.boot_transformers(folder, hf_model=model, device="cpu")

    def near(self, found, expected) -> None:
        live_explain.Explained.near(self, found, expected)

    def test_logit_lens(self):
        _, cache = self.lens.run_with_cache(torch.tensor([IDS]))
        result = logit_lens(self.lens, cache=cache, positions=None, return_type="probs")
        self.assertEqual(result.values.shape, (LAYERS + 1, 1, len(IDS), VOCABULARY))
        self.assertEqual([lens["layer"] for lens in self.json["lens"]], list(range(-1, LAYERS)))
        for lens, chances in zip(self.json["lens"], result.values[:, 0], strict=True):
            for prediction, expected in zip(lens["predictions"], chances, strict=True):
                found = prediction["likeliest"]
                self.near([each["p"] for each in found], expected.topk(len(found)).values)
                self.near([each["p"] for each in found], expected[[each["id"] for each in found]])

    def test_parts_of_the_logits(self):
        self.lens.enable_compatibility_mode(
            center_writing_weights=False, center_unembed=False, fold_value_biases=False
        )
        logits, cache = self.lens.run_with_cache(torch.tensor([IDS]))
        tokens = [parts["token"]["id"] for parts in self.json["parts"]]
        self.assertEqual([parts["position"] for parts in self.json["parts"]], list(range(len(IDS))))

        def parts_of(stack: torch.Tensor) -> torch.Tensor:  # [components, positions]
            return cache.logit_attrs(stack, tokens=torch.tensor([tokens]))[:, 0].detach()

        stack, names = cache.decompose_resid(return_labels=True)
        parts = dict(zip(names, parts_of(stack), strict=True))
        heads = parts_of(cache.stack_head_results()).reshape(LAYERS, HEADS, len(IDS))
        constant = torch.zeros(VOCABULARY) if self.lens.b_U is None else self.lens.b_U.detach()
        for at, found in enumerate(self.json["parts"]):
            self.near(found["logit"], logits[0, at, tokens[at]].detach())
            embedding = sum(parts[name][at] for name in ("embed", "pos_embed") if name in parts)
            self.near(found["embedding"], embedding)
            self.near(found["norm_bias"], constant[tokens[at]])
            self.near(found["mlps"], [parts[f"{i}_mlp_out"][at] for i in range(LAYERS)])
            self.near(found["heads"], heads[:, :, at])
            for layer in range(LAYERS):
                rest = parts[f"{layer}_attn_out"][at] - heads[layer, :, at].sum()
                self.near(found["attention_rest"][layer], rest)


class Gpt2(BesideTransformerLens, unittest.TestCase):
    make = staticmethod(live_explain.gpt2)


class Llama(BesideTransformerLens, unittest.TestCase):
    make = staticmethod(live_explain.llama)


class Qwen3(BesideTransformerLens, unittest.TestCase):
    make = staticmethod(live_explain.qwen3)


if __name__ == "__main__":
    sys.exit(unittest.main())
