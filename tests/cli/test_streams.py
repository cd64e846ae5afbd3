"""Standard input and output in place of files, and what is said where a file is the wrong one."""

import io
import json
import pathlib
import signal
import subprocess
import tempfile
import time
import unittest

import limpid_program
import numpy
import safetensors.numpy
from mistakes import broken_models

TINY = broken_models.TINY
GREEDY = ["-n", "8", "--temp", "0", "--no-timings"]


class StandardInput(unittest.TestCase):
    def test_run_continues_it(self):
        expected = limpid_program.run("run", "-m", TINY, "-p", "hello", *GREEDY)
        self.assertEqual(limpid_program.run("run", "-m", TINY, *GREEDY, stdin=b"hello"), expected)
        self.assertEqual(
            limpid_program.run("run", "-m", TINY, "-", *GREEDY, stdin=b"hello"), expected
        )
        # A prompt that is given leaves standard input to whoever runs the program in a loop.
        given = ["run", "-m", TINY, "-p", "hello", *GREEDY]
        self.assertEqual(limpid_program.run(*given, stdin=b"other"), expected)

    def test_perplexity_reads_it(self):
        text = "the world is in the hello and " * 20
        options = ["-m", TINY, "-c", "32"]
        expected = limpid_program.run("perplexity", *options, "-p", text)
        for dash in ([], ["-"]):
            out = limpid_program.run("perplexity", *options, *dash, stdin=text.encode())
            self.assertEqual(out, expected)


class StandardOutput(unittest.TestCase):
    def test_logits(self):
        given = ["logits", "-m", TINY, "--ids", "1,2,3", "--positions", "2,0"]
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "out.npy"
            limpid_program.run(*given, "-o", path)
            done = subprocess.run(
                [limpid_program.PROGRAM, *given, "-o", "-"], capture_output=True, cwd=folder
            )
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(done.stdout, path.read_bytes())
            self.assertEqual([path.name for path in pathlib.Path(folder).iterdir()], ["out.npy"])
            self.assertEqual(numpy.load(io.BytesIO(done.stdout)).shape, (2, 299))

    def test_pictures(self):
        with tempfile.TemporaryDirectory() as folder:
            picture = pathlib.Path(folder) / "rope.svg"
            limpid_program.run("inspect", TINY, "--rope-svg", picture)
            out = limpid_program.run("inspect", TINY, "--rope-svg", "-")
            self.assertEqual(out, picture.read_bytes())
            graph = pathlib.Path(folder) / "graph.svg"
            limpid_program.run("microgpt", "--graph", graph)
            self.assertEqual(limpid_program.run("microgpt", "--graph", "-"), graph.read_bytes())


class Streams(unittest.TestCase):
    def test_messages_that_nobody_takes_end_nothing(self):
        given = f"'{limpid_program.PROGRAM}' run -m '{TINY}' -p hello -n 4 --temp 0"
        outcomes = []
        for errors in ("2>/dev/null", "2>/dev/full", "2>&-"):
            for command in (given, f"{given} --no-such-option"):
                done = subprocess.run(
                    ["sh", "-c", f"{command} {errors}"], stdout=subprocess.PIPE, timeout=60
                )
                outcomes.append((done.returncode, done.stdout))
        self.assertEqual([code for code, _ in outcomes[:2]], [0, 1])
        self.assertEqual(outcomes[2:], outcomes[:2] * 2)

    def test_a_closed_stream_does_not_become_a_file(self):
        with tempfile.TemporaryDirectory() as folder:
            for closed in ("<&- 2>&-", "<&- >&- 2>&-"):
                command = f"'{limpid_program.PROGRAM}' quantize '{TINY}' out.gguf q4_0 {closed}"
                done = subprocess.run(["sh", "-c", command], cwd=folder, timeout=60)
                self.assertEqual(done.returncode, 0)
                limpid_program.run("tokenize", "-m", f"{folder}/out.gguf", "-p", "hello")

    def test_a_program_whose_output_nobody_reads_can_be_interrupted(self):
        endless = ["run", "-m", TINY, "-p", "the", "--ignore-eos", "--context-shift", "-t", "1"]
        with tempfile.NamedTemporaryFile("w") as file:
            file.write("hello world " * 100_000)
            file.flush()
            pieces = ["tokenize", "-m", TINY, "--pieces", "-f", file.name]
            for command, n_signals in ((pieces, 1), (endless, 2)):
                process = subprocess.Popen(
                    [limpid_program.PROGRAM, *command],
                    stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE,
                    preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
                )
                time.sleep(2)  # the pipe is full then
                for _ in range(n_signals):
                    process.send_signal(signal.SIGINT)
                    time.sleep(0.2)
                self.assertEqual(process.wait(timeout=20), 130)
                process.communicate()


