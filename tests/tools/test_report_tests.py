"""tools/report_tests.py tells what failed from what was skipped, in results as ctest writes them."""

import pathlib
import sys
import unittest
import xml.etree.ElementTree as ElementTree

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools"))
import report_tests

PASSED = '<testcase name="ok" status="run"><system-out></system-out></testcase>'
FAILED = '<testcase name="bad" status="fail"><failure message=""/><system-out>why</system-out></testcase>'
MISSING = """<testcase name="gone" status="notrun"><skipped message="Unable to find executable"/>
  <system-out>Unable to find executable: /nonexistent</system-out></testcase>"""
SKIPPED = """<testcase name="{}" status="notrun"><skipped message="SKIP_REGULAR_EXPRESSION_MATCHED"/>
  <system-out>a.cpp:12: Skipped
needs shared data
[  SKIPPED ] x</system-out></testcase>"""


class ReportTests(unittest.TestCase):
    def report(self, *cases: str) -> list[str]:
        return report_tests.report(
            ElementTree.fromstring(f"<testsuite>{''.join(cases)}</testsuite>")
        )

    def test_all_passed(self):
        self.assertEqual(
            self.report(PASSED, PASSED), ["100% tests passed, 0 tests failed out of 2"]
        )

    def test_a_failure_shows_its_output(self):
        self.assertEqual(
            self.report(PASSED, FAILED),
            ["why", "FAILED bad", "50% tests passed, 1 tests failed out of 2"],
        )

    def test_a_failure_among_many_is_not_rounded_away(self):
        self.assertTrue(self.report(*[PASSED] * 999, FAILED)[-1].startswith("99% tests passed, 1 "))

    def test_a_program_that_is_not_there_is_a_failure(self):
        self.assertEqual(
            self.report(PASSED, MISSING)[-1], "50% tests passed, 1 tests failed out of 2"
        )

    def test_skipped_tests_are_gathered_by_reason(self):
        cases = [SKIPPED.format(f"s{i}") for i in range(5)]
        self.assertEqual(
            self.report(PASSED, *cases),
            [
                "skipped 5: s0, s1, s2 and 2 more: needs shared data",
                "100% tests passed, 0 tests failed out of 1",
            ],
        )

    def test_a_part_that_was_left_out_is_told(self):
        case = PASSED.replace("<system-out>", "<system-out>ran 3\nskipped part: no texts\n")
        self.assertEqual(
            self.report(case, PASSED, case),
            [
                "skipped parts of 2: ok, ok: no texts",
                "100% tests passed, 0 tests failed out of 3",
            ],
        )


if __name__ == "__main__":
    unittest.main()
