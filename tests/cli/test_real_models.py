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

    def test_the_parts_of_its_logits_sum_to_them(self):
        """The file is in 4 bits; what the page of docs/insight.md says about this text."""
        text = "The capital of France is Paris. The capital of Germany is Berlin. The capital of Italy is"
        found = limpid_program.run_json(
            "explain", "-m", smollm2(), "-p", text, "--json", "--no-measure"
        )
        for parts in found["parts"]:
            heads = sum(map(sum, parts["heads"]))
            total = heads + sum(parts["attention_rest"]) + sum(parts["mlps"]) + parts["rounding"]
            total += parts["embedding"] + parts["norm_bias"]
            self.assertLess(abs(total - parts["logit"]), 1e-4)
            self.assertLess(abs(parts["sum"] - parts["logit"]), 1e-4)
            self.assertLess(abs(parts["rounding"]), 0.1)
        self.assertEqual(found["parts"][-1]["token"]["text"], " Rome")
        first = [lens["predictions"][-1]["likeliest"][0]["text"] for lens in found["lens"]]
        self.assertEqual([layer for layer, text in enumerate(first, -1) if text == " Rome"], [29])

    def test_its_induction_heads_are_found(self):
        """And without them it does not go on with a list that begins once more."""
        words = " apple seven table green house river"
        heads = "L17.H3,L17.H4,L17.H5,L18.H6"
        found = limpid_program.run_json(
            "explain", "-m", smollm2(), "-p", f"{words}{words.removesuffix(' river')}", "--ablate",
            heads, "--json", "--no-measure",
        )  # fmt: skip
        best = sorted(found["attention"], key=lambda head: -head["habits"]["after_same"])[:4]
        names = {f"L{head['layer']}.H{head['head']}" for head in best}
        self.assertEqual(names, set(heads.split(",")))
        river = next(change for change in found["what_if"]["changes"] if change["text"] == " river")
        self.assertGreater(river["before"], 0.15)
        self.assertLess(river["after"], 0.03)

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
