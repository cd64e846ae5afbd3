"""`limpid verify` beside traces of transformers (tools/golden/make_trace.py) and beside other checkpoints; `inspect --config`."""

import json
import os
import pathlib
import subprocess
import tempfile
import unittest
import unittest.mock

import limpid_program
import numpy
import safetensors.numpy

GOLDEN = limpid_program.ROOT / "tests" / "data" / "golden"
MODELS = {"gpt2": GOLDEN / "gpt2" / "tanh_tied.gguf", "llama": GOLDEN / "llama" / "gqa_untied.gguf"}


def output(*arguments: object) -> tuple[int, str, str]:
    """(exit code, standard output, standard error)"""
    command = [str(limpid_program.PROGRAM), *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, timeout=120)
    return done.returncode, done.stdout.decode(), done.stderr.decode()


def verify(*arguments: object) -> tuple[int, dict]:
    code, out, err = output("verify", *arguments, "--json")
    assert out, err
    return code, json.loads(out)


def trace_of(model: pathlib.Path) -> pathlib.Path:
    return model.with_name(model.stem + ".trace.safetensors")


class Verify(unittest.TestCase):
    def setUp(self) -> None:
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.path = pathlib.Path(self.folder.name)

    def test_agrees_with_transformers_layer_by_layer(self):
        for model in MODELS.values():
            for executor in ("reference", "cpu"):
                with self.subTest(model=model.name, executor=executor):
                    code, report = verify(model, "--device", executor)
                    self.assertEqual((code, report["agrees"]), (0, True))
                    self.assertEqual(report["missing"], [])
                    self.assertEqual(len(report["activations"]), 1 + 2 * 3 + 2)
                    errors = [each["error"] for each in report["activations"]]
                    self.assertLess(max(errors), 1e-5)
                    self.assertGreater(max(errors), 0)

    def test_the_damaged_layer_is_named(self):
        for family, model in MODELS.items():
            for layer in (0, 1):
                with self.subTest(family=family, layer=layer):
                    damaged = self.path / "damaged.gguf"
                    damaged.write_bytes(model.read_bytes())
                    self.damage(damaged, f"blk.{layer}.ffn_down.weight")
                    code, report = verify(damaged, "--trace", trace_of(model))
                    self.assertEqual((code, report["agrees"]), (1, False))
                    first = report["first_departure"]
                    self.assertEqual((first["layer"], first["activation"]), (layer, "ffn_residual"))
                    code, text, _ = output("verify", damaged, "--against", model)
                    self.assertEqual(code, 1)
                    self.assertIn(f"departs at layer {layer}, ffn_residual", text)

    def test_a_nan_agrees_with_nothing(self):
        damaged = self.path / "damaged.gguf"
        damaged.write_bytes(MODELS["gpt2"].read_bytes())
        self.damage(damaged, "blk.1.ffn_down.weight", by=float("nan"))
        code, text, _ = output("verify", damaged, "--against", damaged)
        self.assertEqual(code, 1)
        place = "departs at layer 1, ffn_residual, token 0, element 3"
        self.assertRegex(text, f"{place}: -?nan, in the reference -?nan")
        code, report = verify(damaged, "--against", damaged)
        self.assertEqual((code, report["agrees"]), (1, False))
        self.assertIsNone(report["first_departure"]["error"])

    def damage(self, path: pathlib.Path, name: str, by: float = 0.25) -> None:
        import gguf

        reader = gguf.GGUFReader(path, "r+")
        tensor = next(tensor for tensor in reader.tensors if tensor.name == name)
        tensor.data[3, :5] += numpy.float32(by)
        reader.data.flush()

    def test_a_trace_of_another_model_is_refused(self):
        code, out, err = output("verify", MODELS["llama"], "--trace", trace_of(MODELS["gpt2"]))
        self.assertEqual((code, out), (1, ""))
        self.assertIn("not the same model", err)
        code, _, err = output("verify", GOLDEN / "llama" / "biases.gguf")
        self.assertEqual(code, 1)
        self.assertIn("--trace", err)

    def test_a_trace_with_less_is_compared_as_far_as_it_goes(self):
        whole = safetensors.numpy.load_file(trace_of(MODELS["gpt2"]))
        some = self.path / "some.safetensors"
        kept = {name: whole[name] for name in ("token_ids", "blk.1.ffn_residual", "logits")}
        kept["blk.1.router"] = kept["logits"]
        safetensors.numpy.save_file(kept, some)
        code, report = verify(MODELS["gpt2"], "--trace", some)
        self.assertEqual((code, len(report["activations"])), (0, 2))
        self.assertEqual(report["missing"], ["blk.1.router"])

    def test_hyper_parameters_are_for_both_state_dictionaries(self):
        weights = limpid_program.shared("models", "makemore-induction", "slm4096_char_ckpt.pt")
        given = ("--config", '{"activation_function": "gelu"}')
        code, report = verify(weights, *given, "--against", weights)
        self.assertEqual((code, report["agrees"]), (0, True))
        converted = self.path / "converted.gguf"
        self.assertEqual(output("convert", weights, converted, *given)[0], 0)
        code, report = verify(weights, *given, "--against", converted)
        self.assertEqual((code, report["agrees"]), (0, True))

    def test_the_cache_is_always_f32(self):
        for option in ("-ctk", "-ctv"):
            code, _, err = output("verify", MODELS["llama"], option, "f16")
            self.assertEqual(code, 1)
            self.assertIn(f"unknown option {option}", err)

    def test_tolerance_is_the_users(self):
        self.assertEqual(verify(MODELS["llama"], "--tolerance", "1e-9")[0], 1)
        code, report = verify(MODELS["llama"], "--against", MODELS["llama"], "--tolerance", "0")
        self.assertEqual((code, report["tokens"]), (0, 32))


