"""The program with models that were trained: stories260K, SmolLM2 where `limpid pull smollm2` has put it, and
MiniMind2 where the shared data lies beside the clone."""

import json
import pathlib
import subprocess
import unittest

import limpid_program


def smollm2() -> pathlib.Path:
    if not limpid_program.SMOLLM2.exists():
        raise unittest.SkipTest("needs SmolLM2 (limpid pull smollm2)")
    return limpid_program.SMOLLM2


PLAIN = ["--temp", "0", "--repeat-penalty", "1"]  # the likeliest token, whatever pull recommends


class SmolLm2(unittest.TestCase):
    def test_what_pull_recommends_is_used_where_no_flag_says_otherwise(self):
        def answer(*options: str) -> dict:
            question = ("-st", "--json", "-n", "400", "-p", "What is 2+2?")
            return limpid_program.run_json("chat", "-m", smollm2(), *question, *options)

        recommended = answer()
        self.assertEqual(recommended["stop_reason"], "end_of_text")
        flags = ("--temp", "0", "--repeat-penalty", "1.1")
        self.assertEqual(recommended["ids"], answer(*flags)["ids"])
        # Without it this question is answered in a circle, which is noticed.
        self.assertEqual(answer(*PLAIN, "-n", "2000")["stop_reason"], "repetition")

    def test_it_knows_the_capital_of_france(self):
        options = [*PLAIN, "-st", "-n", "32", "-p", "What is the capital of France?"]
        self.assertEqual(
            limpid_program.run("chat", "-m", smollm2(), *options),
            b"The capital of France is Paris.\n",
        )

    def test_its_short_name(self):
        smollm2()
        ids = json.loads(limpid_program.run("tokenize", "smollm2", "-p", "Hello world"))
        self.assertEqual(ids, [19556, 905])

    def test_pull_knows_that_it_is_there(self):
        smollm2()
        done = subprocess.run(
            [str(limpid_program.PROGRAM), "pull", "smollm2"], capture_output=True, timeout=120
        )
        self.assertEqual(done.stdout.decode().strip(), str(limpid_program.SMOLLM2))
        self.assertIn(b"already", done.stderr)

    def test_a_second_turn_continues_the_first(self):
        turns = b"What is the capital of France?\nIs it large?\n"
        out = limpid_program.run("chat", "-m", smollm2(), *PLAIN, "-n", "24", "--json", stdin=turns)
        answers = [json.loads(line) for line in out.splitlines()]
        self.assertEqual(answers[0]["text"], "The capital of France is Paris.")
        self.assertIn("Paris", answers[1]["text"])
        self.assertGreater(answers[1]["timings"]["n_reused"], 20)


class Stories(unittest.TestCase):
    def test_greedy_text_is_llama2c_s(self):
        model = limpid_program.DATA / "stories260K" / "stories260K.bin"
        case = json.loads((limpid_program.DATA / "stories260K" / "greedy.json").read_text())
        n_tokens = len(case["greedy_tokens"])
        self.assertGreaterEqual(n_tokens, 200)
        out = limpid_program.run(
            "run",
            "-m",
            model,
            "--temp",
            "0",
            "-n",
            n_tokens,
            "-ctk",
            "f32",
            "-ctv",
            "f32",
            "--json",
        )
        self.assertEqual(json.loads(out)["ids"], case["greedy_tokens"])
        out = limpid_program.run("run", "-m", model, "--temp", "0", "-n", 200)
        self.assertTrue(case["text"].startswith(out.decode()[:-1]))


class MiniMind2(unittest.TestCase):
    """A Hugging Face folder as downloaded: safetensors, tokenizer.json, a chat template of its own."""

    def test_it_knows_the_capital_of_france(self):
        folder = limpid_program.shared("models", "minimind2-small")
        out = limpid_program.run(
            "chat", "-m", folder, "-st", "--temp", "0", "-p", "What is the capital of France?"
        )
        self.assertEqual(out, b"The capital of France is Paris.\n")


if __name__ == "__main__":
    limpid_program.main()
