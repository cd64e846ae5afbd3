"""`limpid train`: runs that end, and what users get wrong."""

import json
import os
import pathlib
import shutil
import subprocess
import unittest
import unittest.mock

import limpid_program
import numpy
import safetensors.numpy
from training_runs import CONFIG, Training


class Runs(Training):
    def test_a_run_learns_and_its_checkpoint_speaks(self):
        self.fine(*self.command("a"))
        log = self.log("a")
        self.assertEqual([line["step"] for line in log], list(range(31)))
        keys = {"step", "loss", "lr", "grad_norm", "tokens"}
        self.assertEqual(set(log[1]), keys)
        self.assertEqual([line["step"] for line in log if "val_loss" in line], [0, 10, 20, 30])
        self.assertLess(log[-1]["val_loss"], log[0]["val_loss"] - 1)
        saved = self.folder / "a" / "step-000030"
        text = self.fine("run", "-m", saved, "-p", "The cat", "-n", "8", "--temp", "0")
        self.assertGreater(len(text), 4)
        gguf = self.folder / "small.gguf"
        self.fine("convert", saved, gguf)
        self.assertEqual(
            self.fine("run", "-m", gguf, "-p", "The cat", "-n", "8", "--temp", "0"), text
        )

    def test_threads_and_instruction_sets_change_no_bit(self):
        self.fine(*self.command("one", "-t", "1"))
        self.fine(*self.command("three", "-t", "3"))
        self.assertEqual(self.log("three"), self.log("one"))
        self.assertEqual(self.weights("three"), self.weights("one"))
        code, _, err = limpid_program.outcome(*self.command("scalar"), env={"LIMPID_ISA": "scalar"})
        self.assertEqual(code, 0, err)
        self.assertEqual(self.weights("scalar"), self.weights("one"))

    def test_accumulated_batches_are_one_large_batch(self):
        self.fine(*self.command("large", "--batch-size", "8", "--steps", "3"))
        self.fine(*self.command("parts", "--grad-accum", "2", "--steps", "3"))
        for large, parts in zip(self.log("large"), self.log("parts"), strict=True):
            self.assertAlmostEqual(large["loss"], parts["loss"], delta=1e-4)
            self.assertEqual(large["tokens"], parts["tokens"])

    def test_a_checkpoint_goes_on_as_a_model(self):
        self.fine(*self.command("a", "--optimizer", "sgd", "--steps", "5"))
        model = self.folder / "a" / "step-000005"
        self.fine(
            "train",
            "-m",
            model,
            "--data",
            self.data,
            "--steps",
            "2",
            "--seq-len",
            "32",
            "--out",
            self.folder / "b",
        )
        self.assertLess(self.log("b")[0]["loss"], self.log("a")[0]["loss"])

    def test_a_run_goes_on_with_more_steps(self):
        """With a constant rate, and the same settings otherwise, it becomes the run that had those steps at first."""
        constant = ["--schedule", "constant"]
        self.fine(*self.command("a", *constant))
        self.fine(*self.command("b", *constant, "--steps", "17"))
        resume = ["train", "--resume", self.folder / "b", "--steps", "30"]
        settings = self.folder / "b" / "run.json"
        before = settings.read_text()
        self.assertEqual(json.loads(self.fine(*resume, "--plan", "--json"))["steps"], 30)
        self.assertEqual(settings.read_text(), before)
        self.fine(*resume)
        self.assertEqual(json.loads(settings.read_text())["steps"], 30)
        self.assertEqual(
            [line["loss"] for line in self.log("a")], [line["loss"] for line in self.log("b")]
        )
        self.assertEqual(self.weights("a"), self.weights("b"))
        self.fine("train", "--resume", self.folder / "b", "--steps", "32", "--lr", "1e-4")
        self.assertEqual(self.log("b")[-1]["lr"], 1e-4)
        err = self.mistake("train", "--resume", self.folder / "b", "--steps", "31")
        self.assertIn("has taken 32 steps already, more than 31", err)

    def test_tokenized_data_are_kept_and_change_no_bit(self):
        self.fine(*self.command("cold"))
        tokens = list((self.folder / "cache" / "limpid" / "tokens").iterdir())
        self.assertEqual([file.suffix for file in tokens], [".tokens"])
        written = tokens[0].stat().st_mtime_ns
        self.fine(*self.command("warm"))
        self.assertEqual(tokens[0].stat().st_mtime_ns, written)
        tokens[0].write_bytes(tokens[0].read_bytes()[:-1])
        self.fine(*self.command("damaged"))
        with unittest.mock.patch.dict(os.environ):
            del os.environ["XDG_CACHE_HOME"]
            os.environ.pop("HOME", None)
            self.fine(*self.command("none"))
        for run in ("warm", "damaged", "none"):
            self.assertEqual(self.log(run), self.log("cold"))
            self.assertEqual(self.weights(run), self.weights("cold"))

    def test_samples_are_what_the_checkpoint_says_and_change_nothing(self):
        self.fine(*self.command("none", "--sample-every", "0"))
        options = ["--sample-prompt", "The ", "--sample-tokens", "24", "--sample-temp", "0.7"]
        out = self.fine(*self.command("some", "--sample-every", "15", *options, "--seed", "5"))
        self.assertFalse((self.folder / "none" / "samples.jsonl").exists())
        samples = self.samples("some")
        self.assertEqual([sample["step"] for sample in samples], [0, 15, 30])
        for sample in samples:
            self.assertEqual(sample["prompt"], "The ")
            for line in ("The " + sample["text"]).splitlines():
                self.assertIn("  " + line + "\n", out)
        model = self.folder / "some" / "step-000030"
        text = self.fine(
            "run", "-m", model, "-p", "The ", "-n", 24, "--temp", "0.7", "--seed", 5, "--json"
        )
        self.assertEqual(json.loads(text)["text"], samples[-1]["text"])
        self.fine(*self.command("same", "--sample-every", "0", "--seed", "5"))
        self.assertEqual(self.log("same"), self.log("some"))
        self.assertEqual(self.weights("same"), self.weights("some"))

    def test_samples_begin_as_documents_do(self):
        tokenizer = self.folder / "tokenizer.json"
        self.fine("tokenizer", "train", self.data, "--vocab-size", "280", "-o", tokenizer)
        for name in ("bytes", "chars", tokenizer):
            out = f"out-{pathlib.Path(name).stem}"
            self.fine(*self.command(out, "--tokenizer", name, "--sample-every", "30"))
            samples = self.samples(out)
            self.assertEqual([sample["step"] for sample in samples], [0, 30])
            self.assertRegex(samples[1]["text"], "[a-z]{2}")
            self.assertEqual(samples[1]["prompt"], "The" if name == tokenizer else "T")

    def test_characters_of_held_out_text_are_tokens(self):
        held_out = self.folder / "other.txt"
        held_out.write_text("Zebra? " * 40)
        self.fine(*self.command("a", "--val", held_out, "--steps", "0"))
        count = self.fine("tokenize", "-m", self.folder / "a", "-p", "Z?", "--count")
        self.assertEqual(count.strip(), "2")

    def test_a_model_of_bytes_learns_where_a_document_ends(self):
        self.data = self.folder / "words.jsonl"
        self.data.write_text('{"text": "hello"}\n' * 60)
        options = ["--tokenizer", "bytes", "--seq-len", "16", "--sample-temp", "0"]
        self.fine(*self.command("a", *options))
        sample = self.samples("a")[-1]
        self.assertEqual(sample["prompt"] + sample["text"], "hello")

    def test_a_configuration_is_meant_by_its_name_and_a_folder_by_its_path(self):
        (self.folder / "gpt-nano").mkdir()
        shutil.copy(self.config, self.folder / "gpt-nano")
        rest = ["--tokenizer", "bytes", "--data", self.data, "--seq-len", "16", "--plan", "--json"]
        n_parameters = []
        for config in ("gpt-nano", "./gpt-nano"):
            plan = subprocess.run(
                [str(limpid_program.PROGRAM), "train", "--config", config, *map(str, rest)],
                cwd=self.folder, check=True, capture_output=True,
            )  # fmt: skip
            n_parameters.append(json.loads(plan.stdout)["parameters"])
        self.assertGreater(n_parameters[0], 100_000)
        self.assertLess(n_parameters[1], 50_000)

    def test_new_weights_have_the_deviation_of_their_configuration(self):
        for name, more, deviation in (("a", {}, 0.02), ("b", {"initializer_range": 0.5}, 0.5)):
            self.config.write_text(json.dumps({**CONFIG, **more}))
            self.fine(*self.command(name, "--steps", "0"))
            model = self.folder / name / "step-000000" / "model.safetensors"
            weights = safetensors.numpy.load_file(model)["model.layers.0.mlp.gate_proj.weight"]
            self.assertAlmostEqual(weights.std() / deviation, 1, delta=0.1)
            copy = self.folder / f"copy-{name}"
            self.fine("convert", model.parent, copy, "--to", "safetensors")
            for folder in (model.parent, copy):
                written = json.loads((folder / "config.json").read_text())
                self.assertEqual(written["initializer_range"], deviation)
            gguf = self.folder / f"{name}.gguf"
            self.fine("convert", copy, gguf, "--to", "gguf")
            self.assertNotIn("initializer_range", self.fine("inspect", gguf, "--json"))
        for value, problem in ((-1, "not above 0"), (True, "not a number"), (1e40, "above 1e37")):
            self.config.write_text(json.dumps({**CONFIG, "initializer_range": value}))
            err = self.mistake(*self.command("c"))
            self.assertIn(f"initializer_range: is {problem}", err)

    def test_a_warm_up_that_is_longer_than_the_run_is_told(self):
        for more in (["--plan"], []):
            command = self.command("a", "--warmup", "500", "--steps", "1", *more)
            code, _, err = limpid_program.outcome(*command)
            self.assertEqual(code, 0, err)
            self.assertIn("--warmup 500 exceeds --steps 1: the learning rate ends at 2e-05", err)

    def test_json(self):
        out = self.fine(*self.command("a", "--json", "--steps", "2"))
        self.assertEqual([json.loads(line)["step"] for line in out.splitlines()], [0, 1, 2])


