"""`mpirun limpid train`: the bits of one process, and what happens when a rank dies."""

import os
import pathlib
import shutil
import signal
import subprocess
import time
import unittest

import limpid_program
from training_runs import Training

MPIRUN = shutil.which("mpirun")
ENVIRONMENT = {
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "OMPI_MCA_rmaps_base_oversubscribe": "1",
    # The machine may be busy with other tests.
    "OMPI_MCA_mpi_yield_when_idle": "1",
    "OMPI_MCA_hwloc_base_binding_policy": "none",
}


def setUpModule() -> None:
    if MPIRUN is None:
        raise unittest.SkipTest("needs mpirun (Debian: openmpi-bin)")
    build = limpid_program.run_json("doctor", "--no-measure", "--json")["build"]
    if not build["mpi"]:
        raise unittest.SkipTest("needs a build with MPI (Debian: libopenmpi-dev)")
    if build["sanitised"]:
        raise unittest.SkipTest("sanitizers report what they see of the MPI library")


def command(n: int, *arguments: object) -> list[str]:
    return [MPIRUN, "-np", str(n), str(limpid_program.PROGRAM), *map(str, arguments)]


def outcome(n: int, *arguments: object) -> tuple[int, str, str]:
    done = subprocess.run(
        command(n, *arguments),
        capture_output=True,
        timeout=120,
        env={**os.environ, **ENVIRONMENT},
        text=True,
    )
    return done.returncode, done.stdout, done.stderr


class Ranks(Training):
    def test_ranks_are_accumulated_batches(self):
        self.fine(*self.command("one", "--grad-accum", "2", "--save-every", "10"))
        code, out, err = outcome(2, *self.command("two", "--save-every", "10"))
        self.assertEqual(code, 0, err)
        self.assertEqual(out.count("step 30 of 30"), 1)  # rank 0 alone reports
        self.assert_same_run("two", "one")
        steps = [sorted(f.name for f in (self.folder / run).iterdir()) for run in ("one", "two")]
        self.assertEqual(steps[1], steps[0])
        # With batches to accumulate on each rank too.
        self.fine(*self.command("four", "--grad-accum", "4"))
        code, _, err = outcome(2, *self.command("two by two", "--grad-accum", "2", "-t", "2"))
        self.assertEqual(code, 0, err)
        self.assert_same_run("two by two", "four")

    def test_muon_in_f16(self):
        options = ["--optimizer", "muon", "--dtype", "f16", "--checkpoint-activations", "on"]
        self.fine(*self.command("one", "--grad-accum", "2", *options))
        code, _, err = outcome(2, *self.command("two", *options))
        self.assertEqual(code, 0, err)
        self.assert_same_run("two", "one")

    def test_a_run_goes_on_with_another_number_of_ranks(self):
        self.fine(*self.command("one", "--grad-accum", "2"))
        for first, then in ((1, 2), (2, 1)):
            out = f"from {first} to {then}"
            options = ["--save-every", "10", "--grad-accum", 2 // first]
            code, _, err = outcome(first, *self.command(out, *options))
            self.assertEqual(code, 0, err)
            shutil.rmtree(self.folder / out / "step-000030")
            code, _, err = outcome(then, "train", "--resume", self.folder / out)
            self.assertEqual(code, 0, err)
            self.assert_same_run(out, "one")
        code, _, err = outcome(3, "train", "--resume", self.folder / "one")
        self.assertNotEqual(code, 0)
        self.assertIn("3 processes cannot share the 2 batches of a step evenly", err)

    def test_mistakes_are_told_once(self):
        code, _, err = outcome(2, *self.command("a", "--schedule", "sine"))
        self.assertNotEqual(code, 0)
        self.assertEqual(err.count("--schedule: unknown name 'sine'"), 1)
        code, _, err = outcome(2, *self.command("c", "--grad-accum", str(2**63 - 1)))
        self.assertNotEqual(code, 0)
        self.assertEqual(err.count("is too large for 2 processes"), 1, err)
        diverging = ("--lr", "1e30", "--clip", "0", "--optimizer", "sgd", "--save-every", "1")
        code, _, err = outcome(2, *self.command("b", *diverging))
        self.assertNotEqual(code, 0)
        self.assertEqual(err.count("training diverged at step"), 1, err)
        self.assertFalse(list((self.folder / "b").glob("step-*")))  # they would be of that loss

    def start_ranks(self, out: str, *options: str) -> tuple[subprocess.Popen, list[int]]:
        """mpirun with a long run, some steps into it, and the ids of the ranks' processes."""
        arguments = self.command(out, "--steps", "100000", "--save-every", "5", *options)
        process = subprocess.Popen(
            command(2, *arguments), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env={**os.environ, **ENVIRONMENT}
        )  # fmt: skip
        self.addCleanup(process.kill)
        self.wait_for_step(out, 12)
        ranks = []
        for status in pathlib.Path("/proc").glob("[0-9]*/status"):
            try:
                if f"\nPPid:\t{process.pid}\n" in status.read_text():
                    ranks.append(int(status.parent.name))
            except OSError:
                continue
        self.assertEqual(len(ranks), 2)
        return process, sorted(ranks)

    def test_a_rank_that_dies_ends_the_run_and_loses_no_checkpoint(self):
        for rank in (0, 1):
            out = f"killed {rank}"
            process, ranks = self.start_ranks(out)
            os.kill(ranks[rank], signal.SIGKILL)
            _, err = process.communicate(timeout=60)
            self.assertNotEqual(process.returncode, 0)
            self.assertIn(f"rank {rank}".encode(), err)
            self.assertIn(b"signal 9", err)
            until = time.monotonic() + 60
            while any(pathlib.Path(f"/proc/{pid}").exists() for pid in ranks):
                self.assertLess(time.monotonic(), until)
                time.sleep(0.01)
            newest = sorted((self.folder / out).glob("step-*"))[-1]
            self.fine("run", "-m", newest, "-p", "The cat", "-n", "4")
            self.assertTrue((newest / "training_state.safetensors").exists())

    def test_ranks_share_the_cores_that_they_are_bound_to(self):
        """Two ranks on two cores, of a machine that may have more, have a thread each."""
        cores = os.sched_getaffinity(0)
        os.sched_setaffinity(0, sorted(cores)[:2])
        self.addCleanup(os.sched_setaffinity, 0, cores)
        n_threads = []
        for options in ([], ["-t", "1"]):
            process, ranks = self.start_ranks(f"run {len(n_threads)}", *options)
            tasks = [pathlib.Path(f"/proc/{rank}/task") for rank in ranks]
            counts = []  # the least: a thread that saves or samples lives for a moment
            for _ in range(20):
                counts.append([len(list(folder.iterdir())) for folder in tasks])
                time.sleep(0.02)
            n_threads.append([min(of_rank) for of_rank in zip(*counts, strict=True)])
            os.kill(ranks[0], signal.SIGTERM)
            process.communicate(timeout=60)
        self.assertEqual(n_threads[0], n_threads[1])

    def test_sigterm_stops_all_ranks_and_saves(self):
        process, ranks = self.start_ranks("stopped")
        os.kill(ranks[1], signal.SIGTERM)
        _, err = process.communicate(timeout=60)
        self.assertIn(b"stopped; go on with: limpid train --resume", err)
        steps = len(self.log("stopped"))
        self.assertTrue((self.folder / "stopped" / f"step-{steps:06}").exists())


if __name__ == "__main__":
    limpid_program.main()
