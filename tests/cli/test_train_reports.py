"""`limpid train`: what a run writes about itself: report.html and the histograms."""

import re

import limpid_program
from training_runs import Training


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
