"""`limpid convert` on a model of 169 kB: every way round gives the same values, and packages read what it writes."""

import fcntl
import json
import os
import pathlib
import subprocess
import tempfile
import unittest

import gguf
import limpid_program
import numpy
import safetensors.numpy
import tokenizers

TINY = pathlib.Path(__file__).resolve().parents[1] / "data" / "cli" / "tiny_chat.gguf"
IDS = [1, 5, 9, 40, 3, 7, 22, 11]


def limpid(*arguments: object, **environment: str) -> tuple[int, str]:
    command = [str(limpid_program.PROGRAM), *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, timeout=120, env=environment or None)
    return done.returncode, done.stderr.decode()


class Convert(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.source = self.convert(TINY, "source.gguf", "--dtype", "f16", "--allow-requantize")

    def path(self, name: str) -> pathlib.Path:
        return pathlib.Path(self.folder.name) / name

    def convert(self, source: pathlib.Path, name: str, *options: object) -> pathlib.Path:
        code, err = limpid("convert", source, self.path(name), *options)
        self.assertEqual(code, 0, err)
        return self.path(name)

    def assert_same_logits(self, a: pathlib.Path, b: pathlib.Path):
        found = [limpid_program.logits(path, IDS, "-ctk", "f32", "-ctv", "f32") for path in (a, b)]
        self.assertTrue(numpy.array_equal(*found))

    def test_every_layout_gives_the_same_logits(self):
        folder = self.convert(self.source, "hf", "--to", "safetensors")
        self.assert_same_logits(folder, self.source)
        meta = self.convert(folder, "meta", "--to", "pth")
        self.assert_same_logits(meta, self.source)
        again = self.convert(meta, "again.gguf")
        self.assert_same_logits(again, self.source)
        before = {t.name: t for t in gguf.GGUFReader(self.source).tensors}
        after = {t.name: t for t in gguf.GGUFReader(again).tensors}
        self.assertEqual(before.keys(), after.keys())
        for name, tensor in before.items():
            self.assertTrue(numpy.array_equal(tensor.data, after[name].data), name)

    def test_a_folder_for_transformers_has_its_names_and_sizes(self):
        folder = self.convert(self.source, "hf", "--to", "safetensors")
        config = json.loads((folder / "config.json").read_text())
        tensors = safetensors.numpy.load_file(folder / "model.safetensors")
        self.assertEqual(config["architectures"], ["LlamaForCausalLM"])
        self.assertEqual(config["torch_dtype"], "float16")
        self.assertEqual(
            tensors["model.embed_tokens.weight"].shape,
            (config["vocab_size"], config["hidden_size"]),
        )
        heads = config["num_key_value_heads"] * config["head_dim"]
        self.assertEqual(
            tensors["model.layers.0.self_attn.k_proj.weight"].shape, (heads, config["hidden_size"])
        )
        self.assertEqual(tensors["model.norm.weight"].dtype, numpy.float32)

    def test_the_tokenizer_of_a_gguf_becomes_one_that_tokenizers_reads(self):
        folder = self.convert(self.source, "hf", "--to", "safetensors")
        theirs = tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json"))
        text = "The sea, 123 times.\n\n  Na\u00efve \u4f60\u597d\t<|im_end|> it's"
        out = limpid_program.run(
            "tokenize", "-m", TINY, "--no-bos", "--special", stdin=text.encode()
        )
        self.assertEqual(theirs.encode(text, add_special_tokens=False).ids, json.loads(out))
        config = json.loads((folder / "tokenizer_config.json").read_text())
        fields = gguf.GGUFReader(TINY).fields
        self.assertEqual(config.get("chat_template"), fields["tokenizer.chat_template"].contents())

    def test_named_chat_templates_stay(self):
        folder = self.convert(self.source, "hf", "--to", "safetensors")
        config = json.loads((folder / "tokenizer_config.json").read_text())
        config["chat_template"] = [
            {"name": "default", "template": "plain"},
            {"name": "tool_use", "template": "with tools"},
        ]
        (folder / "tokenizer_config.json").write_text(json.dumps(config))
        again = self.convert(self.convert(folder, "named.gguf"), "again", "--to", "safetensors")
        found = json.loads((again / "tokenizer_config.json").read_text())
        self.assertEqual(found["chat_template"], config["chat_template"])

    def test_named_chat_templates_in_files_of_their_own_stay(self):
        folder = self.convert(self.source, "hf", "--to", "safetensors")
        named = folder / "additional_chat_templates"
        named.mkdir()
        (named / "tool_use.jinja").write_text("with tools")
        for layout in ("safetensors", "pth"):
            copy = self.convert(folder, layout, "--to", layout)
            kept = copy / named.name / "tool_use.jinja"
            self.assertEqual(kept.read_text(), "with tools")
        fields = gguf.GGUFReader(self.convert(copy, "named.gguf")).fields
        self.assertEqual(fields["tokenizer.chat_template.tool_use"].contents(), "with tools")

    def test_a_link_to_a_file_stays_a_link(self):
        target = self.path("target.gguf")
        self.path("link.gguf").symlink_to(target.name)
        for _ in range(2):  # the target is not there at first
            link = self.convert(self.source, "link.gguf")
            self.assertTrue(link.is_symlink())
            self.assertTrue(target.read_bytes().startswith(b"GGUF"))
            self.assertGreater(target.stat().st_size, 8)
            target.write_bytes(b"GGUF old")

    def test_a_file_of_another_kind_is_not_replaced(self):
        other = self.path("notes.json")
        other.write_text("{}")
        for command, *options in (("quantize", "q8_0"), ("convert", "--to", "gguf")):
            code, err = limpid(command, self.source, other, *options)
            self.assertEqual(code, 1)
            self.assertIn("is there already and is not a GGUF file", err)
        self.assertEqual(other.read_text(), "{}")

    def test_a_folder_that_another_process_writes_is_refused(self):
        folder = self.path("busy")
        folder.mkdir()
        descriptor = os.open(folder, os.O_RDONLY)
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        code, err = limpid("convert", self.source, folder, "--to", "safetensors")
        os.close(descriptor)
        self.assertEqual(code, 1)
        self.assertIn(f"another process is writing to {folder}", err)
        self.assertEqual(list(folder.iterdir()), [])

    def test_a_tokenizer_that_cannot_be_read_is_told(self):
        folder = self.convert(self.source, "hf", "--to", "safetensors")
        (folder / "tokenizer.json").write_text("{")
        for layout in ("safetensors", "pth"):
            code, err = limpid("convert", folder, self.path(f"copy-{layout}"), "--to", layout)
            self.assertEqual(code, 0)
            self.assertIn("the tokenizer cannot be read: ", err)

    def test_another_model_s_files_are_not_overwritten(self):
        folder = self.convert(self.source, "hf", "--to", "safetensors")
        meta = self.convert(self.source, "meta", "--to", "pth")
        code, err = limpid("convert", self.source, folder, "--to", "pth")
        self.assertEqual(code, 1)
        self.assertIn("config.json belongs to a model that is there already", err)
        code, err = limpid("convert", self.source, meta, "--to", "safetensors")
        self.assertEqual(code, 1)
        self.assertIn("params.json belongs to a model that is there already", err)
        for name in (
            "tokenizer.json",
            "chat_template.jinja",
            "additional_chat_templates/x.jinja",
            "model-00001-of-00002.safetensors",
            "consolidated.00.pth",
            "generation_config.json",
        ):
            other = self.path(f"with {pathlib.Path(name).name}")
            (other / name).parent.mkdir(parents=True)
            (other / name).write_text("{}")
            for layout in ("safetensors", "pth"):
                code, err = limpid("convert", self.source, other, "--to", layout)
                self.assertEqual(code, 1)
                self.assertIn(f"{other / name} belongs to a model that is there already", err)
            self.assertEqual((other / name).read_text(), "{}")
            self.assertEqual([path for path in other.rglob("*") if path.is_file()], [other / name])

    def test_no_file_that_is_read_is_overwritten(self):
        folder = self.convert(self.source, "hf", "--to", "safetensors")
        tokenizer = self.path("tokenizer.json")
        tokenizer.write_bytes((folder / "tokenizer.json").read_bytes())
        for out in (*sorted(folder.iterdir()), tokenizer):
            before = out.read_bytes()
            options = ("--tokenizer", tokenizer) if out == tokenizer else ()
            code, err = limpid("quantize", folder, out, "q8_0", *options)
            self.assertEqual(code, 1, out)
            self.assertIn("write to another place, so that it stays", err)
            self.assertEqual(out.read_bytes(), before)

    def test_a_template_that_is_not_utf_8_is_refused_before_anything_is_written(self):
        text = gguf.GGUFReader(TINY).fields["tokenizer.chat_template"].contents().encode()
        data = TINY.read_bytes()
        self.assertEqual(data.count(text), 1)
        self.path("bad.gguf").write_bytes(data.replace(text, b"\xff" + text[1:]))
        for layout in ("safetensors", "pth"):
            code, err = limpid("convert", self.path("bad.gguf"), self.path("x"), "--to", layout)
            self.assertEqual(code, 1)
            self.assertIn("tokenizer.chat_template: is not UTF-8", err)
            self.assertFalse(self.path("x").exists())

    def test_a_gguf_stays_what_it_was(self):
        copy = self.convert(TINY, "copy.gguf")
        before, after = gguf.GGUFReader(TINY), gguf.GGUFReader(copy)
        for a, b in zip(before.tensors, after.tensors, strict=True):
            self.assertEqual((a.name, a.tensor_type), (b.name, b.tensor_type))
            self.assertTrue(numpy.array_equal(a.data, b.data), a.name)
        for name, field in before.fields.items():
            if not name.startswith("GGUF."):
                self.assertEqual(field.contents(), after.fields[name].contents(), name)

    def test_quantised_on_the_way_it_is_what_quantize_writes(self):
        for options in ((), ("--no-calibrate",)):
            made = self.path("made.gguf")
            code, err = limpid("quantize", self.source, made, "q4_0", *options)
            self.assertEqual(code, 0, err)
            converted = self.convert(self.source, "converted.gguf", "--dtype", "q4_0", *options)
            tensors = gguf.GGUFReader(made).tensors, gguf.GGUFReader(converted).tensors
            for a, b in zip(*tensors, strict=True):
                self.assertTrue(numpy.array_equal(a.data, b.data), a.name)

    def test_what_a_layout_cannot_hold_is_refused_and_nothing_is_left(self):
        code, err = limpid(
            "convert", self.source, self.path("x"), "--to", "safetensors", "--dtype", "q8_0"
        )
        self.assertEqual(code, 1)
        self.assertIn("only GGUF supports", err)
        self.assertFalse(self.path("x").exists())
        deep = self.path("x") / "y" / "z"
        code, err = limpid("convert", self.source, deep, "--to", "safetensors", "--dtype", "q8_0")
        self.assertEqual(code, 1)
        self.assertFalse(self.path("x").exists())
        code, err = limpid("convert", self.source, self.path("x"))
        self.assertEqual(code, 1)
        self.assertIn("--to", err)

    def test_a_file_beyond_the_limit_is_an_error_and_nothing_is_left(self):
        out = self.path("out.gguf")
        command = f"ulimit -f 10; exec '{limpid_program.PROGRAM}' convert '{self.source}' '{out}'"
        done = subprocess.run(["sh", "-c", command], capture_output=True, timeout=60)
        self.assertEqual(done.returncode, 1)
        self.assertIn(b"out.gguf: File too large", done.stderr)
        self.assertEqual([path.name for path in self.source.parent.iterdir()], ["source.gguf"])

    def test_a_folder_that_could_not_be_completed_is_written_on_the_next_try(self):
        for layout, last in (("safetensors", "config.json"), ("pth", "params.json")):
            obstacle = self.path(layout) / "tokenizer.json"
            obstacle.mkdir(parents=True)
            arguments = ("convert", self.source, self.path(layout), "--to", layout)
            code, err = limpid(*arguments)
            self.assertEqual(code, 1, err)
            self.assertIn("tokenizer.json: it is a folder", err)
            self.assertFalse((self.path(layout) / last).exists())
            obstacle.rmdir()
            code, err = limpid(*arguments)
            self.assertEqual(code, 0, err)

    def test_weights_that_do_not_fit_the_configuration_are_refused(self):
        folder = self.convert(self.source, "hf", "--to", "safetensors")
        config = json.loads((folder / "config.json").read_text())
        config["intermediate_size"] *= 2
        (folder / "config.json").write_text(json.dumps(config))
        for name, options in (("out.gguf", ()), ("out", ("--to", "safetensors"))):
            code, err = limpid("convert", folder, self.path(name), *options)
            self.assertEqual(code, 1, err)
            self.assertIn("are configuration and weights of the same model?", err)
            self.assertFalse(self.path(name).exists())

    def test_quantised_while_opening_is_what_quantize_writes_and_is_made_once(self):
        cache = self.path("cache")
        out, plain = self.path("cached.npy"), self.path("plain.npy")
        ids = ",".join(map(str, IDS))
        made = self.path("made.gguf")
        self.assertEqual(limpid("quantize", self.source, made, "q8_0")[0], 0)
        arguments = ["logits", "--ids", ids, "-m"]
        self.assertEqual(limpid(*arguments, made, "-o", plain)[0], 0)

        def run() -> list[pathlib.Path]:
            code, err = limpid(
                *arguments, self.source, "-o", out, "--quantize", "q8_0", XDG_CACHE_HOME=str(cache)
            )
            self.assertEqual(code, 0, err)
            return sorted((cache / "limpid" / "quantized").iterdir())

        first = run()
        self.assertEqual(len(first), 1)
        made_as = first[0].stat().st_ino
        self.assertEqual(out.read_bytes(), plain.read_bytes())
        self.assertEqual(run(), first)
        self.assertEqual(first[0].stat().st_ino, made_as)  # mapped, not made again
        # The same bytes in another file are another source; a damaged result is made again.
        self.source.write_bytes(self.source.read_bytes())
        self.assertEqual(len(run()), 2)
        newest = max((cache / "limpid" / "quantized").iterdir(), key=lambda p: p.stat().st_mtime_ns)
        newest.write_bytes(newest.read_bytes()[:5000])
        out.unlink()
        self.assertEqual(len(run()), 2)
        self.assertEqual(out.read_bytes(), plain.read_bytes())


if __name__ == "__main__":
    limpid_program.main()
