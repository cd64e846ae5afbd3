#!/usr/bin/env python3
"""Writes the goldens of tests/tokenizer/chat_template_test.cpp.

  tests/data/template_expressions_golden.json   small templates and what jinja2 gives
  tests/data/chat_templates_golden.json         tests/tokenizer/templates/*.jinja over conversations

Packages: jinja2 3.1.6, Python 3.11; with --check-transformers also transformers 5.23.0, whose own compiled
template must then give the same text for every case of both files.
"""

from __future__ import annotations

import argparse
import copy
import json
import sys
from pathlib import Path

import template_oracle
from template_conversations import cases
from template_expressions import EXPRESSIONS, KNOWN_DIFFERENCES, REFUSED_SYNTAX, VARIABLES
from template_statements import STATEMENTS

ROOT = Path(__file__).parents[2]
NOW = 1730000000


def snippet_cases() -> list[dict]:
    snippets = [("{{ " + line + " }}", line) for line in EXPRESSIONS.split("\n") if line.strip()]
    snippets += [(source, source) for source in STATEMENTS]
    made = []
    for source, snippet in snippets:
        text, error = template_oracle.render(
            source, {"extra": copy.deepcopy(VARIABLES), "now": NOW}
        )
        # An address in the output differs from run to run: for us it is an error.
        if text is not None and " at 0x" in text:
            text, error = None, "prints an address"
        if error is not None:
            made.append({"template": source, "error": error})
        elif words := REFUSED_SYNTAX.get(snippet) or template_oracle.left_out(source):
            made.append({"template": source, "refused": words})
        else:
            made.append({"template": source, "text": KNOWN_DIFFERENCES.get(source, text)})
    return made


def template_cases() -> list[dict]:
    made = []
    for path in sorted((ROOT / "tests/tokenizer/templates").glob("*.jinja")):
        with path.open(newline="") as file:
            source = file.read()
        for name, case in cases():
            text, error = template_oracle.render(source, copy.deepcopy(case))
            row = {"template": path.stem, "case": name}
            made.append({**row, "text": text} if error is None else {**row, "error": error})
    return made


def check_transformers(snippets: list[dict], templates: list[dict]) -> None:
    from transformers.utils import chat_template_utils

    class Clock(chat_template_utils.datetime):
        @classmethod
        def now(cls, tz: object = None) -> object:
            return cls.fromtimestamp(NOW)

    chat_template_utils.datetime = Clock
    conversations = dict(cases())
    different = 0
    rows = [(row, row["template"], {"extra": VARIABLES, "messages": []}) for row in snippets]
    for row in templates:
        path = ROOT / "tests/tokenizer/templates" / f"{row['template']}.jinja"
        rows.append((row, path.read_text(), conversations[row["case"]]))
    for row, source, case in rows:
        case = copy.deepcopy(case)
        tokens = {key: case[key] for key in ("bos_token", "eos_token") if case.get(key)}
        extra = case.get("extra") or {}
        documents = extra.pop("documents", None)
        try:
            (text,), _ = chat_template_utils.render_jinja_template(
                [case["messages"]],
                tools=case.get("tools"),
                documents=documents,
                chat_template=source,
                add_generation_prompt=case.get("add_generation_prompt", False),
                **{**tokens, **extra},
            )
        except Exception:  # noqa: BLE001
            text = None
        if text is not None and " at 0x" in text:
            text = None
        if text != row.get("text") and "refused" not in row and source not in KNOWN_DIFFERENCES:
            different += 1
            sys.stdout.write(f"differs: {row['template']!r} {row.get('case', '')}\n")
    sys.stdout.write(f"transformers: {len(rows) - different} of {len(rows)} cases are the same\n")
    if different:
        sys.exit(1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check-transformers", action="store_true")
    arguments = parser.parse_args()
    template_oracle.make_environment(NOW)  # sets the time zone
    snippets, templates = snippet_cases(), template_cases()
    if arguments.check_transformers:
        check_transformers(snippets, templates)
    conversations = dict(cases())
    data = ROOT / "tests/data"
    golden = {"now": NOW, "variables": VARIABLES, "cases": snippets}
    (data / "template_expressions_golden.json").write_text(json.dumps(golden, indent=0) + "\n")
    golden = {"conversations": conversations, "cases": templates}
    (data / "chat_templates_golden.json").write_text(json.dumps(golden, indent=0) + "\n")
    sys.stdout.write(f"{len(snippets)} snippets, {len(templates)} renders\n")


if __name__ == "__main__":
    main()
