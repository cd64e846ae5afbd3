"""Closes a run of the tests: failures, skipped tests and parts of tests by reason, and ctest's closing line.

report_tests.py RESULTS.xml      (what `ctest --output-junit` wrote)
"""

import collections
import re
import sys
import xml.etree.ElementTree as ElementTree

# GoogleTest prints the reason of GTEST_SKIP() under the line of its source; scripts print `skipped: why`.
REASON = re.compile(r"Skipped\n(.+)|^skipped: (.+)$", re.MULTILINE)
# What a test prints that passed without some of its parts.
PART = re.compile(r"^skipped part: (.+)$", re.MULTILINE)


def was_skipped(case: ElementTree.Element) -> bool:
    """By its own wish. A program that is not there also counts as `notrun` with ctest, and is a failure."""
    note = case.find("skipped")
    wished = note is not None and note.get("message", "").startswith("SKIP_")
    return case.get("status") == "disabled" or (case.get("status") == "notrun" and wished)


def reason_of(case: ElementTree.Element) -> str:
    found = REASON.search(case.findtext("system-out") or "")
    return (found.group(1) or found.group(2)).strip() if found else "no reason given"


def parts_by_reason(cases: list[ElementTree.Element]) -> dict[str, list[str]]:
    """Names of the tests that passed and say that they left something out."""
    parts = collections.defaultdict(list)
    for case in cases:
        if case.get("status") == "run":
            for reason in dict.fromkeys(PART.findall(case.findtext("system-out") or "")):
                parts[reason.strip()].append(case.get("name", ""))
    return parts


def lines_of(what: str, names_by_reason: dict[str, list[str]]) -> list[str]:
    lines = []
    for reason, names in sorted(names_by_reason.items()):
        shown = ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
        lines.append(f"{what} {len(names)}: {shown}: {reason}")
    return lines


def report(results: ElementTree.Element) -> list[str]:
    """The lines to print; the last is ctest's."""
    cases = list(results.iter("testcase"))
    failed = [case for case in cases if case.get("status") != "run" and not was_skipped(case)]
    skipped = collections.defaultdict(list)
    for case in filter(was_skipped, cases):
        skipped[reason_of(case)].append(case.get("name", ""))

    lines = []
    for case in failed:
        lines += (case.findtext("system-out") or "").splitlines()
    lines += [f"FAILED {case.get('name')}" for case in failed]
    lines += lines_of("skipped", skipped) + lines_of("skipped parts of", parts_by_reason(cases))
    n_run = len(cases) - sum(map(len, skipped.values()))
    share = round(100 * (n_run - len(failed)) / n_run) if n_run else 0
    share = min(share, 99) if failed else share
    return [*lines, f"{share}% tests passed, {len(failed)} tests failed out of {n_run}"]


def main() -> int:
    try:
        results = ElementTree.parse(sys.argv[1]).getroot()
    except (OSError, ElementTree.ParseError) as problem:
        print(f"error: no test results: {problem}", file=sys.stderr)
        return 1
    print("\n".join(report(results)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