class Configurations(unittest.TestCase):
    def test_a_name_needs_no_weights(self):
        code, out, _ = output("inspect", "--config", "llama-3-8b", "--json")
        report = json.loads(out)
        self.assertEqual((code, report["parameters"]), (0, 8_030_261_248))
        self.assertEqual(sum(report["parameters_of"].values()), report["parameters"])
        self.assertEqual(report["memory"]["bf16"]["weights"], 2 * 8_030_261_248)
        self.assertEqual(report["memory"]["f32"]["training"], 16 * 8_030_261_248)
        self.assertEqual(report["memory"]["bf16"]["training"], 12 * 8_030_261_248)
        # 32 layers, keys and values, 8 of 32 heads of 128, two bytes each.
        self.assertEqual(report["kv_bytes_per_token"], 32 * 2 * 8 * 128 * 2)
        self.assertEqual(report["kv_bytes_per_token_full"], 4 * report["kv_bytes_per_token"])
        self.assertEqual(report["attention_parameters_full"], 32 * 4 * 4096 * 4096)
        code, text, _ = output("inspect", "--config", "gpt2-xl")
        self.assertEqual(code, 0)
        self.assertIn("1,557,611,200", text)
        self.assertIn("tied", text)

    def test_quantised_sizes_are_those_of_files(self):
        """Blocks of 256 do not divide rows of 576: those are Q8_0 in a file of Q6_K."""
        report = json.loads(output("inspect", "--config", "smollm2-135m", "--json")[1])
        norms = (2 * 30 + 1) * 576
        down = 30 * 576 * 1536
        others = report["parameters"] - norms - down
        size = 4 * norms + down * 210 // 256 + others * 34 // 32
        self.assertEqual(report["memory"]["q6_K"]["weights"], size)

    def test_norms_of_heads_are_norms(self):
        report = json.loads(output("inspect", "--config", "qwen3-0.6b", "--json")[1])
        self.assertEqual(report["parameters_of"]["norms"], 28 * (2 * 1024 + 2 * 128) + 1024)

    def test_a_model_of_the_environment_does_not_matter(self):
        expected = output("inspect", "--config", "gpt2-xl")
        for name, value in (("LLAMA_ARG_MODEL", "no.gguf"), ("LLAMA_ARG_HF_REPO", "no/such")):
            with unittest.mock.patch.dict(os.environ, {name: value}):
                self.assertEqual(output("inspect", "--config", "gpt2-xl"), expected)

    def test_a_model_is_given_although_the_environment_names_it_too(self):
        model = str(GOLDEN / "llama" / "mha_tied.gguf")
        with unittest.mock.patch.dict(os.environ, LLAMA_ARG_MODEL=model):
            code, _, err = output("inspect", "-m", model, "--config", "gpt2-xl")
        self.assertEqual(code, 1)
        self.assertIn("--config is for a bare state dictionary", err)

    def test_an_unknown_name_is_one_line(self):
        code, out, err = output("inspect", "--config", "llama-3-8")
        self.assertEqual((code, out), (1, ""))
        self.assertIn("did you mean llama-3-8b", err)

    def test_the_rotary_table_is_drawn_and_changed(self):
        model = GOLDEN / "llama" / "mha_tied.gguf"
        with tempfile.TemporaryDirectory() as folder:
            svg = pathlib.Path(folder) / "rope.svg"
            plain = json.loads(output("inspect", model, "--json")[1])
            code, out, _ = output(
                "inspect", model, "--json", "--rope-scaling", "linear:4", "--rope-svg", svg
            )
            self.assertEqual(code, 0)
            rope = json.loads(out)["model"]["rope"]
            self.assertEqual((rope["scaling"], rope["scaling_factor"]), ("linear", 4.0))
            numpy.testing.assert_allclose(
                numpy.array(plain["model"]["rope"]["inverse_frequencies"]) / 4,
                rope["inverse_frequencies"],
            )
            self.assertIn("id='before'", svg.read_text())
            given = ("inspect", "--config", "llama-2-7b", "--rope-svg", svg)
            drawn = []
            for options in ((), ("--rope-scaling", "linear:4")):
                self.assertEqual(output(*given, *options)[0], 0)
                drawn.append(svg.read_text())
            self.assertNotEqual(*drawn)
        code, _, err = output("inspect", MODELS["gpt2"], "--rope-scaling", "linear:4")
        self.assertEqual(code, 1)
        self.assertIn("learned positions", err)

    def test_a_state_dictionary_takes_its_hyper_parameters(self):
        weights = limpid_program.shared("models", "makemore-induction", "slm4096_char_ckpt.pt")
        code, _, err = output("inspect", weights)
        self.assertEqual(code, 1)
        self.assertIn("--config", err)
        given = '{"activation_function": "gelu"}'
        code, out, err = output("inspect", weights, "--config", given, "--json")
        self.assertEqual(code, 0, err)
        self.assertEqual(json.loads(out)["model"]["mlp"], "gelu_erf")
        self.assertTrue(json.loads(out)["model"]["tied_embeddings"])


if __name__ == "__main__":
    limpid_program.main()
