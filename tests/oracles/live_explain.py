"""`limpid explain` beside transformers and torch, on tiny GPT-2, Llama and Qwen3 models with random weights.

Hidden states, attention weights, the logit lens, the parts of each logit, and what happens without a part, with a part
of another text, or with a direction added: all within 1e-4 (eager attention, f32). Hooks on torch modules are the
reference for the parts and the changes.

    live_explain.py
"""

import math
import pathlib
import sys
import tempfile
import unittest

import limpid_program
import numpy
import safetensors.numpy
import torch
import transformers

TOLERANCE = 1e-4
VOCABULARY, HEADS, LAYERS = 64, 4, 3
IDS = [(i * i * 7 + 3 * i + 1) % VOCABULARY for i in range(24)]
OTHER_IDS = [(i * i * 5 + i + 2) % VOCABULARY for i in range(24)]


def gpt2() -> transformers.PreTrainedModel:
    config = transformers.GPT2Config(
        vocab_size=VOCABULARY, n_positions=64, n_embd=32, n_layer=LAYERS, n_head=HEADS, initializer_range=0.3,
        bos_token_id=None, eos_token_id=None,
    )  # fmt: skip
    return transformers.GPT2LMHeadModel(config)


def llama() -> transformers.PreTrainedModel:
    config = transformers.LlamaConfig(
        vocab_size=VOCABULARY, hidden_size=32, intermediate_size=48, num_hidden_layers=LAYERS, num_attention_heads=HEADS,
        num_key_value_heads=2, initializer_range=0.3, max_position_embeddings=64, tie_word_embeddings=False,
    )  # fmt: skip
    return transformers.LlamaForCausalLM(config)


def qwen3() -> transformers.PreTrainedModel:
    config = transformers.Qwen3Config(
        vocab_size=VOCABULARY, hidden_size=32, intermediate_size=48, num_hidden_layers=LAYERS, num_attention_heads=HEADS,
        num_key_value_heads=2, head_dim=16, initializer_range=0.3, max_position_embeddings=64, tie_word_embeddings=True,
    )  # fmt: skip
    return transformers.Qwen3ForCausalLM(config)


def with_random_norms(model: transformers.PreTrainedModel) -> transformers.PreTrainedModel:
    """Norms begin with weights of 1 and biases of 0, which hide a norm that is left out."""
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if "norm" in name or "ln_" in name:
                parameter.add_(torch.randn_like(parameter), alpha=0.3)
    return model


class Torch:
    """A model in transformers whose parts can be read and changed."""

    def __init__(self, model: transformers.PreTrainedModel, n_heads: int = HEADS) -> None:
        self.model = model.float().eval()
        self.model.set_attn_implementation("eager")
        base = model.transformer if hasattr(model, "transformer") else model.model
        self.is_gpt2 = hasattr(model, "transformer")
        self.blocks = base.h if self.is_gpt2 else base.layers
        self.norm = base.ln_f if self.is_gpt2 else base.norm
        self.head_width = model.config.hidden_size // n_heads
        if getattr(model.config, "head_dim", None):
            self.head_width = model.config.head_dim

    def output_projection(self, layer: int) -> torch.nn.Module:
        block = self.blocks[layer]
        return block.attn.c_proj if self.is_gpt2 else block.self_attn.o_proj

    def of_heads(self, layer: int) -> torch.Tensor:
        """The output projection as [outputs, inputs]."""
        weight = self.output_projection(layer).weight
        return weight.T if self.is_gpt2 else weight

    def run(self, ids: list[int], change=None) -> dict:
        """Everything that a step computes; `change(name, x)` may give another tensor in place of a part."""
        seen: dict[str, torch.Tensor] = {}
        handles = []

        def take(name: str, x: torch.Tensor) -> torch.Tensor:
            if change is not None:
                x = change(name, x)
            seen[name] = x[0]
            return x

        def output_hook(name: str):
            def hook(_module, _inputs, output):
                if isinstance(output, tuple):
                    return (take(name, output[0]), *output[1:])
                return take(name, output)

            return hook

        def input_hook(name: str):
            return lambda _module, inputs: (take(name, inputs[0]), *inputs[1:])

        for i, block in enumerate(self.blocks):
            handles.append(
                self.output_projection(i).register_forward_pre_hook(input_hook(f"L{i}.heads"))
            )
            handles.append(
                self.output_projection(i).register_forward_hook(output_hook(f"L{i}.attn"))
            )
            handles.append(block.mlp.register_forward_hook(output_hook(f"L{i}.mlp")))
            handles.append(block.register_forward_hook(output_hook(f"L{i}")))
        with torch.no_grad():
            result = self.model(
                torch.tensor([ids]), output_hidden_states=True, output_attentions=True
            )
        for handle in handles:
            handle.remove()
        seen["embedding"] = result.hidden_states[0][0]
        seen["logits"] = result.logits[0]
        for i, weights in enumerate(result.attentions):
            seen[f"L{i}.weights"] = weights[0]
        return seen

    def lens(self, stream: torch.Tensor) -> torch.Tensor:
        with torch.no_grad():
            return self.model.lm_head(self.norm(stream))