class Defaults(unittest.TestCase):
    def test_the_context_of_perplexity_is_what_its_help_says(self):
        text = limpid_program.run("perplexity", "--help").decode()
        context = " ".join(text.split("--ctx-size")[1].split("\n  -")[0].split())
        self.assertIn("(default: 512)", context)
        out = limpid_program.run("perplexity", "-m", TINY, "--json", stdin=b"hello world " * 2000)
        self.assertEqual(json.loads(out)["n_ctx"], 512)


class FullContext(unittest.TestCase):
    """Advice that is followed works."""

    def refused(self, *options: str) -> str:
        command = [limpid_program.PROGRAM, "run", "-m", TINY, "--ignore-eos", *options]
        done = subprocess.run(command, capture_output=True, text=True, errors="replace")
        self.assertEqual(done.returncode, 1)
        last = done.stderr.splitlines()[-1]
        self.assertTrue(last.startswith("limpid: "), last)
        return last

    def followed(self, *options: str) -> int:
        given = ["run", "-m", TINY, "--ignore-eos", "--json", *options]
        return json.loads(limpid_program.run(*given))["timings"]["n_generated"]

    def test_a_text_that_does_not_fit(self):
        text = ["-p", "z" * 300, "-n", "20"]
        for shift in ([], ["--context-shift"]):
            message = self.refused(*text, *shift)
            self.assertNotIn("shift", message)
            n_ctx = message.split("-c ")[1].split(",")[0]
            self.assertEqual(self.followed(*text, *shift, "-c", n_ctx), 20)

    def test_an_answer_that_does_not_fit(self):
        text = ["-p", "z" * 250, "-n", "50"]
        message = self.refused(*text)
        n_ctx = message.split("-c ")[1].split(",")[0]
        for advice in (["-c", n_ctx], ["--context-shift"]):
            self.assertIn(advice[0], message)
            self.assertEqual(self.followed(*text, *advice), 50)
        self.assertIn("-n -2", message)
        self.assertLess(self.followed(*text[:2], "-n", "-2"), 50)
        self.assertNotIn("-c ", self.refused("-p", "z" * 250))  # no context is enough for -n -1

    def test_no_context_is_advised_that_the_model_has_no_positions_for(self):
        model = limpid_program.DATA / "golden" / "gpt2" / "tanh_tied.gguf"
        report = json.loads(limpid_program.run("inspect", model, "--json"))
        n_positions = report["model"]["n_ctx_train"]
        ids = ",".join(["1"] * (n_positions + 11))
        command = [limpid_program.PROGRAM, "logits", "-m", model, "--ids", ids, "-o", "-"]
        for n_ctx in (n_positions, n_positions - 1):
            done = subprocess.run([*command, "-c", str(n_ctx)], capture_output=True, text=True)
            self.assertEqual((done.returncode, done.stdout), (1, ""))
            advice = f"holds {n_ctx} (the model has {n_positions} positions): shorten the text\n"
            self.assertTrue(done.stderr.endswith(advice), done.stderr)


