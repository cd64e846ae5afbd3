"""The documents name files that are there."""

import pathlib
import re
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
DOCUMENTS = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")]
# `room/file.h`, `tools/script.py`; not patterns, not flags, not addresses.
# `Class::member`, which the documents tell people to look for.
MEMBER = re.compile(r"`([A-Z]\w+)::(\w+)[`(]")
PATH = re.compile(r"`((?:[\w.-]+/)+[\w.-]+\.(?:h|hpp|cpp|py|sh|md|txt|cmake))`")
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

    def test_links_lead_somewhere(self):
        for document in DOCUMENTS:
            for link in LINK.findall(document.read_text(encoding="utf-8")):
                with self.subTest(document=document.name, link=link):
                    self.assertTrue((document.parent / link).exists())


if __name__ == "__main__":
    unittest.main()
