"""`limpid explain` in a terminal, as SVG and as JSON, and `limpid inspect --weights`."""

import json
import pathlib
import tempfile
import unittest
import xml.etree.ElementTree as ElementTree

import limpid_program

STORIES = limpid_program.DATA / "stories260K"
MODEL = ("-m", STORIES / "stories260K.bin", "--tokenizer", STORIES / "tok512.bin")
SVG = "{http://www.w3.org/2000/svg}"
TEXT = "Once upon a time, there was a little girl named Lily. One day, Lily"


def explain(*options: object) -> str:
    return limpid_program.run("explain", *MODEL, *options).decode()


class Explain(unittest.TestCase):
    def test_the_report_says_what_was_expected(self):
        report = explain("-p", TEXT)
        self.assertRegex(report, r'0\.00  " time" +" time" 100 %')
        self.assertRegex(report, r"the token before +L\d\.H\d 0\.\d\d")
        self.assertRegex(
            report, r"the logit of .* after the last token is (-?\d+\.\d\d)\d\d, the sum of"
        )

    def test_a_part_is_removed(self):
        report = explain("-p", TEXT, "--ablate", "L3.H1,L2.mlp")
        self.assertIn("without L3.H1,L2.mlp: the runs part in layer 2; mean surprise", report)
        self.assertRegex(report, r"bits a token, mean divergence \d\.\d{3} bits\n")
        found = json.loads(explain("-p", TEXT, "--ablate", "L3.H1,L2.mlp", "--json"))["what_if"]
        self.assertEqual(len(found["token_changes"]), len(found["divergence_bits"]))
        self.assertEqual(found["token_changes"][-1], found["changes"])
        self.assertAlmostEqual(
            found["mean_divergence_bits"],
            sum(found["divergence_bits"]) / len(found["divergence_bits"]),
        )

    def test_another_model_stands_beside(self):
        found = json.loads(explain("-p", TEXT, "--beside", STORIES / "stories260K.bin", "--json"))
        self.assertEqual(max(found["beside"]["divergence_bits"]), 0)
        self.assertEqual(found["beside"]["changes"], [])
        self.assertEqual(found["beside"]["first_layer"], found["n_layers"])
        self.assertGreater(found["times"][0]["seconds"], 0)
        self.assertGreater(found["memory"]["weight_bytes"], 260_000)
        self.assertGreater(found["memory"]["cache_bytes"], 0)

    def test_an_equal_model_changes_nothing(self):
        report = explain("-p", TEXT, "--beside", STORIES / "stories260K.bin")
        self.assertIn("after the last token: no probability changes by 0.05 %", report)

    def test_an_answer_is_part_of_the_text(self):
        found = json.loads(explain("-p", TEXT, "-n", 5, "--json"))
        self.assertEqual(len(found["tokens"]), found["n_prompt"] + 5)
        for position in range(found["n_prompt"] - 1, len(found["tokens"]) - 1):
            best = found["next"][position]["likeliest"][0]["id"]
            self.assertEqual(best, found["tokens"][position + 1]["id"])

    def test_pictures(self):
        for what in ("surprise", "lens", "parts", "part-heads", "sizes", "heads", "L1.H2"):
            self.assertTrue(explain("-p", TEXT, "--svg", what).startswith("<svg"), what)
        for what in ("distance", "divergence"):
            picture = explain("-p", TEXT, "--ablate", "L3.H1", "--svg", what)
            self.assertIn("without L3.H1", picture)

    def test_mistakes(self):
        for options, message in (
            ((), "which text? give one of -p, -f and --ids"),
            (("-p", "a", "--ids", "1"), "which text? give one of -p, -f and --ids"),
            (("-p", "a", "--svg", "lense"), "no picture 'lense'"),
            (
                ("-p", "a", "--svg", "distance"),
                "--svg distance draws two runs: give --ablate, --patch",
            ),
            (("-p", "a", "--json", "--svg", "lens"), "give one of --json and --svg"),
            (("-p", "a", "--ablate", "L9.mlp"), "part 'L9.mlp': the model has layers 0 to 4"),
            (("-p", "a", "--ablate", "mlp"), "is not of the form L3, L3.attn, L3.mlp or L3.H5"),
            (("-p", "a", "--patch", "b"), "patch which part? give --at L6"),
            (("-p", "a", "--patch", "b c d e", "--at", "L1"), "say which to patch, --positions -1"),
            (("-p", "a", "--steer", "b"), "steer away from what? give --minus TEXT"),
        ):
            code, _, errors = limpid_program.outcome("explain", *MODEL, *options)
            self.assertEqual(code, 1, options)
            self.assertIn(message, errors)

    def test_steering_moves_the_answer(self):
        found = json.loads(explain("-p", TEXT, "--steer", " happy", "--minus", " sad", "--json"))
        self.assertEqual(found["what_if"]["first_layer"], 2)


class Times(unittest.TestCase):
    def test_each_product_is_held_against_the_limits_of_the_machine(self):
        measured = json.loads(explain("-p", TEXT, "--json"))["times"]
        shares = {each["op"]: each["share_of_limit"] for each in measured}
        self.assertIsNone(shares["attention"])
        for op, share in shares.items():
            if op.startswith("linear"):
                self.assertGreater(share, 0, op)
        times = json.loads(explain("-p", TEXT, "--json", "--no-measure"))["times"]
        self.assertNotIn("share_of_limit", times[0])


class Weights(unittest.TestCase):
    def test_statistics_of_each_tensor(self):
        report = limpid_program.run_json("inspect", *MODEL, "--weights", "--json")
        tensors = {each["name"]: each for each in report["tensors"]}
        matrix = tensors["blk.0.attn_q.weight"]
        self.assertEqual(sum(matrix["histogram"]), matrix["shape"][0] * matrix["shape"][1])
        self.assertEqual(matrix["singular_values"], sorted(matrix["singular_values"], reverse=True))
        self.assertGreater(matrix["stable_rank"], 1)
        self.assertEqual(tensors["output_norm.weight"]["singular_values"], [])

    def test_two_checkpoints(self):
        with tempfile.TemporaryDirectory() as folder:
            other = pathlib.Path(folder) / "q8.gguf"
            limpid_program.run("convert", STORIES / "stories260K.bin", other, "--dtype", "q8_0")
            report = limpid_program.run("inspect", *MODEL, "--weights", "--beside", other).decode()
            self.assertIn("difference", report.splitlines()[0])
            tensors = limpid_program.run_json(
                "inspect", *MODEL, "--weights", "--beside", other, "--json"
            )["tensors"]
            picture = limpid_program.run(
                "inspect", *MODEL, "--weights", "--beside", other, "--svg", "-"
            )
        differences = [
            each["difference"] for each in tensors if each["name"].endswith("ffn_up.weight")
        ]
        # A line for each tensor, and a spectrum of 6 values for each matrix.
        texts = [each.text for each in ElementTree.fromstring(picture).iter(SVG + "text")]
        self.assertIn("difference", " ".join(texts))
        for each in tensors:
            self.assertIn(each["name"], texts)
        marks = list(ElementTree.fromstring(picture).iter(SVG + "circle"))
        n_matrices = sum(len(each["shape"]) == 2 for each in tensors)
        self.assertEqual(len(marks), 6 * n_matrices)
        for difference in differences:
            self.assertLess(difference, 0.02)
            self.assertGreater(difference, 0.0005)


if __name__ == "__main__":
    limpid_program.main()