def bits(log_p: torch.Tensor) -> torch.Tensor:
    return -log_p / math.log(2)


class Explained:
    """One family; the test cases below say which."""

    make: staticmethod

    @classmethod
    def setUpClass(cls) -> None:
        torch.manual_seed(7)
        cls.folder = tempfile.TemporaryDirectory()
        cls.path = pathlib.Path(cls.folder.name)
        model = with_random_norms(cls.make())
        model.save_pretrained(cls.path)
        cls.torch = Torch(model)
        cls.seen = cls.torch.run(IDS)
        cls.json = cls.explain()

    @classmethod
    def tearDownClass(cls) -> None:
        cls.folder.cleanup()

    @classmethod
    def explain(cls, *options: object) -> dict:
        ids = ",".join(map(str, IDS))
        return limpid_program.run_json(
            "explain", "-m", cls.path, "--ids", ids, "--json", "--no-measure", *options
        )

    def near(self, found, expected) -> None:
        found, expected = numpy.asarray(found), numpy.asarray(expected)
        self.assertEqual(found.shape, expected.shape)
        self.assertLessEqual(float(numpy.abs(found - expected).max()), TOLERANCE)

    def stream(self, layer: int) -> torch.Tensor:
        return self.seen["embedding"] if layer < 0 else self.seen[f"L{layer}"]

    def test_hidden_states(self):
        """All elements, by way of a trace file; the norms of what is added, by themselves."""
        trace = {
            "token_ids": numpy.array(IDS, numpy.int64),
            "embedding": self.seen["embedding"].numpy(),
        }
        for layer in range(LAYERS):
            trace[f"blk.{layer}.ffn_residual"] = self.stream(layer).numpy()
            trace[f"blk.{layer}.attn_heads"] = self.seen[f"L{layer}.heads"].numpy()
        trace["logits"] = self.seen["logits"].numpy()
        path = self.path / "other.trace"
        safetensors.numpy.save_file(
            {name: numpy.ascontiguousarray(x) for name, x in trace.items()}, path
        )
        report = limpid_program.run_json(
            "verify", "-m", self.path, "--trace", path, "--tolerance", TOLERANCE, "--json"
        )
        self.assertTrue(report["agrees"], report)
        for norms in self.json["norms"]:
            layer = norms["layer"]
            self.near(norms["stream"], self.stream(layer).norm(dim=1))
            if layer >= 0:
                self.near(norms["attention"], self.seen[f"L{layer}.attn"].norm(dim=1))
                self.near(norms["mlp"], self.seen[f"L{layer}.mlp"].norm(dim=1))

    def test_attention_weights(self):
        for entry in self.json["attention"]:
            found = numpy.zeros((len(IDS), len(IDS)))
            found[:, 0] = entry["first"]
            for row, strongest in enumerate(entry["strongest"]):
                for column, weight in strongest:
                    found[row, column] = weight
            self.near(found, self.seen[f"L{entry['layer']}.weights"][entry["head"]])

    def test_surprise_and_alternatives(self):
        log_p = torch.log_softmax(self.seen["logits"], 1)
        self.near(self.json["surprise_bits"][1:], bits(log_p[torch.arange(len(IDS) - 1), IDS[1:]]))
        for position, prediction in enumerate(self.json["next"]):
            for each in prediction["likeliest"]:
                self.near(each["p"], log_p[position, each["id"]].exp())

    def test_logit_lens(self):
        self.assertEqual([lens["layer"] for lens in self.json["lens"]], list(range(-1, LAYERS)))
        for lens in self.json["lens"]:
            log_p = torch.log_softmax(self.torch.lens(self.stream(lens["layer"])), 1)
            entropies = bits((log_p.exp() * log_p).sum(1))
            self.near([each["entropy_bits"] for each in lens["predictions"]], entropies)
            for position, prediction in enumerate(lens["predictions"]):
                best = log_p[position].topk(len(prediction["likeliest"]))
                self.near([each["p"] for each in prediction["likeliest"]], best.values.exp())

    def test_parts_of_the_logits(self):
        """Components times the direction in which the output matrix reads, with the norm's scale held fixed."""
        stream = self.stream(LAYERS - 1)
        norm, head = self.torch.norm, self.torch.model.lm_head.weight.detach()
        centred = isinstance(norm, torch.nn.LayerNorm)
        gain = norm.weight.detach()
        if centred:
            scale = 1 / (stream.var(1, unbiased=False) + norm.eps).sqrt()
        else:
            scale = 1 / (stream.pow(2).mean(1) + norm.variance_epsilon).sqrt()

        def part(component: torch.Tensor, position: int, token: int) -> float:
            if centred:
                component = component - component.mean()
            return float(scale[position] * (component * gain) @ head[token])

        width = self.torch.head_width
        for parts in self.json["parts"]:
            position, token = parts["position"], parts["token"]["id"]
            self.near(parts["sum"], parts["logit"])
            self.near(parts["logit"], self.seen["logits"][position, token])
            self.near(parts["embedding"], part(self.seen["embedding"][position], position, token))
            for layer in range(LAYERS):
                self.near(
                    parts["mlps"][layer],
                    part(self.seen[f"L{layer}.mlp"][position], position, token),
                )
                projection = self.torch.of_heads(layer).detach()
                z = self.seen[f"L{layer}.heads"][position]
                for i in range(HEADS):
                    columns = slice(i * width, (i + 1) * width)
                    wrote = projection[:, columns] @ z[columns]
                    self.near(parts["heads"][layer][i], part(wrote, position, token))
        self.assertEqual(len(self.json["parts"]), len(IDS))

    def same_change(self, change, *options: object) -> None:
        """`limpid explain` with options that change the model, beside torch with hooks that do."""
        what_if = self.explain(*options)["what_if"]
        changed = self.torch.run(IDS, change)
        log_p = torch.log_softmax(self.seen["logits"], 1)
        log_q = torch.log_softmax(changed["logits"], 1)
        self.near(what_if["surprise_bits"][1:], bits(log_q[torch.arange(len(IDS) - 1), IDS[1:]]))
        self.near(what_if["divergence_bits"], -bits((log_p.exp() * (log_p - log_q)).sum(1)))
        for each in what_if["changes"]:
            self.near(each["before"], log_p[-1, each["id"]].exp())
            self.near(each["after"], log_q[-1, each["id"]].exp())
        distances = [0.0] + [
            float((changed[f"L{i}"] - self.stream(i)).norm() / self.stream(i).norm())
            for i in range(LAYERS)
        ]
        self.near(what_if["distance"], distances)
        self.assertGreater(max(what_if["divergence_bits"]), 0.01)

    def test_ablation(self):
        width = self.torch.head_width

        def without_head(name: str, x: torch.Tensor) -> torch.Tensor:
            if name == "L1.heads":
                x = x.clone()
                x[..., 2 * width : 3 * width] = 0
            return x

        self.same_change(without_head, "--ablate", "L1.H2")
        zero = lambda name, x: torch.zeros_like(x) if name in {"L0.mlp", "L2.attn"} else x  # noqa: E731
        self.same_change(zero, "--ablate", "L0.mlp,L2.attn")

    def test_patching(self):
        other = self.torch.run(OTHER_IDS)
        ids = ",".join(map(str, OTHER_IDS))
        patch = lambda name, x: other[name][None] if name == "L1" else x  # noqa: E731
        self.same_change(patch, "--patch", ids, "--at", "L1")

        def patch_last(name: str, x: torch.Tensor) -> torch.Tensor:
            if name == "L0.mlp":
                x = x.clone()
                x[0, -1] = other[name][-1]
            return x

        self.same_change(patch_last, "--patch", ids, "--at", "L0.mlp", "--positions", "-1")

    def test_steering(self):
        towards, away = self.torch.run(OTHER_IDS[:5]), self.torch.run(OTHER_IDS[5:12])
        direction = 2 * (towards["L1"][-1] - away["L1"][-1])
        steer = lambda name, x: x + direction if name == "L1" else x  # noqa: E731
        self.same_change(
            steer, "--steer", ",".join(map(str, OTHER_IDS[:5])), "--minus", ",".join(map(str, OTHER_IDS[5:12])),
            "--strength", 2, "--at", "L1",
        )  # fmt: skip


