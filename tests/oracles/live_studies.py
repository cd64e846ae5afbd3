"""The studies that docs quote still run: each over a few positions, where their figures say nothing.

study_calibration.py also holds `limpid quantize` to its settling of errors written anew in Python, element by element.
"""

import pathlib
import subprocess
import sys
import unittest

import limpid_program

FOLDER = pathlib.Path(__file__).resolve().parent


class Studies(unittest.TestCase):
    def printed(self, name: str, *options: str) -> str:
        command = [sys.executable, str(FOLDER / name), *options]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode == limpid_program.EXIT_SKIPPED:
            self.skipTest(done.stdout.strip().removeprefix("skipped: "))
        self.assertEqual(done.returncode, 0, done.stderr[-2000:])
        return done.stdout

    def study(self, name: str, n_rows: int, *options: str) -> None:
        """Expects a table of so many rows, without numbers that are none."""
        out = self.printed(name, "--positions", "64", *options)
        rows = [line for line in out.splitlines() if line.startswith("| ")]
        self.assertEqual(len(rows), n_rows, out)
        self.assertNotIn("nan", out)

    def test_activation_rounding(self) -> None:
        self.study("study_activation_rounding.py", 7)

    def test_quantizer_errors(self) -> None:
        self.study("study_quantizer_errors.py", 8, "--types", "IQ4_XS")

    def test_calibration(self) -> None:
        self.study("study_calibration.py", 11, "--types", "IQ4_XS")

    def test_merge_lists(self) -> None:
        out = self.printed("study_merge_lists.py")
        self.assertIn("\n90 tokens whose last merge ranks before an earlier one\n", out)
        self.assertIn(": 0 texts have other ids by the list", out)


if __name__ == "__main__":
    limpid_program.main()
