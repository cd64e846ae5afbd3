"""Seeds of fuzz_template: the expressions that the golden tests render, a file each.

make_template_seeds.py DIRECTORY
"""

import json
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]


def main() -> None:
    directory = pathlib.Path(sys.argv[1])
    directory.mkdir(parents=True, exist_ok=True)
    golden = json.loads((ROOT / "tests/data/template_expressions_golden.json").read_text())
    for i, case in enumerate(golden["cases"]):
        (directory / f"expression_{i:04}").write_text(case["template"], encoding="utf-8")


if __name__ == "__main__":
    main()
