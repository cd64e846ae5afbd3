"""`limpid run --trace`: how a token is computed, op by op."""

import json
import pathlib
import struct
import tempfile
import unittest

import limpid_program

STORIES = limpid_program.DATA / "stories260K"
MODEL = ("-m", STORIES / "stories260K.bin", "--tokenizer", STORIES / "tok512.bin")
TEXT = "Once upon a"


def run(*options: object) -> str:
    return limpid_program.run("run", *MODEL, "-p", TEXT, "--trace", *options).decode()


def lines(*options: object) -> list[dict]:
    return [json.loads(line) for line in run(*options, "--json").splitlines()]


class Trace(unittest.TestCase):
    def test_two_heads_of_a_layer_are_two_breaks(self):
        *_, first, second = lines("--break", "L1.H0", "--break", "L1.H2")
        self.assertEqual((first["break"], second["break"]), ("L1.H0", "L1.H2"))

    def test_a_text_longer_than_the_context_prints_no_title(self):
        code, out, err = limpid_program.outcome("run", *MODEL, "-p", TEXT, "--trace", "-c", 3)
        self.assertEqual((code, out), (1, ""))
        self.assertIn("the context holds 3", err)

    def test_each_op_is_a_line(self):
        traced = lines("--values", 0)
        ops = [(each["layer"], each["op"], each["place"]) for each in traced[:-1]]
        self.assertEqual(ops[0], (None, "embed", "embedding"))
        self.assertEqual(
            ops[-3:-1], [(None, "select_outputs", None), (None, "rms_norm", "output_norm")]
        )
        self.assertIn((4, "attention", "attn_heads"), ops)
        self.assertIn((0, "linear attn_v", "value"), ops)
        self.assertIn((0, "rope", "query"), ops)
        # The numbers are those of the values; the norm is of the last token's row.
        for each in traced[:-1]:
            values = each["values"]
            self.assertEqual(len(values), each["shape"][1])
            self.assertEqual((each["min"], each["max"]), (min(values), max(values)))
            self.assertAlmostEqual(each["norm"], sum(x * x for x in values) ** 0.5, 4)
            self.assertAlmostEqual(each["mean"], sum(values) / len(values), 5)
            is_with_one_before = each["op"] in ("linear attn_k", "linear attn_v", "linear ffn_up")
            self.assertEqual(each["seconds"] is None, is_with_one_before, each["op"])
        self.assertEqual(traced[-1]["next"][0]["text"], " time")

    def test_the_logits_are_those_of_the_model(self):
        """A trace changes nothing: `limpid logits` gives the same bits."""
        size = lines("--op", "logits")[0]["shape"][1]
        found = []
        for cache in ((), ("-ctk", "f32"), ("-ctk", "f16"), ("-ctv", "f16")):
            with tempfile.TemporaryDirectory() as folder:
                path = pathlib.Path(folder) / "logits.npy"
                options = ("-p", TEXT, "--positions", "-1", "-o", path, *cache)
                limpid_program.run("logits", *MODEL, *options)
                content = path.read_bytes()
            expected = list(struct.unpack(f"<{size}f", content[-4 * size :]))
            found.append(lines("--op", "logits", "--values", 0, *cache)[0]["values"])
            self.assertEqual(found[-1], expected, cache)
        self.assertEqual(found[0], found[1])
        self.assertNotEqual(found[0], found[2])
        self.assertNotEqual(found[0], found[3])

    def test_layers_and_ops_are_chosen(self):
        chosen = lines("--layer", "1,3", "--op", "attn_q", "--op", "swiglu")[:-1]
        self.assertEqual(
            [(each["layer"], each["op"]) for each in chosen],
            [(layer, op) for layer in (1, 3) for op in ("linear attn_q", "swiglu")],
        )

    def test_a_break_ends_the_trace_and_prints_tensors(self):
        *traced, last = lines("--break", "L1.attention", "--show", "L0.H2", "--show", "L4")
        self.assertEqual((traced[-1]["layer"], traced[-1]["place"]), (1, "attn_output"))
        self.assertEqual(last["break"], "L1.attention")
        self.assertEqual(
            [(each["name"], each["shape"]) for each in last["tensors"]],
            [("L1.attention", [4, 64]), ("L0.H2", [4, 8])],
        )
        self.assertEqual(last["tensors"][0]["values"][3][:4], traced[-1]["values"])
        # The same places under the names of `verify`.
        self.assertEqual(lines("--break", "blk.1.attn_output")[-1]["tensors"][0]["shape"], [4, 64])
        text = run("--break", "L1.attn_output", "--break", "logits")
        self.assertIn("break at logits: the end\n", text)
        self.assertNotIn("next:", text)
        self.assertNotIn("\x1b", text)

    def test_mistakes(self):
        for options, message in (
            (("--break", "L9.mlp"), "the model has layers 0 to 4"),
            (("--break", "L1.nothing"), "attn_heads"),
            (("--break", "query"), "which layer? write L2.query"),
            (("--break", "L1.logits"), "logits belongs to no layer"),
            (("--break", "L9.attn_output"), "L9.attn_output: the model has layers 0 to 4\n"),
            (("--break", "L9.attention"), "part 'L9.attention': the model has layers 0 to 4\n"),
            (("--show", "L1"), "--show requires --break"),
            (("--layer", "7"), "the model has layers 0 to 4"),
            (("--op", "attn_x"), "--op attn_x: unknown op, matrix or activation; did you"),
            (("--op", "nosuch"), "(known are embed, "),
        ):
            with self.subTest(options=options):
                code, _, errors = limpid_program.outcome(
                    "run", *MODEL, "-p", TEXT, "--trace", *options
                )
                self.assertEqual(code, 1)
                self.assertIn(message, errors)

    def test_options_of_a_trace_without_one(self):
        for options in (("--layer", 0), ("--op", "rope"), ("--break", "L1"), ("--values", 3)):
            code, output, errors = limpid_program.outcome("run", *MODEL, "-p", TEXT, *options)
            self.assertEqual((code, output), (1, ""))
            self.assertIn(f"{options[0]} requires --trace", errors)


if __name__ == "__main__":
    limpid_program.main()
