"""The environment that `transformers` renders chat templates in, rebuilt on jinja2 alone.

Packages: jinja2 3.1.6. `make_template_golden.py --check-transformers` compares this environment with
transformers 5.23's own (its `_compile_jinja_template`) on every template and case.
"""

from __future__ import annotations

import datetime
import json
import os
import time
from typing import Any

import jinja2
import jinja2.ext
import jinja2.utils
from jinja2 import nodes
from jinja2.sandbox import ImmutableSandboxedEnvironment

REASONING_FIELDS = ("reasoning_content", "thinking", "reasoning")


class GenerationBlock(jinja2.ext.Extension):
    """`{% generation %}` only marks text; its body is a scope of its own, like a call block's."""

    tags = {"generation"}

    def parse(self, parser: Any) -> Any:
        line = next(parser.stream).lineno
        body = parser.parse_statements(["name:endgeneration"], drop_needle=True)
        return jinja2.nodes.CallBlock(self.call_method("_body"), [], [], body).set_lineno(line)

    def _body(self, caller: Any) -> str:
        return caller()


class DictMaker:
    def __call__(self, *args: Any, **kwargs: Any) -> dict:
        return dict(*args, **kwargs)

    def fromkeys(self, *args: Any, **kwargs: Any) -> dict:
        return dict.fromkeys(*args, **kwargs)


class GuardedNamespace(jinja2.utils.Namespace):
    """A namespace that refuses names with a leading underscore."""

    def __init__(*args: Any, **kwargs: Any) -> None:
        self, args = args[0], args[1:]
        attributes = dict(*args, **kwargs)
        for name in attributes:
            GuardedNamespace._guard(name)
        jinja2.utils.Namespace.__init__(self, attributes)

    def __setitem__(self, name: str, value: Any) -> None:
        GuardedNamespace._guard(name)
        jinja2.utils.Namespace.__setitem__(self, name, value)

    @staticmethod
    def _guard(name: str) -> None:
        if isinstance(name, str) and name.startswith("_"):
            raise jinja2.exceptions.SecurityError(name)


def make_environment(now: int) -> ImmutableSandboxedEnvironment:
    """`now`: Unix seconds, shown in UTC."""
    os.environ["TZ"] = "UTC"
    time.tzset()
    environment = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[GenerationBlock, jinja2.ext.loopcontrols]
    )

    def raise_exception(message: str) -> None:
        raise jinja2.exceptions.TemplateError(message)

    def tojson(
        x: Any,
        ensure_ascii: bool = False,
        indent: Any = None,
        separators: Any = None,
        sort_keys: bool = False,
    ) -> str:
        return json.dumps(
            x, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys
        )

    def strftime_now(format: str) -> str:  # noqa: A002
        return datetime.datetime.fromtimestamp(now).strftime(format)

    environment.filters["tojson"] = tojson
    environment.globals["raise_exception"] = raise_exception
    environment.globals["strftime_now"] = strftime_now
    environment.globals["dict"] = DictMaker()
    environment.globals["namespace"] = GuardedNamespace
    return environment


# What Jinja has and Limpid leaves out, because no chat template uses it (docs/adr/0007-what-chat-templates-use.md).
# Limpid refuses these by name.
FILTERS_LEFT_OUT = (
    "abs attr batch center filesizeformat float forceescape groupby pprint random round slice striptags "
    "sum truncate urlencode urlize wordcount wordwrap xmlattr"
).split()
TESTS_LEFT_OUT = "callable divisibleby escaped filter lower sameas test upper".split()
METHODS_LEFT_OUT = (
    "casefold center changed copy count encode expandtabs find format_map fromkeys index isalnum isalpha isascii "
    "isdecimal isdigit isidentifier islower isnumeric isprintable isspace istitle isupper ljust maketrans partition "
    "removeprefix removesuffix rfind rindex rjust rpartition rsplit splitlines start step stop swapcase translate zfill"
).split()
FUNCTIONS_LEFT_OUT = "cycler joiner lipsum".split()


def left_out(template: str) -> str | None:
    """The first filter, test, method or function in a template that Limpid refuses, in the words of its error."""
    tree = make_environment(0).parse(template)
    for node in tree.find_all((nodes.Filter, nodes.Test, nodes.Getattr, nodes.Name)):
        if isinstance(node, nodes.Filter) and node.name in FILTERS_LEFT_OUT:
            return f"filter '{node.name}'"
        if isinstance(node, nodes.Test) and node.name in TESTS_LEFT_OUT:
            return f"test '{node.name}'"
        of_loop = isinstance(node, nodes.Getattr) and node.node == nodes.Name("loop", "load")
        if (
            isinstance(node, nodes.Getattr)
            and node.attr in METHODS_LEFT_OUT
            and not (of_loop and node.attr == "index")
        ):
            return f"the method '{node.attr}'"
        if isinstance(node, nodes.Name) and node.name in FUNCTIONS_LEFT_OUT:
            return f"the function '{node.name}'"
    return None


def with_reasoning_names(messages: list[dict]) -> list[dict]:
    named = []
    for message in messages:
        reasoning = next(
            (message[key] for key in REASONING_FIELDS if message.get(key) is not None), None
        )
        if reasoning is not None:
            message = {"thinking": reasoning, **message, "reasoning_content": reasoning}
        named.append(message)
    return named


def variables_of(case: dict) -> dict:
    """What apply_chat_template passes to the template for one case."""
    variables = {
        "messages": with_reasoning_names(case.get("messages", [])),
        "tools": case.get("tools"),
        "documents": None,
        "add_generation_prompt": case.get("add_generation_prompt", False),
    }
    for token in ("bos_token", "eos_token"):
        if case.get(token):
            variables[token] = case[token]
    return {**variables, **(case.get("extra") or {})}


def render(template: str, case: dict) -> tuple[str | None, str | None]:
    """(text, None), or (None, the error's class and words)."""
    try:
        return make_environment(case.get("now", 0)).from_string(template).render(
            **variables_of(case)
        ), None
    except RecursionError:
        return None, "RecursionError"
    except Exception as error:  # noqa: BLE001
        return None, f"{type(error).__name__}: {error}"
