"""What lies in packaging/ fits the program and its packages."""

import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

import limpid_program

PACKAGING = limpid_program.ROOT / "packaging"
OPTION = re.compile(r"--[a-z][a-z-]+")


class Packaging(unittest.TestCase):
    def check_options(self, command: str) -> None:
        help_text = limpid_program.run("serve", "--help").decode()
        options = OPTION.findall(command)
        self.assertTrue(options)
        for option in options:
            self.assertIn(option, help_text)

    def test_the_unit_is_valid(self):
        unit = (PACKAGING / "limpid.service").read_text()
        self.check_options(re.search("^ExecStart=(.*)$", unit, re.MULTILINE)[1])
        if shutil.which("systemd-analyze") is None:
            self.skipTest("needs systemd-analyze")
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "limpid.service"
            path.write_text(unit.replace("/usr/local/bin/limpid", str(limpid_program.PROGRAM)))
            done = subprocess.run(
                ["systemd-analyze", "verify", path], capture_output=True, text=True, check=False
            )
        self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_the_image_is_built_from_the_packages_of_a_build(self):
        image = (PACKAGING / "Containerfile").read_text()
        self.check_options(re.search("^CMD (.*)$", image, re.MULTILINE)[1])
        listed = (limpid_program.ROOT / "tools" / "apt-packages.txt").read_text()
        build = listed.split("\n[build]\n")[1].split("[")[0].split()
        installed = image.split("recommends")[1].split("COPY")[0].replace("\\", "").split()
        self.assertEqual(set(build) - set(installed), {"python3-venv"})
        self.assertEqual(set(installed) - set(build), set())

    def test_the_image_gets_no_build_of_the_host(self):
        # CMake refuses a cache that was made in another folder.
        ignored = (limpid_program.ROOT / ".dockerignore").read_text().splitlines()
        self.assertIn("build", ignored)
        self.assertIn(".git", ignored)


if __name__ == "__main__":
    limpid_program.main()
