#!/usr/bin/env python3
"""Renders random templates and conversations with `limpid template` and with jinja2, and compares.

Usage: template_differential.py LIMPID [-n COUNT] [--seed SEED] [--templates FOLDER …]

Templates are the snippets of tools/golden/template_{expressions,statements}.py put together at random, the templates of
tests/tokenizer/templates and those in FOLDERs (*.jinja); conversations are random. An error must be an error on
both sides. Packages: jinja2 3.1.6.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tools/golden"))

import template_conversations  # noqa: E402
import template_oracle  # noqa: E402
from template_expressions import (  # noqa: E402
    EXPRESSIONS,
    KNOWN_DIFFERENCES,
    REFUSED_SYNTAX,
    VARIABLES,
)
from template_statements import STATEMENTS  # noqa: E402

TEXTS = [
    "",
    "Hi",
    "  padded \n",
    "Grüße 日本 😀",
    "<think>a</think>b",
    'it\'s "quoted" <b>',
    "a\n\nb",
    "{{ x }}",
]
# The program passes no extra variables, so the template sets them itself.
PRELUDE = "".join(f"{{% set {name} = {value!r} %}}" for name, value in VARIABLES.items())


def is_rendered(snippet: str, template: str) -> bool:
    """Whether Limpid renders what jinja2 renders, or fails like it."""
    if snippet in REFUSED_SYNTAX or template in KNOWN_DIFFERENCES or "//" in snippet:
        return False
    try:
        return template_oracle.left_out(template) is None
    except template_oracle.jinja2.TemplateError:
        return True


SNIPPETS = [
    line
    for line in EXPRESSIONS.split("\n")
    if line.strip() and is_rendered(line, "{{ " + line + " }}")
]
BLOCKS = [source for source in STATEMENTS if is_rendered(source, source)]


def random_message(rng: random.Random) -> dict:
    message = {"role": rng.choice(["system", "user", "user", "assistant", "assistant", "tool"])}
    if rng.random() < 0.95:
        message["content"] = rng.choice(
            [rng.choice(TEXTS), rng.choice(TEXTS), None, [{"type": "text", "text": "t"}]]
        )
    if message["role"] == "assistant" and rng.random() < 0.3:
        arguments = {"city": rng.choice(TEXTS), "n": rng.choice([1, -2.5, None, True, [1]])}
        message["tool_calls"] = [template_conversations.call("get_weather", arguments)]
    if rng.random() < 0.1:
        message["reasoning_content"] = rng.choice(TEXTS)
    return message


def random_template(rng: random.Random, files: list[str]) -> str:
    if rng.random() < 0.4:
        return rng.choice(files)
    parts = []
    for _ in range(rng.randint(1, 4)):
        a, b = rng.choice(SNIPPETS), rng.choice(SNIPPETS)
        parts.append(
            rng.choice(
                [
                    "{{ " + a + " }}",
                    "{%- set v = " + a + " %}{{ v }} {{ v|string }}",
                    "{{ (" + a + ") ~ (" + b + ") }}",
                    "{{ (" + a + ") == (" + b + ") }}",
                    "{{ (" + a + ") if (" + b + ") else 'no' }}",
                    "{% if " + a + " %}\n  yes\n{% else %}\n  no\n{% endif %}",
                    "{% for i in " + a + " %}{{ i }}{{ loop.index }}{% endfor %}",
                    "{{ ("
                    + a
                    + ")|"
                    + rng.choice(["upper", "list", "first", "length", "tojson", "join('-')"])
                    + " }}",
                    rng.choice(BLOCKS),
                ]
            )
        )
    return PRELUDE + rng.choice(["", "\n", " "]).join(parts)


def ours(program: str, folder: Path, template: str, case: dict) -> str | None:
    (folder / "t.jinja").write_text(template, newline="")
    (folder / "m.json").write_text(json.dumps(case["messages"]))
    command = [program, "template", "--bos", "<s>", "--eos", "</s>"]
    command += ["--chat-template-file", str(folder / "t.jinja")]
    command += ["--messages", str(folder / "m.json")]
    if case["tools"] is not None:
        (folder / "tools.json").write_text(json.dumps(case["tools"]))
        command += ["--tools", str(folder / "tools.json")]
    if not case["add_generation_prompt"]:
        command.append("--no-generation-prompt")
    result = subprocess.run(
        command, capture_output=True, check=False, timeout=60, env={**os.environ, "TZ": "UTC"}
    )
    if result.returncode not in (0, 1):
        raise SystemExit(f"the program ended with {result.returncode} on {template!r}")
    return result.stdout.decode() if result.returncode == 0 else None


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("program")
    parser.add_argument("-n", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--templates", nargs="*", default=[])
    arguments = parser.parse_args()
    folders = [ROOT / "tests/tokenizer/templates", *map(Path, arguments.templates)]
    paths = [path for folder in folders for path in sorted(folder.glob("*.jinja"))]
    files = [path.open(newline="").read() for path in paths]
    # The clock moves between the two.
    files = [text for text in files if "strftime_now" not in text]
    rng = random.Random(arguments.seed)
    different = 0
    compared = 0
    with tempfile.TemporaryDirectory() as folder:
        while compared < arguments.n:
            template = random_template(rng, files)
            if "strftime_now" in template:
                continue
            case = {
                "messages": [random_message(rng) for _ in range(rng.randint(0, 5))],
                "tools": rng.choice([None, template_conversations.TOOLS]),
                "add_generation_prompt": rng.random() < 0.5,
                "bos_token": "<s>",
                "eos_token": "</s>",
            }
            expected, error = template_oracle.render(template, case)
            if expected is not None and " at 0x" in expected:
                expected = None  # an address: for us an error
            got = ours(arguments.program, Path(folder), template, case)
            compared += 1
            if got != expected:
                different += 1
                sys.stdout.write(
                    f"differs: {template!r}\n  {json.dumps(case)}\n  {expected!r} {error}\n  {got!r}\n"
                )
    sys.stdout.write(
        f"{compared - different} of {compared} renders are the same (seed {arguments.seed})\n"
    )
    sys.exit(1 if different else 0)


if __name__ == "__main__":
    main()
