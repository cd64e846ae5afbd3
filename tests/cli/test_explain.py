"""`limpid explain` in a terminal, as SVG and as JSON, and `limpid inspect --weights`."""

import json
import pathlib
import sys
import tempfile
import unittest
import xml.etree.ElementTree as ElementTree

import gguf
import limpid_program
import numpy

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "insight"))
from test_explain_page import hostile_vocabulary  # noqa: E402

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
        self.assertIn(
            "without L3.H1,L2.mlp: the runs first differ in layer 2; mean surprise", report
        )
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
        self.assertIn("after the last token: no probability changes by 0.05 % or more", report)

    def test_the_second_model_is_as_its_file_has_it(self):
        """What the options change, and the tokenizer, belong to the first one."""
        options = ("-p", TEXT, "--beside", STORIES / "stories260K.bin", "--json")
        changed = json.loads(explain(*options, "--rope-scaling", "linear:2"))
        self.assertGreater(changed["beside"]["mean_divergence_bits"], 0)
        plain = json.loads(explain(*options))
        self.assertEqual(
            changed["beside"]["mean_surprise_bits"][1], plain["beside"]["mean_surprise_bits"][0]
        )
        tiny = limpid_program.DATA / "cli" / "tiny_chat.gguf"
        code, _, errors = limpid_program.outcome("explain", *MODEL, "-p", TEXT, "--beside", tiny)
        self.assertEqual(code, 1)
        self.assertIn("the models have vocabularies of 512 and 299 tokens", errors)

    def test_an_answer_is_part_of_the_text(self):
        found = json.loads(explain("-p", TEXT, "-n", 5, "--json"))
        self.assertEqual(len(found["tokens"]), found["n_prompt"] + 5)
        for position in range(found["n_prompt"] - 1, len(found["tokens"]) - 1):
            best = found["next"][position]["likeliest"][0]["id"]
            self.assertEqual(best, found["tokens"][position + 1]["id"])

    def test_an_answer_ends_with_the_context(self):
        options = ("-c", 32, "-n", 2**62, "--no-measure", "--json")
        found = json.loads(explain("-p", "Once upon a time", *options))
        self.assertEqual(len(found["tokens"]), 32)

    def test_pictures(self):
        for what in ("surprise", "lens", "parts", "part-heads", "sizes", "heads", "L1.H2"):
            self.assertTrue(explain("-p", TEXT, "--svg", what).startswith("<svg"), what)
        for what in ("distance", "divergence"):
            picture = explain("-p", TEXT, "--ablate", "L3.H1", "--svg", what)
            self.assertIn("without L3.H1", picture)

    def test_a_chosen_token_against_another(self):
        one, other = json.loads(explain("-p", TEXT, "--json"))["tokens"][2:4]
        options = ("-p", TEXT, "--token", one["text"], "--against", other["text"])
        for parts in json.loads(explain(*options, "--json"))["parts"]:
            self.assertEqual((parts["token"], parts["against"]), (one, other))
            self.assertAlmostEqual(parts["sum"], parts["logit"], delta=1e-4)
        named = f'the logit of "{one["text"]}" minus that of "{other["text"]}" after the last token'
        self.assertIn(named, explain(*options))

    def test_parts_of_as_many_positions_as_are_asked_for(self):
        for n in (1, 3):
            self.assertEqual(
                len(json.loads(explain("-p", TEXT, "--parts", n, "--json"))["parts"]), n
            )

    def test_control_tokens_only_where_they_are_asked_for(self):
        def n_tokens(*options: object) -> int:
            return len(json.loads(explain("-p", "<s>a", *options, "--json"))["tokens"])

        self.assertLess(n_tokens("--special"), n_tokens())

    def test_a_chat_is_explained_as_it_was_sent(self):
        tiny = limpid_program.DATA / "cli" / "tiny_chat.gguf"
        for system in ((), ("-sys", "Be kind."), ("-sys", "")):
            given = ("-m", tiny, "-p", "hello", *system)
            sent = limpid_program.run_json("chat", *given, "-st", "-n", 1, "--json")
            explained = limpid_program.run_json(
                "explain", *given, "--chat", "--no-measure", "--json"
            )
            self.assertEqual(explained["n_prompt"], sent["timings"]["n_prompt"], system)
            text = "".join(each["text"] for each in explained["tokens"])
            words = "You are a helpful assistant." if system == () else system[1]
            self.assertEqual(f"system\n{words}<" in text, words != "", text)

    def test_mistakes(self):
        for options, message in (
            (("-p", "a", "--token", TEXT), "give a text of one token"),
            (("--ids", "1,2", "--against", "512"), "no token 512: the vocabulary has 512 tokens"),
            (("--ids", "1,99999999"), "token id 99999999 is not in the vocabulary [0, 512)"),
            (("--ids", "1,2", "--chat"), "--ids are tokens already"),
            (("-p", "a", "--chat"), "has no chat template: leave --chat out"),
            (("-p", "a", "-sys", "b"), "-sys requires --chat"),
            (("-p", "a", "-ctk", "f16"), "unknown option -ctk"),
            ((), "which text? give one of -p, -f and --ids"),
            (("-p", "a", "--ids", "1"), "which text? give one of -p, -f and --ids"),
            (("-p", "a", "--svg", "lense"), "no picture 'lense'"),
            (
                ("-p", "a", "--svg", "distance"),
                "--svg distance draws two runs: give --ablate, --patch",
            ),
            (("-p", "a", "--svg", "part-heads", "--parts", 0), "and --parts 0 attributes none"),
            (("-p", "a", "--json", "--svg", "lens"), "give one of --json and --svg"),
            (("-p", "a", "--ablate", "L9.mlp"), "part 'L9.mlp': the model has layers 0 to 4"),
            (("-p", "a", "--ablate", "mlp"), "is not of the form L3, L3.attn, L3.mlp or L3.H5"),
            (("-p", "a", "--patch", "b"), "patch which part? give --at L6"),
            (("-p", "a", "--patch", "b c d e", "--at", "L1"), "say which to patch, --positions -1"),
            (("-p", "a", "--steer", "b"), "steer away from what? give --minus TEXT"),
            (("-p", "a", "--at", "L1"), "--at says what --patch or --steer changes"),
            (("-p", "a", "--minus", "b"), "--minus requires --steer"),
            (("-p", "a", "--strength", 2), "--strength requires --steer"),
            (("-p", "a", "--positions", 0), "--positions requires --patch"),
            (("-p", "a", "--ablate", ",L3"), "--ablate: an entry of ',L3' is empty"),
            (("-p", "a", "--ablate", "L3, "), "--ablate: an entry of 'L3, ' is empty"),
            (("-p", "a", "--ablate", ""), "--ablate '': the value is empty"),
            (("-p", "a", "--ablate", "L1.query"), "is not of the form L3, L3.attn"),
        ):
            code, _, errors = limpid_program.outcome("explain", *MODEL, *options)
            self.assertEqual(code, 1, options)
            self.assertIn(message, errors)

    def test_empty_texts_are_named(self):
        ids = ("--ids", "1,2")
        for options, option in (
            (("--patch", "", "--at", "L1"), "--patch"),
            (("--steer", "", "--minus", "3"), "--steer"),
            (("--steer", "3", "--minus", ""), "--minus"),
        ):
            code, _, errors = limpid_program.outcome("explain", *MODEL, *ids, *options)
            self.assertEqual(code, 1, options)
            self.assertIn(f"{option}: the text is empty, give at least one token", errors)

    def test_what_is_wrong_is_said_before_the_work(self):
        """The text is longer than the model's context, which only the evaluation notices."""
        text = ("-p", TEXT * 100)
        for options, message in (
            (("--ablate", "L99.H0"), "part 'L99.H0': the model has layers 0 to 4"),
            (("--svg", "L99.H0"), "part 'L99.H0': the model has layers 0 to 4"),
            (("--svg", "L1.mlp"), "no picture of L1.mlp"),
            (("--patch", "b", "--at", "L99"), "part 'L99': the model has layers 0 to 4"),
            (("--patch", "b", "--at", "L1"), "say which to patch, --positions -1"),
        ):
            code, _, errors = limpid_program.outcome("explain", *MODEL, *text, *options)
            self.assertEqual(code, 1, options)
            self.assertIn(message, errors)

    def test_parts_have_the_names_of_places_too(self):
        one = explain("-p", TEXT, "--ablate", "L3.attn,L2.mlp,L1")
        for names in (
            "blk.3.attn_output,L2.ffn_output,blk.1.ffn_residual",
            " L3.attention, L2.mlp ,L1 ",
        ):
            other = explain("-p", TEXT, "--ablate", names)
            self.assertEqual(one.split("runs first differ")[1], other.split("runs first differ")[1])

    def test_no_text_of_a_model_reaches_a_terminal(self):
        """Neither its tokens nor the user's texts, whatever they hold, not through a pipe either."""
        with tempfile.TemporaryDirectory() as folder:
            vocabulary = hostile_vocabulary(
                pathlib.Path(folder) / "tok.bin", (b"\x1b[2J\r\xc2\x9b31m",)
            )
            model = ("-m", STORIES / "stories260K.bin", "--tokenizer", vocabulary)
            for command, shown in (
                (("explain", *model, "--ids", "1,511,300"), r'"\u001b[2J\r\u009b31m"'),
                (
                    ("explain", *model, "-p", "\r", "--patch", "\x1b", "--at", "L2"),
                    r'from "\u001b"',
                ),
                (("run", *model, "-p", "a\x1b", "--trace"), r'last one, "\u001b"'),
            ):
                report = limpid_program.run(*command).decode()
                self.assertFalse(set("\x1b\r\u009b") & set(report), command)
                self.assertIn(shown, report)

    def test_a_byte_of_a_character_is_escaped_once(self):
        with tempfile.TemporaryDirectory() as folder:
            vocabulary = hostile_vocabulary(pathlib.Path(folder) / "tok.bin", (b"\xe2\n",))
            model = ("-m", STORIES / "stories260K.bin", "--tokenizer", vocabulary)
            given = ("explain", *model, "--ids", "1,511,300")
            report = limpid_program.run(*given).decode()
            plain, part, _ = limpid_program.run_json(*given, "--no-measure", "--json")["tokens"]
        self.assertIn(r' "\xe2\n" ', report)
        self.assertEqual(part, {"id": 511, "text": r"\xe2\x0a", "bytes": [0xE2, 0x0A]})
        self.assertNotIn("bytes", plain)

    def test_one_is_not_many(self):
        _, _, log = limpid_program.outcome("explain", *MODEL, "--ids", "1")
        self.assertIn("1 token explained in ", log)
        traced = limpid_program.run("run", *MODEL, "-p", "", "--trace", "--layer", 0).decode()
        self.assertTrue(traced.startswith("1 token in one step"), traced[:40])
        self.assertIn(": 1 token</title>", explain("--ids", "1", "--no-measure", "-o", "-"))
        self.assertIn("over 1 token</title>", explain("--ids", "1", "--svg", "sizes"))

    def test_a_token_is_not_held_against_itself(self):
        """The model expects " time" after "Once upon a"."""
        text = ("-p", "Once upon a")
        for options, message in (
            (("--against", " time"), '--against " time": this is the token that the model expects'),
            (("--token", " a", "--against", " a"), "--token and --against are the same token"),
        ):
            code, _, error = limpid_program.outcome("explain", *MODEL, *text, *options)
            self.assertEqual(code, 1)
            self.assertIn(message, error)
        explain(*text, "--token", " time", "--against", " a")
        explain(*text, "--against", " time", "--parts", 0)

    def test_steering_moves_the_answer(self):
        found = json.loads(explain("-p", TEXT, "--steer", " happy", "--minus", " sad", "--json"))
        self.assertEqual(found["what_if"]["first_layer"], 2)

    def test_too_strong_a_direction_is_an_error(self):
        given = ("explain", *MODEL, "-p", TEXT, "--steer", "a", "--minus", "b", "--strength")
        for strength, problem in (
            ("1e30", "--strength 1e+30: so much of the direction is too large"),
            ("1e60", "--strength: '1e60' is too large"),
        ):
            code, _, errors = limpid_program.outcome(*given, strength)
            self.assertEqual(code, 1)
            self.assertIn(problem, errors)


