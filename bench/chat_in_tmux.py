#!/usr/bin/env python3
"""A chat on a real terminal: types the questions of chat_questions.tsv into `limpid chat` inside tmux.

    bench/chat_in_tmux.py -m smollm2 > transcript.txt

Prints what the terminal showed. The exit code is 1 when an answer did not end by itself: the program ended it (a note
says so), or --seconds passed.
"""

import argparse
import pathlib
import shlex
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
SERVER = "limpid-chat"  # a tmux of its own


def tmux(*arguments: str) -> str:
    command = ["tmux", "-L", SERVER, *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def shown() -> str:
    """All that the terminal has shown, without the empty rows below the cursor."""
    return tmux("capture-pane", "-p", "-J", "-S", "-").rstrip()


def wait_for_prompts(n: int, seconds: float) -> bool:
    """Until the n-th prompt is there and empty."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        rows = shown().splitlines()
        if rows and rows[-1] == ">" and sum(row.startswith(">") for row in rows) >= n:
            return True
        time.sleep(0.2)
    return False


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("-m", "--model", default="smollm2")
    parser.add_argument("--program", default=str(HERE.parent / "build" / "release" / "limpid"))
    parser.add_argument("--questions", type=pathlib.Path, default=HERE / "chat_questions.tsv")
    parser.add_argument("--seconds", type=float, default=300, help="for an answer, at most")
    values = parser.parse_args()
    questions = [line.split("\t")[0] for line in values.questions.read_text().splitlines() if line]
    chat = shlex.join([values.program, "chat", "-m", values.model])
    tmux("-f", "/dev/null", "new-session", "-d", "-x", "100", "-y", "40", "sh")
    try:
        tmux("set-option", "-g", "history-limit", "100000")
        tmux("respawn-window", "-k", f"XDG_STATE_HOME=$(mktemp -d) {chat}")
        in_time = wait_for_prompts(1, values.seconds)
        for i, question in enumerate(questions):
            if not in_time:
                break
            tmux("send-keys", "-l", question)
            tmux("send-keys", "Enter")
            in_time = wait_for_prompts(i + 2, values.seconds)
        transcript = shown()
    finally:
        tmux("kill-server")
    print(transcript)
    n_ended = transcript.count("\n(ended")
    print(
        f"{len(questions)} questions, {n_ended} answers that did not end by themselves",
        file=sys.stderr,
    )
    return 0 if in_time and n_ended == 0 else 1


if __name__ == "__main__":
    sys.exit(main())
