"""What scripts may rely on, on a model of 169 kB (tools/golden/make_tiny_chat_gguf.py): outputs, exit
codes, errors of one line."""

import json
import pathlib
import re
import signal
import subprocess
import tempfile
import unittest

import limpid_program
import numpy
from limpid_program import outcome as output

DATA = pathlib.Path(__file__).resolve().parents[1] / "data" / "cli"
TINY = DATA / "tiny_chat.gguf"
VOCABULARY = DATA / "vocabulary.gguf"
# Runs until it is stopped.
ENDLESS = ["run", "-m", TINY, "-p", "the", "-n", "-1", "--ignore-eos", "--context-shift"]


def start(*arguments: object, **options) -> subprocess.Popen:
    command = [str(limpid_program.PROGRAM), *map(str, arguments)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **options)


class FrontDoor(unittest.TestCase):
    def test_help_and_version_are_no_errors(self):
        code, out, err = output("--help")
        self.assertEqual((code, err), (0, ""))
        commands = (
            "chat run inspect tokenize detokenize template logits perplexity bench pull devices"
        )
        for name in commands.split():
            self.assertIn(f"\n  {name} ", out)
            code, help_text, err = output(name, "--help")
            self.assertEqual((code, err), (0, ""))
            self.assertIn("examples:\n  ", help_text)
        code, out, _ = output("--version")
        self.assertEqual(code, 0)
        self.assertRegex(out, r"^limpid \d+\.\d+\.\d+\n$")

    def refused(self, *arguments: object, words: list[str], stdin: str = "") -> None:
        code, out, err = output(*arguments, stdin=stdin)
        self.assertEqual((code, out), (1, ""), err)
        self.assertRegex(err, r"\Alimpid: [^\n]+\n\Z")
        for word in words:
            self.assertIn(word, err)

    def test_errors_are_one_line_that_says_what_to_do(self):
        self.refused("tokenise", words=["tokenize"])
        self.refused("run", "-m", TINY, "--tmep", "0", words=["--tmep", "--temp"])
        self.refused("run", "-m", TINY, "-n", "many", words=["many"])
        self.refused("run", "-p", "the", words=["-m FILE", "pull"])
        self.refused("run", "-m", "no/such.gguf", words=["no/such.gguf"])
        self.refused("run", "-m", "smollm", words=["smollm2"])
        self.refused("inspect", "-m", DATA, words=["folder", "tiny_chat.gguf"])
        self.refused("run", "-m", VOCABULARY, "-p", "the", words=[])
        self.refused("run", "-m", TINY, "-p", "the", "--device", "gpu", words=["gpu", "reference"])
        self.refused("run", "-m", TINY, "-p", "the", "-ctk", "q4_0", words=["q4_0", "f16"])
        self.refused("run", "-m", TINY, "-p", "the", "-l", "x", words=["-l: 'x'", "15043+1.5"])
        self.refused("tokenize", "-m", TINY, "--special", "<|nope|>", words=["<|nope|>"])
        self.refused("logits", "-m", TINY, "--ids", "1", words=["-o"])
        self.refused("logits", "-m", TINY, "-o", "/dev/null", words=["--ids"])
        self.refused("detokenize", "-m", TINY, "--ids", "9999", words=["9999"])

    def test_a_device_that_is_not_there(self):
        limpid_program.require_device("opencl")
        asked = ("run", "-m", TINY, "-p", "the", "--device", "opencl:99")
        self.refused(*asked, words=["unknown device 99: devices are counted from 0, and the last"])

    def test_layers_on_two_devices(self):
        two = ("--device", "reference", "--gpu-layers", "1")
        code, out, _ = output("inspect", "--plan", "-m", TINY, "--json", *two)
        plan = json.loads(out)
        self.assertEqual((code, plan["problem"], plan["tokens_per_second"]), (0, None, None))
        first, second = plan["devices"]
        self.assertEqual(
            (first["device"], first["first_layer"], first["end_layer"]), ("reference", 0, 1)
        )
        self.assertEqual((second["device"], second["first_layer"]), ("cpu", 1))
        self.assertEqual(plan["allocated"], first["allocated"] + second["allocated"])
        code, out, _ = output("inspect", "--plan", "-m", TINY, *two)
        self.assertRegex(out, r"0 to 0 +reference .* unknown\n +1 to \d+ +cpu .* GB/s\n")
        code, out, _ = output("inspect", "--plan", "-m", TINY)
        self.assertRegex(out, r"at most [\d.]+ tokens a second")
        code, text, log = output("run", "-m", TINY, "-p", "the", "-n", "4", "--temp", "0", *two)
        self.assertEqual(code, 0)
        self.assertIn("layers 0 to 0 on reference: weights", log)
        _, alone, log = output(
            "run", "-m", TINY, "-p", "the", "-n", "4", "--temp", "0", "-ngl", "0"
        )
        self.assertEqual(text, alone)
        self.assertNotIn("layers", log)
        self.refused("run", "-m", TINY, "-p", "the", "-ngl", "some", words=["-ngl: 'some'"])

    def test_the_plan_of_two_devices_says_how_fast_they_can_be(self):
        limpid_program.require_device("opencl")
        given = ("-p", "the", "-n", "4", "--device", "opencl", "--gpu-layers", "1")
        limpid_program.run("run", "-m", TINY, *given)  # may compile kernels, which takes long
        for options, is_measured in (((), False), (("-v",), True)):
            code, _, log = output("run", "-m", TINY, *given, *options)
            self.assertEqual(code, 0, log)
            self.assertIn("layers 0 to 0 on opencl: weights", log)
            self.assertEqual(bool(re.search(r"at most [\d.]+ tokens a second", log)), is_measured)

    def test_the_plan_is_of_the_types_that_a_run_would_have(self):
        plans = [
            json.loads(output("inspect", "--plan", "--json", *given)[1])["devices"][0]
            for given in (
                ("--config", "smollm2-135m"),
                ("--config", "smollm2-135m", "--quantize", "q8_0"),
            )
        ]
        # 134,515,008 parameters, of which 35,136 of the norms stay f32; 34 bytes for 32 of the others.
        self.assertEqual(plans[0]["bytes_per_token"], (134515008 - 35136) * 4)
        self.assertEqual(plans[1]["bytes_per_token"], (134515008 - 35136) * 34 // 32)
        with tempfile.TemporaryDirectory() as folder:
            f32 = pathlib.Path(folder) / "f32.gguf"
            q8 = pathlib.Path(folder) / "q8.gguf"
            options = ("--allow-requantize", "--dtype")
            self.assertEqual(output("convert", TINY, str(f32), *options, "f32")[0], 0)
            self.assertEqual(output("quantize", str(f32), str(q8), "q8_0")[0], 0)
            plan = ("inspect", "--plan", "--json", "-m")
            for given in ((str(q8),), (str(f32), "--quantize", "q8_0")):
                code, out, _ = output(*plan, *given)
                devices = json.loads(out)["devices"]
                for part in devices:
                    del part["available"], part["bytes_per_second"]
                if given[0] == str(q8):
                    expected = devices
                self.assertEqual(devices, expected)
        for given in (["--weights"], ["--quantize", "q8_0"], ["--lora", "poet"]):
            self.refused("inspect", "--config", "gpt2", *given, words=[given[0]])

    def test_context_overflow_names_both_counts(self):
        self.refused("run", "-m", TINY, "-c", "16", "-p", "z" * 40, words=["40", "16"])
        ids = ",".join(["1"] * 20)
        with tempfile.TemporaryDirectory() as folder:
            out = pathlib.Path(folder) / "x.npy"
            self.refused(
                "logits", "-m", TINY, "-c", "16", "--ids", ids, "-o", out, words=["20", "16"]
            )
            self.assertFalse(out.exists())

    def test_truncated_file_names_file_and_place(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "cut.gguf"
            path.write_bytes(TINY.read_bytes()[:100_000])
            self.refused("run", "-m", path, "-p", "x", words=["cut.gguf"])

    def test_full_disk_is_an_error(self):
        if not pathlib.Path("/dev/full").exists():
            self.skipTest("needs /dev/full")
        command = f"'{limpid_program.PROGRAM}' tokenize -m '{TINY}' -p hello > /dev/full"
        done = subprocess.run(["sh", "-c", command], capture_output=True, timeout=60)
        self.assertEqual(done.returncode, 1)
        self.assertIn(b"limpid: cannot write", done.stderr)


class Tokens(unittest.TestCase):
    TEXT = "hello world <|im_end|> é"

    def ids(self, *arguments: object, stdin: str = "") -> list[int]:
        code, out, err = output("tokenize", "-m", TINY, *arguments, stdin=stdin)
        self.assertEqual((code, err), (0, ""))
        return json.loads(out)

    def test_every_source_gives_the_same_ids(self):
        expected = self.ids("-p", self.TEXT)
        with tempfile.NamedTemporaryFile("w") as file:
            file.write(self.TEXT)
            file.flush()
            self.assertEqual(self.ids("-f", file.name), expected)
        self.assertEqual(self.ids("-", stdin=self.TEXT), expected)
        self.assertEqual(self.ids(stdin=self.TEXT), expected)
        code, out, _ = output("tokenize", TINY, "--jsonl", stdin=json.dumps(self.TEXT) + '\n"x"\n')
        self.assertEqual(code, 0)
        self.assertEqual(
            [json.loads(line) for line in out.splitlines()], [expected, self.ids("-p", "x")]
        )

    def test_special_tokens_only_where_allowed(self):
        end = 297
        self.assertNotIn(end, self.ids("-p", self.TEXT))
        self.assertIn(end, self.ids("-p", self.TEXT, "--special"))
        self.assertIn(end, self.ids("-p", self.TEXT, "--special", "<|im_end|>"))
        self.assertNotIn(end, self.ids("-p", self.TEXT, "--special", "<|im_start|>"))

    def test_pieces_and_count(self):
        _, out, _ = output("tokenize", "-m", TINY, "-p", "hello world", "--pieces")
        lines = [line.split("\t") for line in out.splitlines()]
        self.assertEqual("".join(json.loads(piece) for _, piece in lines), "hello world")
        self.assertEqual([int(token) for token, _ in lines], self.ids("-p", "hello world"))
        _, out, _ = output("tokenize", "-m", TINY, "-p", "hello world", "--count")
        self.assertEqual(out, f"{len(lines)}\n")

    def test_token_tree_says_how_far_it_is_from_the_models_own_tokens(self):
        algorithm = ("--tokenizer-algorithm", "token-tree")
        code, ids, err = output("tokenize", "-m", TINY, "-p", self.TEXT, *algorithm)
        self.assertEqual(code, 0)
        n_exact = len(self.ids("-p", self.TEXT))
        self.assertIn(f"{len(json.loads(ids))} tokens; exact BPE has {n_exact}", err)
        self.assertEqual(output("detokenize", "-m", TINY, stdin=ids)[1], self.TEXT)
        self.assertEqual(
            self.ids("-p", self.TEXT, "--tokenizer-algorithm", "bpe"), self.ids("-p", self.TEXT)
        )

    def test_a_vocabulary_is_enough(self):
        code, out, _ = output("tokenize", "-m", VOCABULARY, "-p", self.TEXT)
        self.assertEqual((code, json.loads(out)), (0, self.ids("-p", self.TEXT)))

    def test_there_and_back(self):
        text = "hello wörld\n\t 123 \U0001f30a"
        _, ids, _ = output("tokenize", "-m", TINY, "-p", text)
        self.assertEqual(output("detokenize", "-m", TINY, stdin=ids)[1], text)
        self.assertEqual(output("detokenize", "-m", TINY, "--ids", ids.strip())[1], text)
        _, out, _ = output("detokenize", "-m", TINY, "--jsonl", stdin=ids)
        self.assertEqual(json.loads(out), text)

    def test_a_bad_line_is_named(self):
        for command, good, bad in (
            ("tokenize", '"a"', "[1]"),
            ("tokenize --refuse-special", '"a"', '"<|im_end|>"'),
            ("detokenize", "1", "999"),
        ):
            code, _, err = output(*command.split(), "-m", TINY, "--jsonl", stdin=f"{good}\n{bad}\n")
            self.assertEqual((code, err.count("line 2: ")), (1, 1), err)


class Runs(unittest.TestCase):
    def test_json(self):
        code, out, _ = output("run", "-m", TINY, "-p", "hello", "-n", "12", "--temp", "0", "--json")
        answer = json.loads(out)
        self.assertEqual(code, 0)
        self.assertEqual(answer["prompt"], "hello")
        self.assertEqual(len(answer["ids"]), 12)
        self.assertEqual(answer["stop_reason"], "length")
        timings = answer["timings"]
        self.assertEqual(timings["n_generated"], 12)
        # The first token comes with the prompt, and the time of generation is that of the others.
        self.assertAlmostEqual(
            timings["tokens_per_second"] * timings["generation_seconds"], 11, places=6
        )
        _, text, _ = output("run", "-m", TINY, "-p", "hello", "-n", "12", "--temp", "0")
        self.assertEqual(text, answer["text"] + "\n")

    def test_one_token_has_no_speed(self):
        asked = ("run", "-m", TINY, "-p", "hello", "-n", "1", "--ignore-eos")
        code, out, err = output(*asked, "--json")
        self.assertEqual(code, 0, err)
        self.assertIsNone(json.loads(out)["timings"]["tokens_per_second"])
        self.assertRegex(err, r"prompt .* tokens/s; answer 1 token\n\Z")

    def test_several_prompts_answer_as_alone(self):
        prompts = ["hello", "the world is", "a"]
        options = ["-n", "16", "--temp", "0.9", "--seed", "5", "--json", "--ignore-eos"]
        alone = [
            json.loads(output("run", "-m", TINY, "-p", prompt, *options)[1]) for prompt in prompts
        ]
        flags = [flag for prompt in prompts for flag in ("-p", prompt)]
        together = json.loads(output("run", "-m", TINY, *flags, *options)[1])
        for one, other in zip(alone, together, strict=True):
            self.assertEqual(one["ids"], other["ids"])

    def test_several_answers_that_outgrow_the_context(self):
        model = ("-m", TINY, "-c", 16, "--ignore-eos", "--temp", 0)
        prompts = ("-p", "a", "-p", "the heim")
        code, out, err = output("run", *model, *prompts, "-n", 40)
        self.assertEqual((code, len(err.splitlines())), (1, 1), err)
        self.assertRegex(err, "text and answer outgrow the context of 16 tokens: give -c [0-9]+, ")
        self.assertEqual(len(out.splitlines()), 2, out)  # as far as they came
        enough = re.search("-c ([0-9]+)", err)[1]
        code, _, err = output("run", *model, *prompts, "-n", 40, "-c", enough, "--no-timings")
        self.assertEqual((code, err), (0, ""))
        code, out, err = output("run", *model, *prompts, "-n", 40, "--json")
        self.assertEqual((code, out), (1, ""))
        self.assertIn("outgrow", err)
        code, out, err = output("run", *model, "-p", "a", "-p", "z" * 40, "-n", 4)
        self.assertEqual((code, out), (1, ""))
        self.assertIn("the sequence has 40 tokens and the context holds 16: shorten", err)

    def test_seed_repeats_and_matters(self):
        def ids(seed: int) -> list[int]:
            options = ["-n", "24", "--temp", "1.5", "--seed", str(seed), "--json", "--ignore-eos"]
            return json.loads(output("run", "-m", TINY, "-p", "the", *options)[1])["ids"]

        self.assertEqual(ids(1), ids(1))
        self.assertNotEqual(ids(1), ids(2))

    def test_escapes_only_when_asked(self):
        plain = json.loads(output("run", "-m", TINY, "-p", r"a\nb", "-n", "1", "--json")[1])
        escaped = json.loads(output("run", "-m", TINY, "-p", r"a\nb", "-n", "1", "-e", "--json")[1])
        self.assertEqual(plain["prompt"], r"a\nb")
        self.assertEqual(escaped["prompt"], "a\nb")

    def test_environment_names_the_model(self):
        env = {"LLAMA_ARG_MODEL": str(TINY), "LLAMA_ARG_N_PREDICT": "3"}
        code, out, _ = output("run", "-p", "the", "--json", "--ignore-eos", env=env)
        self.assertEqual((code, len(json.loads(out)["ids"])), (0, 3))
        env = {"LLAMA_ARG_HF_REPO": "no/such-repository"}
        for model in (["-m", TINY], [TINY]):
            code, _, err = output("run", *model, "-p", "the", "-n", "1", env=env)
            self.assertEqual(code, 0, err)

    def test_interrupt_ends_with_130(self):
        process = start(*ENDLESS)
        self.assertTrue(process.stdout.read(1))
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)
        self.assertEqual(process.returncode, 130)

    def test_a_reader_that_leaves_is_no_error(self):
        process = start(*ENDLESS)
        self.assertTrue(process.stdout.read(10))
        process.stdout.close()
        self.assertIn(process.wait(timeout=60), (0, -signal.SIGPIPE))
        self.assertEqual(process.stderr.read(), b"")
        process.stderr.close()


class Logits(unittest.TestCase):
    IDS = "1,2,3,50,60,70,297,8,9,10,11"

    def logits(self, *options: object) -> numpy.ndarray:
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "out.npy"
            code, out, err = output("logits", "-m", TINY, "--ids", self.IDS, "-o", path, *options)
            self.assertEqual((code, out), (0, ""), err)
            return numpy.load(path)

    def test_shape_and_positions(self):
        every = self.logits()
        self.assertEqual((every.dtype, every.shape), (numpy.float32, (11, 299)))
        some = self.logits("--positions", "5,0,-1,5")
        self.assertTrue(numpy.array_equal(some, every[[5, 0, 10, 5]]))

    def test_chunks_and_threads_change_no_bit(self):
        every = self.logits()
        for options in (["-b", 1], ["-b", 3], ["-b", 4, "-t", 1], ["-t", 3]):
            self.assertTrue(numpy.array_equal(self.logits(*options), every), options)

    def test_reference_is_near(self):
        numpy.testing.assert_allclose(
            self.logits("--device", "reference"), self.logits(), atol=1e-3
        )

    def test_a_prompt_is_its_ids(self):
        ids = json.loads(output("tokenize", "-m", TINY, "-p", "hello")[1])
        with tempfile.TemporaryDirectory() as folder:
            a, b = pathlib.Path(folder) / "a.npy", pathlib.Path(folder) / "b.npy"
            output("logits", "-m", TINY, "-p", "hello", "-o", a)
            output("logits", "-m", TINY, "--ids", ",".join(map(str, ids)), "-o", b)
            self.assertTrue(numpy.array_equal(numpy.load(a), numpy.load(b)))


class Templates(unittest.TestCase):
    MESSAGES = [{"role": "user", "content": "Hi"}]

    def render(self, *options: object) -> str:
        messages = json.dumps(self.MESSAGES)
        code, out, err = output("template", "--messages", "-", *options, stdin=messages)
        self.assertEqual(code, 0, err)
        return out

    def test_the_models_own(self):
        turn = "<|im_start|>user\nHi<|im_end|>\n"
        self.assertEqual(self.render("-m", TINY), turn + "<|im_start|>assistant\n")
        self.assertEqual(self.render("-m", TINY, "--no-generation-prompt"), turn)

    def test_a_file_with_tokens_and_variables(self):
        with tempfile.NamedTemporaryFile("w", suffix=".jinja") as file:
            file.write("{{ bos_token }}{{ messages[0].content }}{{ mood }}{{ eos_token }}")
            file.flush()
            options = ["--chat-template-file", file.name, "--bos", "<s>", "--eos", "</s>"]
            variables = ["--chat-template-kwargs", '{"mood": "!"}']
            self.assertEqual(self.render(*options, *variables), "<s>Hi!</s>")

    def test_the_time_may_be_that_of_the_epoch(self):
        with tempfile.NamedTemporaryFile("w", suffix=".jinja") as file:
            file.write("{{ strftime_now('%Y-%m-%d %H:%M') }}")
            file.flush()
            for seconds, date in ((0, "1970-01-01 00:00"), (86400, "1970-01-02 00:00")):
                options = ("--chat-template-file", file.name, "--now", str(seconds))
                self.assertEqual(self.render(*options), date)

    def test_what_cannot_be_rendered_is_an_error(self):
        with tempfile.NamedTemporaryFile("w", suffix=".jinja") as file:
            file.write("{{ raise_exception('no such luck') }}")
            file.flush()
            code, out, err = output(
                "template", "--chat-template-file", file.name, "--messages", "-", stdin="[]"
            )
            self.assertEqual((code, out), (1, ""))
            self.assertIn("no such luck", err)


if __name__ == "__main__":
    limpid_program.main()
