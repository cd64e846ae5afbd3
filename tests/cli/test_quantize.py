"""`limpid quantize` on a model of 169 kB: what it writes opens in the `gguf` package, and is what was asked for."""

import pathlib
import struct
import subprocess
import tempfile
import unittest

import gguf
import limpid_program
import numpy

TINY = pathlib.Path(__file__).resolve().parents[1] / "data" / "cli" / "tiny_chat.gguf"


def quantize(*arguments: object) -> tuple[int, str]:
    command = [str(limpid_program.PROGRAM), "quantize", *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, timeout=120)
    return done.returncode, done.stderr.decode()


def values_of(path: pathlib.Path) -> dict[str, numpy.ndarray]:
    return {
        tensor.name: gguf.dequantize(tensor.data, tensor.tensor_type).reshape(-1)
        for tensor in gguf.GGUFReader(path).tensors
    }


class Quantize(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.floats = self.path("floats.gguf")
        code, err = quantize(TINY, self.floats, "f32", "--allow-requantize")
        self.assertEqual(code, 0, err)

    def path(self, name: str) -> pathlib.Path:
        return pathlib.Path(self.folder.name) / name

    def test_metadata_says_what_the_file_is_and_keeps_the_rest(self):
        code, err = quantize(self.floats, self.path("q.gguf"), "q8_0")
        self.assertEqual(code, 0, err)
        reader = gguf.GGUFReader(self.path("q.gguf"))
        source = gguf.GGUFReader(TINY)
        fields = {name: field.contents() for name, field in reader.fields.items()}
        self.assertEqual(fields["general.file_type"], gguf.LlamaFileType.MOSTLY_Q8_0)
        self.assertEqual(fields["general.quantization_version"], 2)
        for name, field in source.fields.items():
            if not name.startswith(("general.file_type", "general.quantization_version", "GGUF.")):
                self.assertEqual(fields[name], field.contents(), name)

    def test_values_are_near_and_norms_exact(self):
        code, err = quantize(self.floats, self.path("q.gguf"), "q8_0")
        self.assertEqual(code, 0, err)
        before, after = values_of(self.floats), values_of(self.path("q.gguf"))
        self.assertEqual(list(before), list(after))
        for name, expected in before.items():
            if "norm" in name:
                self.assertTrue(numpy.array_equal(expected, after[name]), name)
            else:
                distance = numpy.sqrt(numpy.mean((expected - after[name]) ** 2))
                self.assertLess(distance, 0.01 * numpy.sqrt(numpy.mean(expected**2)), name)

    def test_bytes_do_not_depend_on_threads(self):
        for threads in (1, 3):
            code, err = quantize(self.floats, self.path(f"{threads}.gguf"), "q5_1", "-t", threads)
            self.assertEqual(code, 0, err)
        self.assertEqual(self.path("1.gguf").read_bytes(), self.path("3.gguf").read_bytes())

    def test_the_model_is_run_first_unless_told_not_to(self):
        self.assertEqual(quantize(self.floats, self.path("with.gguf"), "q4_0")[0], 0)
        options = ("q4_0", "--no-calibrate")
        self.assertEqual(quantize(self.floats, self.path("without.gguf"), *options)[0], 0)
        known, unknown = values_of(self.path("with.gguf")), values_of(self.path("without.gguf"))
        steps = [known[name] != unknown[name] for name in known if "ffn_up" in name]
        moved = numpy.concatenate(steps).mean()
        self.assertTrue(0.001 < moved < 0.1, moved)
        # Eight bits are near enough.
        self.assertEqual(quantize(self.floats, self.path("with.gguf"), "q8_0")[0], 0)
        options = ("q8_0", "--no-calibrate")
        self.assertEqual(quantize(self.floats, self.path("without.gguf"), *options)[0], 0)
        self.assertEqual(
            self.path("with.gguf").read_bytes(), self.path("without.gguf").read_bytes()
        )

    def test_what_a_row_does_not_allow_is_said(self):
        code, err = quantize(self.floats, self.path("q.gguf"), "q4_k_m")
        self.assertEqual(code, 0, err)
        self.assertRegex(
            err,
            r"\d+ tensors: rows of \d+ are not a multiple of the block size of q4_K: q5_0 instead",
        )

    def test_quantised_again_only_on_request(self):
        self.assertEqual(quantize(self.floats, self.path("q.gguf"), "q8_0")[0], 0)
        code, err = quantize(self.path("q.gguf"), self.path("again.gguf"), "q4_0")
        self.assertEqual(code, 1)
        self.assertIn("--allow-requantize", err)
        self.assertFalse(self.path("again.gguf").exists())
        run = ("run", "-m", self.path("q.gguf"), "--quantize", "q4_0", "-p", "hi")
        code, _, err = limpid_program.outcome(*run)
        self.assertEqual(code, 1)
        self.assertIn("by limpid convert or limpid quantize with --allow-requantize\n", err)
        arguments = (self.path("q.gguf"), self.path("again.gguf"), "q4_0", "--allow-requantize")
        self.assertEqual(quantize(*arguments)[0], 0)

    def test_an_importance_matrix_in_both_formats_gives_the_same_file(self):
        names = [name for name in values_of(self.floats) if "attn_q.weight" in name]
        n_cols = int(
            next(t for t in gguf.GGUFReader(self.floats).tensors if t.name == names[0]).shape[0]
        )
        means = numpy.arange(1, n_cols + 1, dtype=numpy.float32)
        writer = gguf.GGUFWriter(self.path("i.gguf"), "")
        writer.add_type("imatrix")
        old = struct.pack("<i", len(names))
        for name in names:
            writer.add_tensor(name + ".in_sum2", (4 * means).reshape(1, -1))
            writer.add_tensor(name + ".counts", numpy.array([[4]], numpy.float32))
            old += struct.pack("<i", len(name)) + name.encode() + struct.pack("<ii", 2, n_cols)
            old += (2 * means).tobytes()
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.write_tensors_to_file()
        writer.close()
        self.path("i.dat").write_bytes(old)
        for kind in ("gguf", "dat"):
            arguments = (self.floats, self.path(f"{kind}.out"), "q4_1")
            code, err = quantize(*arguments, "--imatrix", self.path(f"i.{kind}"))
            self.assertEqual(code, 0, err)
        self.assertEqual(quantize(self.floats, self.path("plain.out"), "q4_1")[0], 0)
        aware = self.path("gguf.out").read_bytes()
        self.assertEqual(aware, self.path("dat.out").read_bytes())
        self.assertNotEqual(aware, self.path("plain.out").read_bytes())

    def importance(self, names: list[str]) -> pathlib.Path:
        sizes = {t.name: int(t.shape[0]) for t in gguf.GGUFReader(self.floats).tensors}
        content = struct.pack("<i", len(names))
        for name in names:
            n_cols = sizes.get(name, 8)
            content += struct.pack("<i", len(name)) + name.encode()
            content += struct.pack("<ii", 1, n_cols)
            content += numpy.ones(n_cols, numpy.float32).tobytes()
        self.path("made.dat").write_bytes(content)
        return self.path("made.dat")

    def test_an_importance_matrix_of_another_model_is_refused(self):
        path = self.importance(["blk.0.other.weight"])
        code, err = quantize(self.floats, self.path("q.gguf"), "q4_1", "--imatrix", path)
        self.assertEqual(code, 1)
        self.assertIn("belong to another model?", err)
        self.assertFalse(self.path("q.gguf").exists())

    def test_tensors_without_an_importance_are_counted(self):
        known = [name for name in values_of(self.floats) if "attn_q.weight" in name]
        path = self.importance(known)
        code, err = quantize(self.floats, self.path("q.gguf"), "q4_1", "--imatrix", path)
        self.assertEqual(code, 0, err)
        changed = [
            tensor
            for tensor in gguf.GGUFReader(self.path("q.gguf")).tensors
            if tensor.tensor_type != gguf.GGMLQuantizationType.F32
        ]
        n_unknown = len(changed) - len(known)
        self.assertIn(f"no entry for {n_unknown} of the {len(changed)} tensors", err)

    def test_the_importance_matrix_is_not_overwritten(self):
        path = self.importance(["blk.0.attn_q.weight"])
        before = path.read_bytes()
        code, err = quantize(self.floats, path, "q4_1", "--imatrix", path)
        self.assertEqual(code, 1)
        self.assertIn("is read by this command", err)
        self.assertEqual(path.read_bytes(), before)

    def test_an_importance_matrix_that_is_none_is_refused(self):
        self.path("x.dat").write_bytes(b"\x01\x00\x00\x00\xff\xff\xff\xff")
        code, err = quantize(
            self.floats, self.path("q.gguf"), "q4_1", "--imatrix", self.path("x.dat")
        )
        self.assertEqual(code, 1)
        self.assertIn("importance matrix", err)


if __name__ == "__main__":
    limpid_program.main()
