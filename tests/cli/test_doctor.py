"""`limpid doctor` on this machine: what it looks at is there, and what is wrong is said with exit code 1."""

import ctypes
import ctypes.util
import json
import os
import pathlib
import subprocess
import tempfile
import unittest

import limpid_program


def doctor(cache: pathlib.Path, *arguments: str, **environment: str):
    """(exit code, standard output)"""
    done = subprocess.run(
        [limpid_program.PROGRAM, "doctor", *arguments],
        env={**os.environ, "XDG_CACHE_HOME": str(cache), **environment},
        capture_output=True,
        timeout=120,
    )
    assert done.stderr == b"", done.stderr
    return done.returncode, done.stdout.decode()


class Doctor(unittest.TestCase):
    def setUp(self) -> None:
        holder = tempfile.TemporaryDirectory()
        self.addCleanup(holder.cleanup)
        self.cache = pathlib.Path(holder.name)

    def report(self, *arguments: str, **environment: str):
        code, out = doctor(self.cache, "--json", *arguments, **environment)
        report = json.loads(out)
        self.assertEqual(code, 0 if report["healthy"] else 1, out)
        return report

    def problems(self, report) -> list[str]:
        return [finding["text"] for finding in report["findings"] if finding["kind"] == "problem"]

    def test_a_cache_whose_name_is_not_utf_8(self):
        code, out = doctor(self.cache / os.fsdecode(b"\xff"), "--no-measure", "--json")
        self.assertEqual((code, json.loads(out)["healthy"]), (0, True))

    def test_a_fresh_machine_is_healthy_and_is_told_what_comes_next(self):
        report = self.report()
        self.assertEqual(self.problems(report), [])
        self.assertIn(
            {"kind": "note", "text": "no model yet: limpid pull smollm2"}, report["findings"]
        )
        self.assertRegex(report["build"]["version"], r"^\d+\.\d+\.\d+$")
        self.assertTrue(report["build"]["compiler"])
        self.assertEqual(report["machine"]["cores"], len(os.sched_getaffinity(0)))
        self.assertIn(report["machine"]["isa"], report["machine"]["isas"])
        self.assertGreater(report["machine"]["available_bytes"], 0)
        for gpu in report["machine"]["gpus"]:
            self.assertRegex(gpu["device"], r"^(cuda|opencl)(:\d+)?$")
            self.assertGreater(gpu["memory_bytes"], 0)
        devices = {gpu["device"] for gpu in report["machine"]["gpus"]}
        self.assertEqual(
            {"cuda", "opencl"} - devices, report["machine"]["gpu_problems"].keys() - devices
        )
        limits = report["machine"]["limits"]
        self.assertEqual(limits["threads"], report["machine"]["cores"])
        self.assertGreater(limits["read_bytes_per_second"], 1e8)
        self.assertEqual(report["cache"]["path"], str(self.cache / "limpid"))
        self.assertTrue(report["cache"]["writable"])
        self.assertEqual(report["cache"]["entries"], [])
        self.assertFalse((self.cache / "limpid").exists(), "looking makes nothing")

    def test_why_a_gpu_is_not_used(self):
        """Another library in the driver's place, and the double of a driver where that is built."""
        name = ctypes.util.find_library("m")
        ctypes.CDLL(name)
        maps = pathlib.Path("/proc/self/maps").read_text().splitlines()
        libm = next(line.split()[-1] for line in maps if line.endswith(str(name)))
        with tempfile.TemporaryDirectory() as folder:
            for name in ("libcuda.so.1", "libOpenCL.so.1"):
                (pathlib.Path(folder) / name).symlink_to(libm)
            report = self.report("--no-measure", LD_LIBRARY_PATH=folder)
        problems = report["machine"]["gpu_problems"]
        self.assertRegex(problems["cuda"], r"^NVIDIA's driver lacks cu\w+; install a newer one$")
        self.assertRegex(problems["opencl"], r"lacks cl\w+")
        self.assertEqual(report["machine"]["gpus"], [])

        double = limpid_program.PROGRAM.parent / "tests" / "cuda_double"
        if not (double / "libcuda.so.1").exists():
            self.skipTest(f"{double} is not built")
        report = self.report("--no-measure", LD_LIBRARY_PATH=str(double))
        gpus = {gpu["device"]: gpu["name"] for gpu in report["machine"]["gpus"]}
        self.assertEqual(gpus.get("cuda"), "double of a GPU")
        note = "a GPU is here; answers come from the CPU unless --device cuda is given"
        self.assertIn({"kind": "note", "text": note}, report["findings"])

    def test_what_lies_in_the_cache_is_counted(self):
        models = self.cache / "limpid" / "models"
        models.mkdir(parents=True)
        (models / "a.gguf").write_bytes(bytes(1000))
        (models / "b.gguf").write_bytes(bytes(500))
        (self.cache / "limpid" / "x.lock").touch()
        (self.cache / "limpid" / "x.log").write_text("log")
        entries = self.report("--no-measure")["cache"]["entries"]
        self.assertEqual(
            entries,
            [
                {"name": "models", "files": 2, "bytes": 1500},
                {"name": "files beside them", "files": 2, "bytes": 3},
            ],
        )
        text = doctor(self.cache, "--no-measure")[1]
        self.assertRegex(text, r"\n +models +1\.5 kB, 2 files\n")
        self.assertRegex(text, r"\nGPUs      cuda      \S.*\n          opencl    \S")
        self.assertTrue(text.endswith("healthy\n"))

    def test_a_damaged_model_is_a_problem(self):
        path = self.cache / "limpid" / "models" / limpid_program.SMOLLM2.name
        path.parent.mkdir(parents=True)
        path.write_bytes(b"GGUF")
        report = self.report("--no-measure")
        self.assertEqual(
            self.problems(report), [f"{path} is damaged; get it again: limpid pull smollm2"]
        )
        self.assertTrue(doctor(self.cache, "--no-measure")[1].endswith("\n1 problem\n"))

    def test_the_model_that_was_pulled_is_verified(self):
        if not limpid_program.SMOLLM2.exists():
            self.skipTest("needs the model of `limpid pull smollm2`")
        report = self.report("--no-measure", XDG_CACHE_HOME=str(limpid_program.CACHE.parent))
        self.assertEqual(report["model"]["state"], "verified")

    def test_a_cache_that_cannot_be_written_is_a_problem(self):
        blocked = self.cache / "a file"
        blocked.write_text("no folder")
        report = self.report("--no-measure", XDG_CACHE_HOME=str(blocked))
        self.assertFalse(report["cache"]["writable"])
        self.assertEqual(len(self.problems(report)), 1)
        self.assertIn("XDG_CACHE_HOME", self.problems(report)[0])

    def test_slower_kernels_than_possible_are_noted(self):
        report = self.report("--no-measure", LIMPID_ISA="scalar")
        if report["machine"]["isas"] == ["scalar"]:
            self.skipTest("this CPU has no faster kernels")
        notes = [finding["text"] for finding in report["findings"]]
        self.assertTrue(any("unset LIMPID_ISA" in note for note in notes), notes)


if __name__ == "__main__":
    limpid_program.main()
