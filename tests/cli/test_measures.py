"""What the program measures and reports, on a model of 169 kB: perplexity, bench, inspect, devices."""

import json
import pathlib
import tempfile
import unittest

import limpid_program
import numpy
from limpid_program import outcome as output

TINY = limpid_program.DATA / "cli" / "tiny_chat.gguf"
VOCABULARY = limpid_program.DATA / "cli" / "vocabulary.gguf"


class Measures(unittest.TestCase):
    def test_perplexity_counts_the_second_halves(self):
        text = "the world is in the hello and " * 20
        n_ctx = 32
        ids = json.loads(output("tokenize", "-m", TINY, "-p", text)[1])
        code, out, _ = output(
            "perplexity",
            "-m",
            TINY,
            "-p",
            text,
            "-c",
            n_ctx,
            "-ctk",
            "f32",
            "-ctv",
            "f32",
            "--json",
        )
        self.assertEqual(code, 0)
        result = json.loads(out)
        n_chunks = len(ids) // n_ctx
        self.assertGreater(n_chunks, 2)
        self.assertEqual(
            (result["chunks"], result["n_predicted"]), (n_chunks, n_chunks * (n_ctx // 2 - 1))
        )
        nll = []
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "out.npy"
            for i in range(n_chunks):
                chunk = ids[i * n_ctx : (i + 1) * n_ctx]
                output("logits", "-m", TINY, "--ids", ",".join(map(str, chunk)), "-o", path)
                logits = numpy.load(path).astype(numpy.float64)
                for j in range(n_ctx // 2, n_ctx - 1):
                    row = logits[j] - logits[j].max()
                    nll.append(numpy.log(numpy.exp(row).sum()) - row[chunk[j + 1]])
        self.assertAlmostEqual(result["perplexity"], float(numpy.exp(numpy.mean(nll))), places=4)
        error = numpy.exp(numpy.mean(nll)) * numpy.std(nll) / numpy.sqrt(len(nll) - 1)
        self.assertAlmostEqual(result["error"], float(error), places=4)

    def test_perplexity_takes_no_more_tokens_at_once_than_the_batch(self):
        """A step has halves of several chunks, or 5 tokens of one."""
        given = ("perplexity", "-m", TINY, "-p", "the world is in the hello and " * 20, "-c", 32)
        found = set()
        for options, n_chunks in ((("-ub", 32), 2), (("-ub", 5), 1), (("-b", 5), 1)):
            code, out, err = output(*given, *options, "--json")
            self.assertEqual((code, err.split("]")[0]), (0, f"[{n_chunks}"), err)
            found.add(json.loads(out)["perplexity"])
        self.assertEqual(len(found), 1, found)

    def test_bench_reports_what_it_ran(self):
        code, out, err = output(
            "bench",
            "-m",
            TINY,
            "-p",
            "16",
            "-n",
            "4",
            "-d",
            "0,8",
            "-r",
            "2",
            "-t",
            "1",
            "-o",
            "json",
        )
        self.assertEqual(code, 0, err)
        tests = [(test["n_prompt"], test["n_gen"], test["n_depth"]) for test in json.loads(out)]
        self.assertEqual(tests, [(16, 0, 0), (0, 4, 0), (16, 0, 8), (0, 4, 8)])
        for test in json.loads(out):
            self.assertGreater(test["avg_ts"], 0)
            self.assertEqual((test["n_threads"], len(test["samples_ns"])), (1, 2))
            self.assertGreater(test["limit_bytes_per_second"], 1e8)
            self.assertIsNone(test["limit_bf16_flops_per_second"])

    def test_products_of_bf16_need_weights_of_bf16(self):
        unused, slow = "--products bf16 changes nothing", "this CPU multiplies f32 as fast"
        for products, quantize, note in (
            ("bf16", "", unused),
            ("bf16", "bf16", slow),  # scalar kernels have no instruction for bf16
            ("f32", "", ""),
        ):
            given = ["-m", TINY, "-p", "hello", "--products", products]
            with tempfile.TemporaryDirectory() as cache:
                code, _, err = output(
                    "logits",
                    *given,
                    "-o",
                    f"{cache}/logits.npy",
                    *(["--quantize", quantize] if quantize else []),
                    env={"XDG_CACHE_HOME": cache, "LIMPID_ISA": "scalar"},
                )
            self.assertEqual(code, 0, err)
            for each in (unused, slow):
                self.assertEqual(each in err, each == note, err)

    def test_bench_says_where_the_time_goes(self):
        given = ("bench", "-m", TINY, "-p", "16", "-n", "4", "-r", "2", "-t", "1", "--ops")
        code, out, err = output(*given, "-o", "json")
        self.assertEqual(code, 0, err)
        for test in json.loads(out):
            ops = {op["op"]: op for op in test["ops"]}
            n_steps = 2 * (4 if test["n_gen"] else 1)
            self.assertEqual(ops["embed"]["n_calls"], n_steps)
            self.assertEqual(ops["attention"]["n_calls"], 2 * n_steps)
            seconds = sum(op["seconds"] for op in test["ops"])
            self.assertLess(seconds, sum(test["samples_ns"]) / 1e9)
            self.assertGreater(seconds, 0.3 * sum(test["samples_ns"]) / 1e9)
        code, out, err = output(*given)
        self.assertEqual(code, 0, err)
        self.assertEqual(out.count("| between ops |"), 2)
        code, out, err = output(*given, "-o", "csv")
        self.assertEqual((code, out), (1, ""))
        self.assertIn("choose -o md or json", err)

    def test_inspect_knows_every_tensor(self):
        report = json.loads(output("inspect", "-m", TINY, "--json")[1])
        self.assertEqual(len(report["tensors"]), 20)
        self.assertEqual(
            report["parameters"], sum(int(numpy.prod(t["shape"])) for t in report["tensors"])
        )
        self.assertEqual(report["model"]["n_layers"], 2)
        self.assertEqual(len(report["metadata"]["tokenizer.ggml.tokens"]["value"]), 299)
        self.assertEqual(len(report["model"]["rope"]["inverse_frequencies"]), 8)
        self.assertIsNone(report["problem"])
        code, text, _ = output("inspect", TINY)
        self.assertEqual(code, 0)
        self.assertIn("(299 items)", text)
        self.assertIn(f"{TINY.stat().st_size / 1e3:.1f} kB in 1 file, ", text)
        report = json.loads(output("inspect", "-m", VOCABULARY, "--json")[1])
        self.assertEqual((report["model"], report["tensors"]), (None, []))
        text = output("inspect", TINY, "--products", "f16")[1]
        self.assertIn("not runnable: products of f16 are for GPUs", text)
        self.assertIn("name another device (--device)", text)
        broken = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory())) / "broken.gguf"
        template = b"{% for message"
        broken.write_bytes(TINY.read_bytes().replace(template, b"{% fox message", 1))
        self.assertIn("the chat template does not parse: ", output("inspect", broken)[1])

    def test_inspect_has_the_size_of_weights_that_are_in_no_file(self):
        given = ("inspect", TINY, "--quantize", "q8_0")
        n_bytes = json.loads(output(*given, "--json")[1])["tensor_bytes"]
        self.assertIn(f", quantised, {n_bytes / 1e3:.1f} kB of tensors, ", output(*given)[1])

    def test_devices(self):
        report = json.loads(output("devices", "--json", env={"LIMPID_ISA": "scalar"})[1])
        self.assertEqual(report["isa"], "scalar")
        self.assertIn("scalar", report["isas"])
        self.assertGreater(report["cores"], 0)


if __name__ == "__main__":
    limpid_program.main()