class LogProbabilities(unittest.TestCase):
    """In the shape of OpenAI's API: choices[].logprobs."""

    def test_they_are_those_of_the_logits(self):
        given = [
            "run",
            "-m",
            TINY,
            "-p",
            "hello",
            "-n",
            "4",
            "--temp",
            "0",
            "--json",
            "--ignore-eos",
        ]
        answer = json.loads(limpid_program.run(*given, "--logprobs", "3"))
        prompt = json.loads(limpid_program.run("tokenize", "-m", TINY, "-p", "hello"))
        content = answer["logprobs"]["content"]
        self.assertEqual([token["id"] for token in content], answer["ids"])
        rows = limpid_program.logits(TINY, prompt + answer["ids"], "-ctk", "f16", "-ctv", "f16")
        for i, token in enumerate(content):
            row = rows[len(prompt) - 1 + i].astype(numpy.float64)
            expected = row - row.max() - numpy.log(numpy.exp(row - row.max()).sum())
            self.assertAlmostEqual(token["logprob"], expected[token["id"]], places=9)
            best = numpy.argsort(-expected, kind="stable")[:3]
            self.assertEqual([other["id"] for other in token["top_logprobs"]], best.tolist())
            for other in token["top_logprobs"]:
                self.assertAlmostEqual(other["logprob"], expected[other["id"]], places=9)
        text = b"".join(bytes(token["bytes"]) for token in content)
        self.assertEqual(text.decode(errors="replace"), answer["text"])
        self.assertNotIn("logprobs", json.loads(limpid_program.run(*given)))

    def test_none_of_the_others_when_none_are_wanted(self):
        given = [
            "run",
            "-m",
            TINY,
            "-p",
            "a",
            "-n",
            "2",
            "--json",
            "--ignore-eos",
            "--logprobs",
            "0",
        ]
        content = json.loads(limpid_program.run(*given))["logprobs"]["content"]
        self.assertEqual([token["top_logprobs"] for token in content], [[], []])


class Inspect(unittest.TestCase):
    """A model of eleven layers, whose file has layer 10 before layer 2."""

    def setUp(self):
        holder = tempfile.TemporaryDirectory()
        self.addCleanup(holder.cleanup)
        self.folder = pathlib.Path(holder.name)
        source = broken_models.QWEN3
        config = json.loads((source / "config.json").read_text())
        config |= {"num_hidden_layers": 11, "layer_types": ["full_attention"] * 11}
        (self.folder / "config.json").write_text(json.dumps(config))
        tensors = safetensors.numpy.load_file(source / "model.safetensors")
        layer = {k: v for k, v in tensors.items() if k.startswith("model.layers.0.")}
        rest = {k: v for k, v in tensors.items() if not k.startswith("model.layers.")}
        for i in range(11):
            rest |= {k.replace(".0.", f".{i}.", 1): v.copy() for k, v in layer.items()}
        safetensors.numpy.save_file(rest, self.folder / "model.safetensors")
        self.names = set(rest)

    def test_names_are_the_files_own_and_layers_in_order_of_number(self):
        text = limpid_program.run("inspect", self.folder).decode()
        tensors = text.split("\ntensors\n")[1].split("\n\n")[0].splitlines()
        shown = [line.split()[0] for line in tensors]
        self.assertLessEqual(set(shown), self.names)
        self.assertIn("model.embed_tokens.weight", shown)
        layers = [int(name.split(".")[2]) for name in shown if ".layers." in name]
        self.assertEqual(sorted(set(layers)), list(range(11)))
        self.assertEqual(layers, sorted(layers))
        report = json.loads(limpid_program.run("inspect", self.folder, "--json"))
        by_name = {each["name"]: each["name_in_file"] for each in report["tensors"]}
        self.assertEqual(by_name["blk.10.attn_q.weight"], "model.layers.10.self_attn.q_proj.weight")
        self.assertEqual(list(by_name.values()), shown)

    def test_numbers_are_those_of_the_file(self):
        expected = {}
        broken_models.write_gguf(
            self.folder / "eps.gguf", "llama", {"a.eps": 1e-5, "a.third": 1 / 3}
        )
        for key, value in {"a.eps": 1e-5, "a.third": 1 / 3}.items():
            expected[key] = str(numpy.float32(value))
        text = limpid_program.run("inspect", self.folder / "eps.gguf").decode()
        report = json.loads(limpid_program.run("inspect", self.folder / "eps.gguf", "--json"))
        for key, shown in expected.items():
            self.assertIn(f"  {key} (f32) = {shown}\n", text)
            self.assertEqual(report["metadata"][key]["value"], float(shown))

    def test_text_has_numbers_that_json_lacks(self):
        path = self.folder / "eps.gguf"
        values = {"a.inf": float("inf"), "a.less": float("-inf"), "a.nan": float("nan")}
        broken_models.write_gguf(path, "llama", values)
        text = limpid_program.run("inspect", path).decode()
        report = json.loads(limpid_program.run("inspect", path, "--json"))
        for key, value in values.items():
            self.assertIn(f"  {key} (f32) = {value}\n", text)
            self.assertIsNone(report["metadata"][key]["value"])


if __name__ == "__main__":
    limpid_program.main()
