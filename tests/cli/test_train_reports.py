"""`limpid train`: what a run says about itself: its plan, report.html and the histograms."""

import json
import re

import limpid_program
from training_runs import TEXT, Training


class Plans(Training):
    def test_the_plan_leaves_nothing(self):
        text = self.fine(*self.command("a", "--plan"))
        for label in ("model ", "memory ", "data ", "steps ", "time "):
            self.assertIn("\n" + label, "\n" + text)
        plan = json.loads(self.fine(*self.command("a", "--plan", "--json")))
        n = plan["parameters"]
        memory = plan["memory"]
        self.assertEqual(
            [memory["weights"], memory["gradients"], memory["moments"]], [4 * n, 4 * n, 8 * n]
        )
        self.assertEqual(plan["tokens_per_step"], 4 * 32)
        self.assertEqual(plan["tokens"] + plan["held_out_tokens"], len(TEXT))
        more = self.folder / "more.txt"
        more.write_text(TEXT[:100])
        given = self.command("a", "--plan", "--json")
        given[given.index("--data") + 2 : given.index("--data") + 2] = [more]
        plan = json.loads(self.fine(*given, "--data", more))
        self.assertEqual(plan["tokens"] + plan["held_out_tokens"], len(TEXT) + 200)
        self.assertFalse((self.folder / "a").exists())
        self.fine(*self.command("a"))
        self.assertEqual(
            json.loads(self.fine("train", "--resume", self.folder / "a", "--plan", "--json"))[
                "memory"
            ]["activations"],
            memory["activations"],
        )

    def test_a_run_that_does_not_fit_is_refused(self):
        for out, options in (("a", []), ("b", ["--plan"])):
            command = self.command(out, "--batch-size", "3000000", "--seq-len", "64", *options)
            code, _, err = limpid_program.outcome(*command)
            self.assertEqual(code, 1)
            self.assertRegex(
                err, r"needs [0-9.]+ GB of memory \(weights .* are available: .*batches"
            )
            self.assertFalse((self.folder / out).exists())


class Reports(Training):
    def report(self, out: str) -> str:
        return (self.folder / out / "report.html").read_text()

    def test_a_page_that_needs_nothing_else(self):
        self.fine(*self.command("a"))
        page = self.report("a")
        self.assertNotRegex(page, r"<script|javascript:|src=|@import|url\(")
        outside = page.replace("xmlns='http://www.w3.org/2000/svg'", "")
        self.assertNotIn("http://", outside)
        self.assertNotIn("https://", outside)
        for title in ("Loss", "Learning rate", "Norm of the gradient", "Speed"):
            self.assertIn(f"<title>{title}</title>", page)
        for part in ("Weights of attn_q.weight", "Gradients of token_embd.weight", "batch-size"):
            self.assertIn(part, page)
        self.assertIn(self.samples("a")[-1]["text"].splitlines()[0], page)
        steps = [line["step"] for line in self.histograms("a")]
        self.assertEqual(steps, [0, 10, 20, 30])

    def test_it_comes_with_each_checkpoint(self):
        """It has the step of the checkpoint in it, although no evaluation is due."""
        every = ["--save-every", "10", "--eval-every", "0", "--sample-every", "0"]
        process = self.start(*self.command("a", *every, "--steps", "1000000"))
        self.wait_for_step("a", 12)
        process.kill()
        process.communicate()
        step = int(re.search(r"Step (\d+) of 1000000", self.report("a")).group(1))
        self.assertEqual(step % 10, 0)

    def test_skipped_steps_are_in_it(self):
        options = ["--dtype", "f16", "--optimizer", "sgd", "--lr", "6", "--clip", "0"]
        self.fine(*self.command("a", *options, "--steps", "4", "--eval-every", "1"))
        self.assertTrue(self.log("a")[-1]["skipped"])
        self.assertIn("Step 4 of 4", self.report("a"))

    def test_histograms_count_every_number(self):
        self.fine(*self.command("a", "--steps", "1", "--freeze", "ffn"))
        for line in self.histograms("a"):
            self.assertEqual(sum(line["weights"]["blk.0.ffn_up.weight"][1:]), 32 * 48)
            self.assertEqual(sum(line["gradients"]["blk.1.attn_q.weight"][1:]), 32 * 32)
            self.assertNotIn("blk.0.ffn_up.weight", line["gradients"])

    def test_gradients_in_f16_have_their_own_sizes(self):
        """In memory they are multiplied with the scale of the loss."""
        means = []
        for dtype in ("f32", "f16"):
            self.fine(*self.command(dtype, "--dtype", dtype, "--steps", "0"))
            lowest, *counts = self.histograms(dtype)[0]["gradients"]["blk.0.ffn_up.weight"]
            total = sum(i * count for i, count in enumerate(counts, lowest))
            means.append(total / sum(counts))
        self.assertAlmostEqual(means[0], means[1], delta=0.2)

    def test_text_of_models_is_only_text(self):
        hostile = "</pre><script>alert(1)</script>{{ 7 * 7 }}&'"
        options = ["--tokenizer", "bytes", "--sample-prompt", hostile, "--steps", "1"]
        self.fine(*self.command("<b>a", *options))
        page = self.report("<b>a")
        self.assertNotIn("<script", page)
        self.assertNotIn("<b>", page)
        self.assertIn(
            "&lt;/pre&gt;&lt;script&gt;alert(1)&lt;/script&gt;{{ 7 * 7 }}&amp;&#39;", page
        )


if __name__ == "__main__":
    limpid_program.main()