class Induction(unittest.TestCase):
    """karpathy/makemore's model of repeated sequences (pull request 8): two layers of one head."""

    def test_its_head_is_found_and_removing_it_raises_the_loss_as_torch_says(self):
        source = limpid_program.shared(
            "models", "makemore-induction", "makemore_induction_gpt2arch.pt"
        )
        lines = limpid_program.shared("text", "makemore_induction.txt").read_text().splitlines()
        config = ("--config", '{"n_head": 1, "activation_function": "gelu_new"}')
        with tempfile.TemporaryDirectory() as folder:
            converted = pathlib.Path(folder) / "model"
            limpid_program.run("convert", source, converted, "--to", "safetensors", *config)
            model = Torch(transformers.AutoModelForCausalLM.from_pretrained(converted), n_heads=1)

        def without_head(name: str, x: torch.Tensor) -> torch.Tensor:
            return torch.zeros_like(x) if name == "L1.heads" else x

        rise = 0.0
        for line in lines[:6]:
            ids = [0] + [ord(letter) - ord("a") + 1 for letter in line]
            found = limpid_program.run_json(
                "explain", "-m", source, *config, "--ids", ",".join(map(str, ids)), "--ablate", "L1.H0", "--json",
                "--no-measure",
            )  # fmt: skip
            habits = {
                (each["layer"], each["head"]): each["habits"]["after_same"]
                for each in found["attention"]
            }
            self.assertEqual(max(habits, key=habits.get), (1, 0), line)
            self.assertGreater(habits[1, 0], 0.5)
            for run, change in enumerate((None, without_head)):
                log_p = torch.log_softmax(model.run(ids, change)["logits"], 1)
                expected = float(bits(log_p[torch.arange(len(ids) - 1), ids[1:]]).mean())
                self.assertLessEqual(
                    abs(found["what_if"]["mean_surprise_bits"][run] - expected), TOLERANCE
                )
            before, after = found["what_if"]["mean_surprise_bits"]
            rise += (after - before) / 6
        self.assertGreater(rise, 1)


class Gpt2(Explained, unittest.TestCase):
    make = staticmethod(gpt2)


class Llama(Explained, unittest.TestCase):
    make = staticmethod(llama)


class Qwen3(Explained, unittest.TestCase):
    make = staticmethod(qwen3)


if __name__ == "__main__":
    sys.exit(unittest.main())
