"""Models under tests/data/golden and the logits that transformers gave for them in f64."""

import json
import pathlib
import unittest

import limpid_program
import numpy

FOLDER = limpid_program.ROOT / "tests" / "data" / "golden"
TOLERANCE = 1e-4


def check(test: unittest.TestCase, family: str, least_cases: int, *options: object) -> None:
    """The weights are F32, so an executor must agree to 1e-4 of the logits' spread; a wrong row order, rotation or
    bias is off by its whole spread."""
    cases: list[pathlib.Path] = sorted((FOLDER / family).glob("*.json"))
    test.assertGreaterEqual(len(cases), least_cases)
    for case in cases:
        with test.subTest(case=case.stem):
            golden = json.loads(case.read_text())
            positions = ",".join(map(str, golden["positions"]))
            model = case.with_suffix(".gguf")
            logits = limpid_program.logits(model, golden["ids"], "--positions", positions, *options)
            expected = numpy.array(golden["logits"])
            test.assertEqual(logits.shape, expected.shape)
            error = numpy.abs(logits - expected).max() / golden["std"]
            print(f"{case.stem}{' '.join(['', *map(str, options)])}: {error:.1e}")
            test.assertLessEqual(error, TOLERANCE)
