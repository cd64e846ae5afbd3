"""What `limpid train` makes, in the programs that users trust: checkpoints in transformers, adapters in PEFT."""

import json
import pathlib
import tempfile
import unittest

import limpid_program
import numpy
import peft
import torch
import transformers
from training_runs import CONFIG, TEXT

LLAMA = CONFIG | {"tie_word_embeddings": False}
GPT2 = {
    "architectures": ["GPT2LMHeadModel"],
    "model_type": "gpt2",
    "vocab_size": 64,
    "n_embd": 32,
    "n_layer": 2,
    "n_head": 4,
    "n_positions": 64,
}
DIALOGUE = "A: where is the dog? B: the dog is on the log. " * 40
IDS = [1, 5, 3, 8, 2, 9, 4, 7, 6, 0, 11, 10]


class Trained(unittest.TestCase):
    """For each family a model that learned for some steps."""

    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = pathlib.Path(folder.name)
        (cls.folder / "text.txt").write_text(TEXT + DIALOGUE)
        (cls.folder / "dialogue.txt").write_text(DIALOGUE)
        cls.models = {}
        for name, config in (("llama", LLAMA), ("gpt2", GPT2)):
            (cls.folder / name).mkdir()
            path = cls.folder / name / "config.json"
            path.write_text(json.dumps(config))
            options = ("--config", path, "--tokenizer", "chars", "--lr", "1e-2")
            cls.train(name + "-run", 60, "text.txt", *options)
            cls.models[name] = cls.folder / (name + "-run") / "step-000060"

    @classmethod
    def train(cls, out: str, steps: int, data: str, *options: object) -> list[dict]:
        where = cls.folder / out
        limpid_program.run(
            "train", "--out", where, "--data", cls.folder / data, "--steps", steps, "--seq-len", 32,
            "--batch-size", 4, "--eval-every", 10, *options,
        )  # fmt: skip
        return [json.loads(line) for line in (where / "log.jsonl").read_text().splitlines()]

    def torch_logits(self, model) -> numpy.ndarray:
        with torch.no_grad():
            return model(torch.tensor([IDS])).logits[0].numpy()

    def assert_close(self, got: numpy.ndarray, expected: numpy.ndarray) -> None:
        self.assertEqual(got.shape, expected.shape)
        self.assertLessEqual(float(numpy.abs(got - expected).max()), 1e-4)

    def open(self, model: pathlib.Path):
        return transformers.AutoModelForCausalLM.from_pretrained(model).float().eval()

    def test_checkpoints_open_in_transformers(self):
        for model in self.models.values():
            expected = self.torch_logits(self.open(model))
            self.assert_close(limpid_program.logits(model, IDS), expected)
            tokenizer = transformers.AutoTokenizer.from_pretrained(model)
            self.assertEqual(tokenizer.decode(tokenizer("The cat sat")["input_ids"]), "The cat sat")

    def test_adapters_trained_here_open_in_peft(self):
        for name, model in self.models.items():
            log = self.train(
                name + "-lora", 40, "dialogue.txt", "-m", model, "--lora", 4, "--lr", "1e-2"
            )
            held_out = [line["val_loss"] for line in log if "val_loss" in line]
            self.assertLess(held_out[-1], held_out[0] - 0.02, name)
            adapter = self.folder / (name + "-lora") / "step-000040"
            expected = self.torch_logits(
                peft.PeftModel.from_pretrained(self.open(model), adapter).eval()
            )
            base = limpid_program.logits(model, IDS)
            adapted = limpid_program.logits(model, IDS, "--lora", adapter)
            self.assertGreater(float(numpy.abs(base - adapted).max()), 0.1)
            self.assert_close(adapted, expected)

    def test_adapters_learn_as_in_peft(self):
        """Eight updates on one window: rank and alpha, decay and clipping have the same effect."""
        window = DIALOGUE[:33]
        (self.folder / "window.txt").write_text(window)
        learning = ["--lr", "1e-2", "--schedule", "constant", "--warmup", 0, "--beta1", "0.9", "--beta2", "0.95",
                    "--weight-decay", "0.1", "--clip", "0.5", "--batch-size", 1, "--val", 0]  # fmt: skip
        for name, model in self.models.items():
            adapter = ["-m", model, "--lora", 3, "--lora-alpha", 5, "--lora-targets", "all-linear"]
            self.train(name + "-start", 0, "window.txt", *adapter, *learning)
            log = self.train(name + "-course", 8, "window.txt", *adapter, *learning)
            start = self.folder / (name + "-start") / "step-000000"
            adapted = peft.PeftModel.from_pretrained(self.open(model), start, is_trainable=True)
            adapted = adapted.double().eval()  # without dropout
            learned = [each for each in adapted.parameters() if each.requires_grad]
            optimizer = torch.optim.AdamW(learned, lr=1e-2, betas=(0.9, 0.95), weight_decay=0.1)
            tokenizer = transformers.AutoTokenizer.from_pretrained(model)
            ids = torch.tensor([tokenizer(window)["input_ids"]])
            for line in log:
                loss = adapted(input_ids=ids, labels=ids).loss
                self.assertAlmostEqual(line["loss"], loss.item(), delta=1e-5)
                optimizer.zero_grad()
                loss.backward()
                norm = torch.nn.utils.clip_grad_norm_(learned, 0.5).item()
                self.assertAlmostEqual(line["grad_norm"], norm, delta=1e-4 * norm)
                optimizer.step()
            self.assertLess(log[-1]["loss"], log[0]["loss"] - 0.1)

    def test_adapters_of_peft_open_here_alone_together_and_merged(self):
        targets = {
            "llama": ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"],
            "gpt2": ["c_attn", "c_proj", "c_fc"],
        }
        for name, model in self.models.items():
            torch.manual_seed(3)
            config = peft.LoraConfig(
                r=4,
                lora_alpha=6,
                use_rslora=True,
                target_modules=targets[name],
                task_type="CAUSAL_LM",
            )
            adapted = peft.get_peft_model(self.open(model), config).eval()
            with torch.no_grad():
                for key, parameter in adapted.named_parameters():
                    if "lora_B" in key:
                        parameter.copy_(torch.randn_like(parameter) * 0.05)
            adapter = self.folder / (name + "-peft")
            adapted.save_pretrained(adapter)
            expected = self.torch_logits(adapted)
            self.assert_close(limpid_program.logits(model, IDS, "--lora", adapter), expected)
            halves = ("--lora", f"{adapter}=0.25", "--lora", f"{adapter}=0.75")
            self.assert_close(limpid_program.logits(model, IDS, *halves), expected)
            for out, options in (
                (f"{name}-merged", ["--to", "safetensors"]),
                (f"{name}-merged.gguf", []),
            ):
                merged = self.folder / out
                limpid_program.run("convert", model, merged, "--lora", adapter, *options)
                self.assert_close(limpid_program.logits(merged, IDS), expected)
            gguf = self.folder / f"{name}-base.gguf"  # its rows of Q and K are in another order
            limpid_program.run("convert", model, gguf)
            self.assert_close(limpid_program.logits(gguf, IDS, "--lora", adapter), expected)
            again = self.folder / f"{name}-merged-again.gguf"
            limpid_program.run("convert", gguf, again, "--lora", adapter)
            self.assert_close(limpid_program.logits(again, IDS), expected)


if __name__ == "__main__":
    limpid_program.main()
