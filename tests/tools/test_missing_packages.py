"""Without a network and without the Python packages, `make test` runs everything else and says what is missing."""

import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]


def run(
    command: list[str], folder: pathlib.Path, **environment: str
) -> subprocess.CompletedProcess:
    return subprocess.run(
        command,
        cwd=folder,
        env=os.environ | environment,
        capture_output=True,
        text=True,
        timeout=280,
    )


class MissingPackages(unittest.TestCase):
    def test_venv_fails_in_three_lines(self):
        with tempfile.TemporaryDirectory() as cache:
            offline = {"PIP_NO_INDEX": "1", "PIP_CONFIG_FILE": os.devnull, "PIP_FIND_LINKS": ""}
            done = run(
                [str(ROOT / "tools/venv.sh"), "light"], ROOT, XDG_CACHE_HOME=cache, **offline
            )
        self.assertNotEqual(done.returncode, 0)
        self.assertEqual(done.stdout, "")
        lines = done.stderr.splitlines()
        self.assertLessEqual(len(lines), 3, lines)
        self.assertIn("No matching distribution found", lines[-2])
        self.assertIn("venv-light.log", lines[-1])

    def test_make_test_goes_on_without_them(self):
        """The Makefile beside scripts that only say how they were called."""
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            shutil.copy(ROOT / "Makefile", folder)
            (folder / "tools").mkdir()
            for script in ("install_deps.sh", "build.sh", "run_tests.sh", "venv.sh"):
                path = folder / "tools" / script
                path.write_text(f'#!/bin/sh\necho "{script}" "$@" >>calls.txt\n')
                path.chmod(0o755)
            with (folder / "tools" / "venv.sh").open("a") as venv:
                venv.write("exit 1\n")
            done = run(["make", "test"], folder)
            calls = (folder / "calls.txt").read_text().splitlines()
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("venv.sh light", calls)
        self.assertIn("build.sh dev -- -DLIMPID_PYTHON=", calls)
        self.assertEqual(calls[-1], "run_tests.sh dev -L fast")


if __name__ == "__main__":
    unittest.main()