class Mistakes(Training):
    def test_data(self):
        empty = self.folder / "empty.txt"
        empty.touch()
        self.assertIn("empty.txt is empty", self.mistake(*self.command("a", "--data", empty)))
        binary = self.folder / "binary.txt"
        binary.write_bytes(b"text\0more")
        self.assertIn("zero byte at 4", self.mistake(*self.command("b", "--data", binary)))
        short = self.folder / "short.txt"
        short.write_text("too short")
        options = ["train", "--config", self.config, "--tokenizer", "chars", "--data", short]
        for more in (["--out", self.folder / "c"], ["--plan"]):
            err = self.mistake(*options, *more)
            self.assertRegex(err, "the data has 9 tokens; a sequence of .* shorter sequences")
        lines = self.folder / "lines.jsonl"
        lines.write_text('{"text": "one"}\n\nno JSON\n')
        options = [
            "train",
            "--config",
            self.config,
            "--tokenizer",
            "bytes",
            "--data",
            lines,
            "--out",
        ]
        self.assertIn("line 3", self.mistake(*options, self.folder / "e"))
        lines.write_text('{"text": "one"}\n{"title": "two"}\n')
        self.assertIn("lines.jsonl: line 2: needs", self.mistake(*options, self.folder / "f"))
        err = self.mistake(*self.command("g", "--val", short))
        self.assertIn("short.txt has", err)
        self.assertIn(
            "no-such-file", self.mistake(*self.command("d", "--data", self.folder / "no-such-file"))
        )

    def test_settings(self):
        self.assertIn("positions", self.mistake(*self.command("a", "--seq-len", "65")))
        self.assertIn(
            "--schedule: unknown name 'sine'; choose one of constant,",
            self.mistake(*self.command("b", "--schedule", "sine")),
        )
        self.assertIn(
            "--dtype: unknown name 'f8'", self.mistake(*self.command("c", "--dtype", "f8"))
        )
        self.assertIn("--beta2 is 1;", self.mistake(*self.command("c", "--beta2", "1")))
        self.assertIn("--dropout is 1;", self.mistake(*self.command("d", "--dropout", "1")))
        self.assertIn("GPT-2", self.mistake(*self.command("e", "--dropout", "0.1")))
        self.assertIn(
            "checkpoint-activations",
            self.mistake(*self.command("f", "--checkpoint-activations", "yes")),
        )
        self.assertIn("unknown preset", self.mistake("train", "--preset", "none"))
        self.assertIn(
            "no configuration of that name (there are llama-2-7b,",
            self.mistake("train", "--config", "none", "--data", self.data),
        )
        self.assertIn(
            "no tensor to freeze has 'none' in its name",
            self.mistake(*self.command("g", "--freeze", "ffn,none")),
        )
        err = self.mistake(*self.command("g", "--freeze", ","))
        self.assertIn("--freeze: an entry of ',' is empty", err)
        self.assertIn("all tensors are frozen", self.mistake(*self.command("h", "--freeze", "_")))
        self.assertIn(
            "--lora-targets is given without --lora, the rank",
            self.mistake(*self.command("i", "--lora-targets", "q_proj")),
        )
        self.assertIn(
            "--lora-alpha is given", self.mistake(*self.command("l", "--lora-alpha", "8"))
        )
        model = ["-m", limpid_program.DATA / "cli" / "tiny_chat.gguf", "--data", self.data]
        for alpha in ("0", "-8"):
            err = self.mistake("train", *model, "--lora", "2", "--lora-alpha", alpha)
            self.assertIn(f"--lora-alpha is {alpha}; it must be more than 0", err)
        for targets in (" ", "q_proj,,v_proj"):
            err = self.mistake("train", *model, "--lora", "2", "--lora-targets", targets)
            self.assertIn(f"--lora-targets: an entry of '{targets}' is empty", err)
        err = self.mistake("train", *model, "--lora", "1000000", "--out", self.folder / "o")
        self.assertIn("a rank of 1000000 is more than both sides of", err)
        err = self.mistake(*self.command("m", "--min-lr", "0.1"))
        self.assertIn("--min-lr is 0.1; it must be at most --lr, which is 0.01", err)
        (self.folder / "link").symlink_to("nowhere")
        self.assertIn("which leads to no folder", self.mistake(*self.command("link")))
        self.assertIn("--seed is -1;", self.mistake(*self.command("n", "--seed", "-1")))
        self.assertIn("--lr: 'nan'", self.mistake(*self.command("j", "--lr", "nan")))
        self.assertIn("GPT-2", self.mistake(*self.command("k", "--dropout", "0.1", "--plan")))
        err = self.mistake(*self.command("p", "--sample-prompt", "The \u00e9"))
        self.assertIn(
            "--sample-prompt has the character '\u00e9', for which the tokenizer has no token", err
        )
        err = self.mistake(*self.command("q", "--sample-prompt", "The " * 500))
        self.assertRegex(
            err, r"--sample-prompt has \d+ tokens, and the model \d+ positions: shorten it"
        )
        self.assertFalse((self.folder / "p").exists())
        self.assertIn(
            "what to learn from",
            self.mistake("train", "--config", self.config, "--tokenizer", "bytes"),
        )
        self.assertIn("what to train? give -m", self.mistake("train", "--data", self.data))
        self.assertIn(
            "-m and --config: give one of them",
            self.mistake("train", "-m", "smollm2", "--config", self.config, "--data", self.data),
        )
        self.assertIn(
            "-m and --config: give one of them (the preset has a --config)",
            self.mistake("train", "--preset", "shakespeare-char", "-m", "smollm2"),
        )
        self.assertIn(
            "has no tokenizer", self.mistake("train", "--config", self.config, "--data", self.data)
        )

    def test_where_the_tokenizer_comes_from(self):
        tokenizer = self.folder / "tokenizer.json"
        self.fine("tokenizer", "train", self.data, "--vocab-size", "262", "-o", tokenizer)
        rest = ["--data", self.data, "--steps", "1", "--seq-len", "16"]
        self.fine("train", "--config", self.config, *rest, "--out", self.folder / "a")
        model = self.folder / "a" / "step-000001"
        other, others = self.folder / "other.json", self.folder / "others.txt"
        others.write_text("Zebras graze and doze. " * 40)
        self.fine("tokenizer", "train", others, "--vocab-size", "262", "-o", other)
        replaced = ["train", "-m", model, *rest, "--plan", "--tokenizer"]
        self.assertRegex(
            self.mistake(*replaced, other),
            r"other.json has other tokens than .+: token \d+ is '.+' and not '.+'; leave --tokenizer out",
        )
        self.fine(*replaced, tokenizer)
        for file in model.glob("tokenizer*.json"):
            file.unlink()
        again = ["train", "-m", model, *rest, "--out", self.folder / "b"]
        self.assertIn("has no tokenizer; name the file of one", self.mistake(*again))
        self.assertIn(
            "that it learned with, not `bytes`", self.mistake(*again, "--tokenizer", "bytes")
        )
        self.fine(*again, "--tokenizer", tokenizer)
        larger = self.folder / "larger.json"  # with a token that the embedding has no row for
        self.fine("tokenizer", "train", self.data, "--vocab-size", "280", "-o", larger)
        err = self.mistake(*again[:-1], self.folder / "c", "--tokenizer", larger)
        self.assertRegex(
            err, r"the data has the token 2[67]\d \(.+\), and the embedding of .+ has 262 rows"
        )

    def test_a_damaged_model_is_not_a_matter_of_the_rate(self):
        self.fine(*self.command("a", "--steps", "1"))
        weights = self.folder / "a" / "step-000001" / "model.safetensors"
        tensors = safetensors.numpy.load_file(weights)
        for tensor in tensors.values():
            tensor[...] = numpy.nan
        safetensors.numpy.save_file(tensors, weights)
        model = [
            "train",
            "-m",
            weights.parent,
            "--data",
            self.data,
            "--steps",
            "1",
            "--seq-len",
            "16",
        ]
        err = self.mistake(*model, "--out", self.folder / "b")
        self.assertIn("the loss is nan", err)
        self.assertIn("before any update: the weights that training began with are damaged", err)

    def test_folders(self):
        self.fine(*self.command("a", "--steps", "1"))
        self.assertIn("holds a run already", self.mistake(*self.command("a")))
        self.assertIn(
            "--resume keeps --seq-len of the run; it may change --steps, --lr,",
            self.mistake("train", "--resume", self.folder / "a", "--seq-len", "9"),
        )
        self.assertIn(
            "leave --preset and --out out",
            self.mistake("train", "--resume", self.folder / "a", "--out", self.folder / "b"),
        )
        self.assertIn("not the folder of a run", self.mistake("train", "--resume", self.folder))
        (self.folder / "a" / "step-000001").rename(self.folder / "a" / "step-000000")
        err = self.mistake("train", "--resume", self.folder / "a")
        self.assertIn("updates: is 1, but the folder is that of step 0", err)
        if os.geteuid() != 0:
            self.folder.chmod(0o500)
            self.addCleanup(self.folder.chmod, 0o700)
            self.assertIn("cannot make the folder", self.mistake(*self.command("new")))

    def test_a_run_that_fails_leaves_the_files_of_others(self):
        folder = self.folder / "mine"
        folder.mkdir()
        tokenizer = folder / "tokenizer.json"
        self.fine("tokenizer", "train", self.data, "--vocab-size", "280", "-o", tokenizer)
        (folder / "film.part").write_text("half")
        self.mistake(*self.command("mine", "--tokenizer", tokenizer, "--data", folder / "none"))
        self.assertEqual({path.name for path in folder.iterdir()}, {"tokenizer.json", "film.part"})
        err = self.mistake(*self.command("mine", "--tokenizer", "bytes"))
        self.assertIn("already has a tokenizer.json", err)
        tokenizer.rename(folder / "tokenizer_config.json")
        err = self.mistake(*self.command("mine", "--tokenizer", "bytes"))
        self.assertIn("already has a tokenizer_config.json", err)

    def test_a_run_that_goes_on_is_named_after_the_run(self):
        self.fine(*self.command("first", "--steps", "1"))
        command = ["train", "-m", "first", "--data", self.data, "--steps", "0"]
        subprocess.run(
            [str(limpid_program.PROGRAM), *map(str, command)],
            cwd=self.folder, check=True, capture_output=True,
        )  # fmt: skip
        self.assertTrue((self.folder / "runs" / "first" / "run.json").exists())

    def test_a_run_is_named_after_its_source(self):
        config = self.folder / "small-3.2"
        config.mkdir()
        shutil.copy(self.config, config)
        command = ["train", "--config", f"{config}/", "--tokenizer", "bytes", "--data", self.data]
        subprocess.run(
            [str(limpid_program.PROGRAM), *map(str, command), "--steps", "0"],
            cwd=self.folder, check=True, capture_output=True,
        )  # fmt: skip
        self.assertTrue((self.folder / "runs" / "small-3.2" / "run.json").exists())

    def test_an_adapter_is_used_and_merged_by_the_name_of_its_run(self):
        self.fine(*self.command("a"))
        model, adapter = self.folder / "a", self.folder / "b"
        other = self.folder / "other.txt"
        other.write_text("tat " * 400)
        adapt = ["--lora", "2", "--lr", "0.05", "--steps", "20", "--data", other]
        self.fine("train", "-m", model, "--seq-len", "32", "--out", adapter, *adapt)
        self.assertEqual(self.targets(adapter), {"q_proj", "v_proj"})
        every = self.folder / "every"
        self.fine(
            "train",
            "-m",
            model,
            "--out",
            every,
            *adapt,
            "--steps",
            "1",
            "--seq-len",
            "32",
            "--lora-targets",
            "all-linear",
        )
        self.assertEqual(
            self.targets(every),
            {f"{name}_proj" for name in ("q", "k", "v", "o", "gate", "up", "down")},
        )
        say = ["run", "-p", "The cat", "-n", "8", "--temp", "0", "-m"]
        adapted = self.fine(*say, model, "--lora", adapter)
        unadapted = self.fine(*say, model)
        self.assertNotEqual(adapted, unadapted)
        for name in ("rate=0.05", "rate=high"):
            renamed = self.folder / name
            shutil.copytree(adapter, renamed)
            self.assertEqual(adapted, self.fine(*say, model, "--lora", renamed))
            self.assertEqual(unadapted, self.fine(*say, model, "--lora", f"{renamed}=0"))
        merged = self.folder / "merged.gguf"
        self.fine("convert", model, merged, "--lora", adapter)
        self.assertEqual(adapted, self.fine(*say, merged))
        self.fine("verify", model, "--lora", adapter, "--against", merged)
        self.assertIn("is a LoRA adapter, not a model", self.mistake(*say, adapter))

    def targets(self, run: pathlib.Path) -> set[str]:
        config = json.loads(next(run.glob("step-*/adapter_config.json")).read_text())
        return set(config["target_modules"])

    def test_an_adapter_of_another_model(self):
        models = {}
        for name, width in (("a", 32), ("b", 48)):
            self.config.write_text(json.dumps({**CONFIG, "hidden_size": width}))
            self.fine(*self.command(name, "--steps", "1"))
            models[name] = self.folder / name / "step-000001"
        adapt = ["train", "-m", models["a"], "--lora", "2", "--data", self.data, "--seq-len", "32"]
        self.fine(*adapt, "--steps", "2", "--save-every", "1", "--out", self.folder / "c")
        adapter = self.folder / "c" / "step-000002"
        chat = ["run", "-p", "The cat", "-n", "4", "--lora", adapter, "-m"]
        self.fine(*chat, models["a"])
        self.assertIn("is the adapter of another model?", self.mistake(*chat, models["b"]))
        # Of the run itself: the model that it adapts is no longer what it was.
        shutil.rmtree(models["a"])
        shutil.copytree(models["b"], models["a"])
        err = self.mistake("train", "--resume", self.folder / "c")
        self.assertIn("is the adapter of another model?", err)
        self.assertTrue((adapter / "adapter_model.safetensors").exists())

    def test_divergence_names_the_place_and_keeps_the_checkpoint(self):
        err = self.mistake(
            *self.command(
                "a", "--lr", "1e30", "--clip", "0", "--optimizer", "sgd", "--save-every", "1"
            )
        )
        self.assertRegex(err, r"diverged at step 1: .*first in ")
        self.assertFalse(list((self.folder / "a").glob("step-*")))

    def test_a_checkpoint_is_of_a_finite_loss(self):
        """Weights that diverge do not take the place of the only checkpoint, which still trains."""
        options = ["--optimizer", "sgd", "--clip", "0", "--lr", "10", "--eval-every", "0"]
        kept = ["--save-every", "1", "--keep", "1", "--steps", "300"]
        err = self.mistake(*self.command("a", *options, *kept))
        newest = self.log("a")[-1]["step"]
        self.assertGreater(newest, 0)
        self.assertIn(f"diverged at step {newest + 1}:", err)
        names = [path.name for path in (self.folder / "a").glob("step-*")]
        self.assertEqual(names, [f"step-{newest:06}"])
        again = ["--data", self.data, "--seq-len", "32", "--lr", "0", "--steps", "1"]
        self.fine("train", "-m", self.folder / "a", "--out", self.folder / "b", *again)


if __name__ == "__main__":
    unittest.main()
