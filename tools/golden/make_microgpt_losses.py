"""Writes tests/data/microgpt/python_*.txt: losses and samples of Karpathy's microgpt.py under CPython.

Run: python tools/golden/make_microgpt_losses.py MICROGPT.py [NAME...]      all of them: ten minutes

MICROGPT.py is the script as published (https://karpathy.github.io/2026/02/12/microgpt/). Its settings stand in lines
`name = value`; this script changes those that a case names, and lets it print all digits of a loss.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
DATA = ROOT / "tests" / "data" / "microgpt"
NAMES, CITIES = ROOT / "data" / "names.txt", DATA / "cities.txt"

# The file's name -> documents, settings of the script, number of samples.
CASES = {
    "default": (NAMES, {"num_steps": 50}, 5),
    "default_1000": (NAMES, {}, 20),
    "wide": (NAMES, {"n_embd": 32, "n_layer": 2, "num_steps": 40}, 5),
    "cities": (
        CITIES,
        {
            "seed": 1234567890123,
            "n_embd": 12,
            "n_head": 3,
            "block_size": 8,
            "num_steps": 60,
            "learning_rate": 0.02,
            "temperature": 0.9,
        },
        5,
    ),
    "seed0": (
        NAMES,
        {"seed": 0, "n_embd": 8, "n_layer": 3, "n_head": 2, "block_size": 6, "num_steps": 60},
        5,
    ),
}
SPECIAL = {
    "seed": (r"random\.seed\(\d+\)", "random.seed({})"),
    "learning_rate": (r"(learning_rate, .* = )[\d.]+,", r"\g<1>{},"),
}


def replaced(text: str, pattern: str, value: str) -> str:
    changed, n = re.subn(pattern, value, text, count=1, flags=re.MULTILINE)
    if n != 1:
        raise SystemExit(f"the script has no line like {pattern}")
    return changed


def losses_and_samples(
    script: str, documents: Path, settings: dict, n_samples: int
) -> tuple[list[str], list[str]]:
    for name, value in settings.items():
        pattern, new = SPECIAL.get(name, (rf"^{name} = [\d.]+", f"{name} = {{}}"))
        script = replaced(script, pattern, new.format(value))
    script = replaced(script, r"\{loss\.data:\.4f\}", "{loss.data!r}")
    script = replaced(script, r"range\(20\)", f"range({n_samples})")
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "input.txt").write_bytes(documents.read_bytes())
        command = [sys.executable, "-X", "utf8", "-c", script]
        done = subprocess.run(command, cwd=folder, capture_output=True, encoding="utf-8")
    if done.returncode != 0:
        raise SystemExit(done.stderr)
    losses = re.findall(r"^step +(\d+) / +\d+ \| loss (\S+)", done.stdout, re.MULTILINE)
    samples = re.findall(r"^sample +\d+: (.*)$", done.stdout, re.MULTILINE)
    return [f"{step} {loss}" for step, loss in losses], samples


def main() -> None:
    if len(sys.argv) < 2:
        print("skipped: needs the path of Karpathy's microgpt.py")
        return
    script = Path(sys.argv[1]).read_text(encoding="utf-8")
    python = "{}.{}".format(*sys.version_info)
    for name in sys.argv[2:] or CASES:
        documents, settings, n_samples = CASES[name]
        losses, samples = losses_and_samples(script, documents, settings, n_samples)
        changed = "".join(f", {key} {value}" for key, value in settings.items())
        head = f"# Losses and samples of Karpathy's microgpt.py under CPython {python}: {documents.name}, its defaults"
        lines = [f"{head}{changed}.", *losses, "samples", *samples]
        (DATA / f"python_{name}.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
