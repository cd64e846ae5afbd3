"""Models under tests/data/golden and the logits that transformers gave for them in f64."""

import json
import pathlib
import tempfile
import unittest

import limpid_program
import numpy

FOLDER = limpid_program.ROOT / "tests" / "data" / "golden"
TOLERANCE = 1e-4


def check(test: unittest.TestCase, family: str, least_cases: int, *options: object) -> None:
    cases: list[pathlib.Path] = sorted((FOLDER / family).glob("*.json"))
    test.assertGreaterEqual(len(cases), least_cases)
    for case in cases:
        with test.subTest(case=case.stem):
            check_model(test, case, case.with_suffix(".gguf"), *options)


def check_pth(
    test: unittest.TestCase, family: str, names: tuple[str, ...], *options: object
) -> None:
    """The same weights as `limpid convert` writes them for PyTorch: Llamas in Meta's folder, GPT-2s in nanoGPT's."""
    for name in names:
        with test.subTest(case=name), tempfile.TemporaryDirectory() as folder:
            model = pathlib.Path(folder) / f"{name}_pth"
            limpid_program.run("convert", FOLDER / family / f"{name}.gguf", model, "--to", "pth")
            check_model(test, FOLDER / family / f"{name}.json", model, *options)


def check_model(
    test: unittest.TestCase, case: pathlib.Path, model: pathlib.Path, *options: object
) -> None:
    """The weights are F32, so an executor must agree to 1e-4 of the logits' spread; a wrong row order, rotation or
    bias is off by its whole spread."""
    golden = json.loads(case.read_text())
    positions = ",".join(map(str, golden["positions"]))
    logits = limpid_program.logits(model, golden["ids"], "--positions", positions, *options)
    expected = numpy.array(golden["logits"])
    test.assertEqual(logits.shape, expected.shape)
    error = numpy.abs(logits - expected).max() / golden["std"]
    print(f"{model.stem}{' '.join(['', *map(str, options)])}: {error:.1e}")
    test.assertLessEqual(error, TOLERANCE)
