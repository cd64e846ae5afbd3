"""The documents name files that are there."""

import json
import os
import pathlib
import re
import shutil
import subprocess
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
DOCUMENTS = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")]
# `room/file.h`, `tools/script.py`; not patterns, not flags, not addresses.
# `Class::member`, which the documents tell people to look for.
MEMBER = re.compile(r"`([A-Z]\w+)::(\w+)[`(]")
PATH = re.compile(r"`((?:[\w.-]+/)+[\w.-]+\.(?:h|hpp|cpp|py|sh|md|txt|cmake))`")
# What a reader may type: fenced blocks, and text between back quotes.
BLOCK = re.compile(r"^```(?:sh)?\n[^`]*^```", re.MULTILINE)
QUOTED = re.compile(r"`(make|tools/build\.sh) ([^`]*)`")
MAKE = re.compile(r"^ *make((?: [a-z][a-z0-9-]*)+)", re.MULTILINE)
BUILD = re.compile(r"(tools/build\.sh|cmake --build --preset|cmake --preset) (\w[\w-]*)")
TARGETS = re.compile(r"--target((?: \w+)+)")
# A row of a table of steps: | step | `function` | `file` |
BREAKPOINT = re.compile(r"\| `([\w:]+)` \| `(src/[\w./]+\.cpp)` \|")
LINK = re.compile(r"\]\((?!\w+:)([^)#]+)")


class Documents(unittest.TestCase):
    def test_files_named_are_there(self):
        n_named = 0
        for document in DOCUMENTS:
            for name in PATH.findall(document.read_text(encoding="utf-8")):
                n_named += 1
                with self.subTest(document=document.name, file=name):
                    places = (ROOT, ROOT / "src", ROOT / "include", document.parent)
                    self.assertTrue(any((place / name).is_file() for place in places))
        self.assertGreater(n_named, 30)

    def test_members_named_are_there(self):
        paths = [*(ROOT / "src").rglob("*.h"), *(ROOT / "src").rglob("*.cpp")]
        paths += (ROOT / "include").rglob("*.hpp")
        words = set(re.findall(r"\w+", " ".join(path.read_text("utf-8") for path in paths)))
        n_named = 0
        for document in DOCUMENTS:
            for owner, member in MEMBER.findall(document.read_text(encoding="utf-8")):
                n_named += 1
                with self.subTest(document=document.name, member=f"{owner}::{member}"):
                    self.assertTrue({owner, member} <= words)
        self.assertGreater(n_named, 5)

    def test_breakpoints_are_functions_of_their_files(self):
        """Of the table of docs/how-to/step-through-token.md; also of the program, where it keeps its symbols."""
        text = (ROOT / "docs/how-to/step-through-token.md").read_text("utf-8")
        rows = BREAKPOINT.findall(text)
        self.assertGreater(len(rows), 15)
        program = os.environ.get("LIMPID_PROGRAM", "")
        symbols = ""
        if program and shutil.which("nm"):
            listed = subprocess.run(["nm", "-C", program], capture_output=True, text=True)
            symbols = listed.stdout
        for name, path in rows:
            with self.subTest(function=name, file=path):
                function = name.rpartition("::")[2]
                source = (ROOT / path).read_text("utf-8")
                self.assertRegex(source, rf"\b{function}\(")
                if symbols:
                    self.assertRegex(symbols, rf"\b{re.escape(name)}[\[(]")

    def commands(self) -> list[tuple[str, str]]:
        """(document, commands that belong together)"""
        found = []
        for document in DOCUMENTS:
            text = document.read_text(encoding="utf-8")
            found += [(document.name, block) for block in BLOCK.findall(text)]
            found += [(document.name, " ".join(words)) for words in QUOTED.findall(text)]
        return found

    def test_targets_of_make_are_there(self):
        targets = set(re.findall(r"^([a-z][\w-]*):", (ROOT / "Makefile").read_text(), re.MULTILINE))
        named = [
            (document, target)
            for document, text in self.commands()
            for words in MAKE.findall(text)
            for target in words.split()
        ]
        self.assertGreater(len(named), 10)
        for document, target in named:
            with self.subTest(document=document, target=target):
                self.assertIn(target, targets)

    def test_builds_begin_with_a_configuration_and_have_their_targets(self):
        presets = json.loads((ROOT / "CMakePresets.json").read_text())["configurePresets"]
        presets = {preset["name"] for preset in presets}
        lists = [*ROOT.glob("*/CMakeLists.txt"), ROOT / "src/cli/CMakeLists.txt"]
        targets = set(re.findall(r"add_executable\((\w+)", " ".join(p.read_text() for p in lists)))
        bench = (ROOT / "bench/CMakeLists.txt").read_text()
        targets |= set(re.search(r"foreach\(name IN ITEMS ([\w\s]+)\)", bench)[1].split())
        targets |= {f"test_{path.parent.name}" for path in ROOT.glob("tests/*/*_test.cpp")}
        n_builds = 0
        for document, text in self.commands():
            with self.subTest(document=document, commands=text):
                configured = set()
                for how, preset in BUILD.findall(text):
                    self.assertIn(preset, presets)
                    if how == "cmake --build --preset":
                        self.assertIn(preset, configured, "a fresh clone has no such folder")
                        n_builds += 1
                    configured.add(preset)
                for words in TARGETS.findall(text):
                    n_builds += 1
                    self.assertLessEqual(set(words.split()), targets)
        self.assertGreater(n_builds, 3)

    def test_links_lead_somewhere(self):
        for document in DOCUMENTS:
            for link in LINK.findall(document.read_text(encoding="utf-8")):
                with self.subTest(document=document.name, link=link):
                    self.assertTrue((document.parent / link).exists())


if __name__ == "__main__":
    unittest.main()
