#!/usr/bin/env python3
"""How answers of a chat end under different sampling settings, as a table in Markdown.

    bench/chat_settings.py -m smollm2 '--temp 0' '--temp 0 --repeat-penalty 1.1' --seeds 3

Each setting answers the questions of chat_questions.tsv twice: each in a fresh conversation, and all of them in one.
A question may have a second column, a regular expression that a right answer contains. An answer that reaches --limit
tokens, or that the program ends because it repeats itself, did not end by itself.
"""

import argparse
import json
import pathlib
import re
import shlex
import statistics
import subprocess

HERE = pathlib.Path(__file__).resolve().parent


def read_questions(path: pathlib.Path) -> list[tuple[str, str]]:
    """(question, pattern or "") for each line."""
    return [(*line.split("\t"), "")[:2] for line in path.read_text().splitlines() if line]


def answers(program: str, options: list[str], turns: list[str]) -> list[dict]:
    command = [program, "chat", "--json", *options]
    done = subprocess.run(command, input="\n".join(turns).encode(), capture_output=True)
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(command)}: {done.stderr.decode()}")
    return [json.loads(line) for line in done.stdout.splitlines()]


def row(setting: str, kind: str, questions: list[tuple[str, str]], results: list[dict]) -> str:
    lengths = [result["timings"]["n_generated"] for result in results]
    reasons = [result["stop_reason"] for result in results]
    patterns = [pattern for _, pattern in questions] * (len(results) // len(questions))
    graded = [(p, r["text"]) for p, r in zip(patterns, results, strict=True) if p]
    n_right = sum(re.search(pattern, text) is not None for pattern, text in graded)
    cells = [
        setting or "(the program's defaults)",
        kind,
        f"{reasons.count('end_of_text')} of {len(results)}",
        reasons.count("repetition"),
        reasons.count("length"),
        f"{n_right} of {len(graded)}",
        f"{statistics.median(lengths):.0f}",
        max(lengths),
    ]
    return "| " + " | ".join(map(str, cells)) + " |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("settings", nargs="*", default=[""], help="options of chat, one text each")
    parser.add_argument("-m", "--model", default="smollm2")
    parser.add_argument("--program", default=str(HERE.parent / "build" / "release" / "limpid"))
    parser.add_argument("--questions", type=pathlib.Path, default=HERE / "chat_questions.tsv")
    parser.add_argument("--limit", type=int, default=1024, help="tokens of an answer, at most")
    parser.add_argument("--seeds", type=int, default=1, help="runs of a sampled setting")
    parser.add_argument(
        "--fresh-only", action="store_true", help="no conversation of all questions"
    )
    values = parser.parse_args()
    questions = read_questions(values.questions)
    asked = [question for question, _ in questions]
    conversations = {"fresh": [t for q in asked for t in (q, "/clear")]}
    if not values.fresh_only:
        conversations["one chat"] = asked
    print(
        "| settings | conversation | end by themselves | repeat | cut | right | median | longest |"
    )
    print("|---|---|---:|---:|---:|---:|---:|---:|", flush=True)
    for setting in values.settings:
        n_seeds = 1 if "--temp 0 " in setting + " " else values.seeds
        for kind, turns in conversations.items():
            results = []
            for seed in range(1, n_seeds + 1):
                options = ["-m", values.model, "-n", str(values.limit), "-s", str(seed)]
                results += answers(values.program, options + shlex.split(setting), turns)
            print(row(setting, kind, questions, results), flush=True)


if __name__ == "__main__":
    main()
