"""Closes a run of the tests: failures, skipped tests by reason, and ctest's closing line.

report_tests.py RESULTS.xml      (what `ctest --output-junit` wrote)
"""

import collections
import re
import sys
import xml.etree.ElementTree as ElementTree

# GoogleTest prints the reason of GTEST_SKIP() under the line of its source; the oracles print `skipped: why`.
REASON = re.compile(r"Skipped\n(.+)|^skipped: (.+)$", re.MULTILINE)


def reason_of(case: ElementTree.Element) -> str:
    found = REASON.search(case.findtext("system-out") or "")
    return (found.group(1) or found.group(2)).strip() if found else "no reason given"


def main() -> int:
    try:
        cases = list(ElementTree.parse(sys.argv[1]).getroot().iter("testcase"))
    except (OSError, ElementTree.ParseError) as problem:
        print(f"error: no test results: {problem}", file=sys.stderr)
        return 1
    failed = [case for case in cases if case.get("status") == "fail"]
    skipped = collections.defaultdict(list)
    for case in cases:
        if case.get("status") in ("notrun", "disabled"):
            skipped[reason_of(case)].append(case.get("name", ""))

    for case in failed:
        print(case.findtext("system-out") or "", end="")
    for case in failed:
        print(f"FAILED {case.get('name')}")
    for reason, names in sorted(skipped.items()):
        shown = ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
        print(f"skipped {len(names)}: {shown}: {reason}")
    n_run = len(cases) - sum(map(len, skipped.values()))
    share = round(100 * (n_run - len(failed)) / n_run) if n_run else 0
    if failed:
        share = min(share, 99)
    print(f"{share}% tests passed, {len(failed)} tests failed out of {n_run}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