class Times(unittest.TestCase):
    def test_each_product_is_held_against_the_limits_of_the_machine(self):
        measured = json.loads(explain("-p", TEXT, "--json"))["times"]
        shares = {each["op"]: each["share_of_limit"] for each in measured}
        self.assertIsNone(shares["rms_norm"])
        for op, share in shares.items():
            if op.startswith("linear") or op == "attention":
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

    def test_tensors_of_integers_are_left_out(self):
        with tempfile.TemporaryDirectory() as folder:
            model = pathlib.Path(folder) / "unknown.gguf"
            writer = gguf.GGUFWriter(model, "unknown")
            writer.add_tensor("blk.0.table", numpy.zeros((2, 3), numpy.int32))
            writer.add_tensor("blk.0.matrix", numpy.ones((2, 3), numpy.float32))
            writer.write_header_to_file()
            writer.write_kv_data_to_file()
            writer.write_tensors_to_file()
            writer.close()
            report = limpid_program.run_json("inspect", "-m", model, "--weights", "--json")
        self.assertEqual([each["name"] for each in report["tensors"]], ["blk.0.matrix"])

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

    def beside(self, model: pathlib.Path, other: pathlib.Path, *options: object) -> bytes:
        return limpid_program.run("inspect", "-m", model, "--weights", "--beside", other, *options)

    def test_rows_in_another_order_are_the_same_weights(self):
        golden = limpid_program.DATA / "golden" / "hugging_face"
        for name in ("llama_biases", "partial_rotary"):
            with tempfile.TemporaryDirectory() as folder:
                other = pathlib.Path(folder) / "model.gguf"
                limpid_program.run("convert", golden / name, other)
                for pair in ((golden / name, other), (other, golden / name)):
                    for each in json.loads(self.beside(*pair, "--json"))["tensors"]:
                        self.assertEqual(each["difference"], 0, (name, each["name"]))

    def test_a_tensor_of_another_shape_is_there(self):
        llama = limpid_program.DATA / "golden" / "llama"
        report = self.beside(llama / "gqa_untied.gguf", llama / "mha_tied.gguf").decode()
        self.assertRegex(report, r"token_embd.weight .*  of another shape, \[\d+,\d+\]\n")
        self.assertRegex(report, r"\noutput.weight .*  not there\n")


if __name__ == "__main__":
    limpid_program.main()
