"""`limpid train`: runs that are stopped and killed go on as if nothing had been."""

import json
import resource
import shutil
import signal
import time

import limpid_program
from training_runs import Training


def limit_file_sizes() -> None:
    resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))


class Interruptions(Training):
    def test_killed_and_resumed_is_the_same_run(self):
        options = ["--sample-every", "2", "--sample-tokens", "8", "--eval-every", "4"]
        self.kill_and_resume((4, 9, 20), *options)

    def test_muon_in_f16_resumes_too(self):
        options = ["--optimizer", "muon", "--dtype", "f16", "--checkpoint-activations", "on"]
        self.kill_and_resume((9,), *options)
        log = self.log("whole")
        self.assertEqual({line["loss_scale"] for line in log}, {65536})
        self.assertLess(log[-1]["val_loss"], log[0]["val_loss"] - 0.5)

    def kill_and_resume(self, steps: tuple[int, ...], *options: str) -> None:
        self.fine(*self.command("whole", "--save-every", "3", *options))
        for kill_at in steps:
            out = f"killed-{kill_at}"
            process = self.start(*self.command(out, "--save-every", "3", *options))
            self.wait_for_step(out, kill_at)
            process.kill()
            process.communicate()
            self.fine("train", "--resume", self.folder / out)
            self.assertEqual(self.log(out), self.log("whole"))
            self.assertEqual(self.samples(out), self.samples("whole"))
            self.assertEqual(self.histograms(out), self.histograms("whole"))
            self.assertEqual(self.weights(out), self.weights("whole"))
            self.assertEqual(len(list((self.folder / out).glob("step-*"))), 2)

    def test_killed_at_any_moment(self):
        self.kill_at_random(6, 1)

    def test_a_run_killed_before_it_removed_an_old_checkpoint_removes_it_later(self):
        self.fine(*self.command("run", "--save-every", "10"))
        saved = sorted((self.folder / "run").glob("step-*"))
        shutil.copytree(saved[0], saved[0].with_name("step-000001"))
        self.fine("train", "--resume", self.folder / "run")
        self.assertEqual(sorted((self.folder / "run").glob("step-*")), saved)

    def test_a_full_disk_loses_no_checkpoint(self):
        self.fine(*self.command("whole"))
        process = self.start(*self.command("full", "--save-every", "10"))
        self.wait_for_step("full", 14)
        process.kill()
        process.communicate()
        saved = self.folder / "full" / "step-000010"
        before = {file.name: file.read_bytes() for file in saved.iterdir()}

        # Python ignores the signal that would end the program, so that writing fails instead.
        process = self.start(
            "train", "--resume", self.folder / "full", preexec_fn=limit_file_sizes, restore_signals=False
        )  # fmt: skip
        _, err = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 1, err)
        self.assertRegex(err.decode(), "cannot write .*File too large")
        self.assertEqual({file.name: file.read_bytes() for file in saved.iterdir()}, before)
        self.fine("train", "--resume", self.folder / "full")
        self.assert_same_run("full", "whole")

    def test_a_checkpoint_that_cannot_be_written_leaves_nothing(self):
        every = ["--save-every", "10", "--eval-every", "0", "--sample-every", "0"]
        process = self.start(
            *self.command("a", *every), preexec_fn=limit_file_sizes, restore_signals=False
        )
        _, err = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 1, err)
        self.assertRegex(err.decode(), "cannot write .*step-000010.*File too large")
        names = {path.name for path in (self.folder / "a").iterdir()}
        self.assertEqual(names, {"run.json", "log.jsonl", "tokenizer.json"})

    def test_a_model_whose_rows_are_interleaved_resumes_too(self):
        # GGUF's Llama; the checkpoints of a run are half-split.
        command = [
            "train",
            "-m",
            limpid_program.DATA / "cli" / "tiny_chat.gguf",
            "--data",
            self.data,
            "--seq-len",
            16,
        ]
        command += [
            "--batch-size",
            4,
            "--steps",
            12,
            "--save-every",
            4,
            "--val",
            0,
            "--lr",
            "1e-2",
            "--out",
        ]
        self.fine(*command, self.folder / "whole")
        self.fine(*command, self.folder / "cut")
        shutil.rmtree(self.folder / "cut" / "step-000012")
        self.fine("train", "--resume", self.folder / "cut")
        self.assertEqual(self.log("cut"), self.log("whole"))
        whole, cut = (
            self.folder / out / "step-000012" / "model.safetensors" for out in ("whole", "cut")
        )
        self.assertEqual(cut.read_bytes(), whole.read_bytes())

    def test_a_damaged_checkpoint_is_named_with_what_to_do(self):
        self.fine(*self.command("a", "--save-every", "15"))
        before, newest = sorted((self.folder / "a").glob("step-*"))
        resume = ["train", "--resume", self.folder / "a", "--steps", "31"]
        names = "config.json", "model.safetensors", "tokenizer.json", "training_state.safetensors"
        for name in names:
            whole = (newest / name).read_bytes()
            (newest / name).write_bytes(whole[: len(whole) // 2])
            err = self.mistake(*resume)
            self.assertIn(f"{newest}: checkpoint: cannot be read (", err)
            self.assertIn(name, err)
            self.assertIn(f"; without this folder, the run goes on from {before}\n", err)
            (newest / name).unlink()
            err = self.mistake(*resume)
            self.assertIn(f"; without this folder, the run goes on from {before}\n", err)
            (newest / name).write_bytes(whole)
        err = self.mistake(*resume, "-m", newest)
        self.assertIn("and has no -m; leave -m out", err)
        (newest / "model.safetensors").write_bytes(b"")
        shutil.rmtree(before)
        self.assertIn("without this folder, the run begins anew\n", self.mistake(*resume))
        shutil.rmtree(newest)
        self.fine(*resume)
        self.assertEqual([line["step"] for line in self.log("a")], list(range(32)))

    def test_control_c_saves(self):
        self.fine(*self.command("whole"))
        process = self.start(*self.command("stopped"))
        self.wait_for_step("stopped", 5)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=60)
        if process.returncode == 0:
            self.skipTest("the run ended before the signal came")
        self.assertEqual(process.returncode, 130)
        self.assertIn(b"--resume", err)
        self.fine("train", "--resume", self.folder / "stopped")
        self.assertEqual(self.log("stopped"), self.log("whole"))
        self.assertEqual(self.weights("stopped"), self.weights("whole"))

    def test_control_c_before_the_first_step_leaves_nothing(self):
        self.data.write_text("".join(f"The cat sat on mat {i}.\n" for i in range(1_000_000)))
        process = self.start(*self.command("a", "--tokenizer", "bytes"))
        settings = self.folder / "a" / "run.json"
        until = time.monotonic() + 60
        while not settings.exists():
            self.assertLess(time.monotonic(), until)
            time.sleep(0.001)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=120)
        self.assertEqual(process.returncode, 130, err)
        self.assertIn(b"stopped before the first step; nothing was saved", err)
        self.assertFalse((self.folder / "a").exists())

    def test_a_stop_keeps_no_weights_that_diverged(self):
        """Of each step the update is so large that the next loss may not be finite."""
        diverging = ["--optimizer", "sgd", "--clip", "0", "--lr", "10", "--steps", "100000"]
        process = self.start(*self.command("a", *diverging, "--save-every", "1", "--keep", "1"))
        self.wait_for_step("a", 1)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=60)
        self.assertIn(process.returncode, (1, 130), err)
        newest = max((self.folder / "a").glob("step-*"))
        again = ["--data", self.data, "--seq-len", "32", "--lr", "0", "--steps", "1"]
        self.fine("train", "-m", newest, "--out", self.folder / "b", *again)

    def test_a_run_goes_on_from_another_folder(self):
        command = [word.name if word == self.data else word for word in self.command("moved")]
        process = self.start(*command, "--steps", "4", cwd=self.data.parent)
        _, err = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 0, err)
        self.fine("train", "--resume", self.folder / "moved", "--steps", "5")

    def test_a_run_goes_on_with_files_that_moved(self):
        self.fine(*self.command("base", "--steps", "2"))
        base = self.folder / "base" / "step-000002"
        adapt = ["train", "-m", base, "--lora", "2", "--data", self.data, "--seq-len", "32"]
        self.fine(*adapt, "--steps", "2", "--out", self.folder / "a")
        text = self.data.rename(self.folder / "moved.txt")
        model = base.rename(self.folder / "moved")
        resume = ["train", "--resume", self.folder / "a", "--steps", "3"]
        err = self.mistake(*resume, "--data", text)
        self.assertIn(f"{base} does not exist; if it has moved, give its new path as -m", err)
        self.assertIn("text.txt", self.mistake(*resume, "-m", model))
        self.fine(*resume, "--data", text, "-m", model)
        settings = json.loads((self.folder / "a" / "run.json").read_text())
        self.assertEqual((settings["model"], settings["data"]), (str(model), [str(text)]))
        other = self.folder / "other.txt"
        other.write_text(text.read_text() * 2)
        resume[-1] = "4"
        self.assertIn("is of other data", self.mistake(*resume, "--data", other))
        learn = ["train", "-m", model, "--data", text, "--seq-len", "32", "--steps", "3"]
        self.fine(*learn, "--out", self.folder / "b")
        self.assertIn(
            "is of another model: the tensors that do not learn have changed",
            self.mistake(*resume, "-m", self.folder / "b"),
        )
        wider = limpid_program.DATA / "cli" / "tiny_chat.gguf"
        self.assertIn(
            f"; is {wider} the model that the run began with? without this folder, the run goes on",
            self.mistake(*resume, "-m", wider),
        )
        self.fine(*resume)
        err = self.mistake(*resume, "--tokenizer", model)
        self.assertIn("--tokenizer is for a file that has moved; leave it out", err)

    def test_an_adapter_goes_on_with_a_tokenizer_that_moved(self):
        tokenizer = self.folder / "tokenizer.json"
        self.fine("tokenizer", "train", self.data, "--vocab-size", "262", "-o", tokenizer)
        base = ["--tokenizer", tokenizer, "--steps", "1"]
        self.fine(*self.command("base", *base))
        adapt = ["train", "-m", self.folder / "base", "--lora", "2", "--tokenizer", tokenizer]
        rest = ["--data", self.data, "--seq-len", "32", "--steps", "2"]
        self.fine(*adapt, *rest, "--out", self.folder / "a")
        moved = tokenizer.rename(self.folder / "moved.json")
        resume = ["train", "--resume", self.folder / "a", "--steps", "3"]
        self.assertIn("tokenizer.json", self.mistake(*resume))
        self.assertIn("leave it out", self.mistake(*resume, "--tokenizer", "bytes"))
        self.fine(*resume, "--tokenizer", moved)
        settings = json.loads((self.folder / "a" / "run.json").read_text())
        self.assertEqual(settings["tokenizer"], str(moved))

    def test_a_new_run_does_not_go_on_from_checkpoints_of_another(self):
        self.fine(*self.command("a", "--tokenizer", "bytes", "--steps", "2"))
        run = self.folder / "a"
        (run / "run.json").unlink()
        (run / "tokenizer.json").unlink()
        (run / "tokenizer_config.json").unlink()
        before = sorted(path.name for path in run.iterdir())
        err = self.mistake(*self.command("a", "--tokenizer", "bytes"))
        self.assertRegex(err, "a holds checkpoints but no run.json; name another folder, or move")
        self.assertEqual(sorted(path.name for path in run.iterdir()), before)

    def test_a_line_of_the_log_without_a_number_of_a_step_is_dropped(self):
        self.fine(*self.command("a", "--steps", "4"))
        before = self.log("a")
        log = self.folder / "a" / "log.jsonl"
        log.write_text('{"step": "x"}\n{"step": null}\n{"loss": 1}\n[1]\n' + log.read_text())
        self.fine("train", "--resume", self.folder / "a", "--steps", "5")
        self.assertEqual([line["step"] for line in self.log("a")], [0, 1, 2, 3, 4, 5])
        self.assertEqual(self.log("a")[:4], before[:4])

    def test_one_process_works_in_a_folder(self):
        process = self.start(*self.command("a", "--steps", "100000", "--save-every", "0"))
        self.wait_for_step("a", 1)
        self.assertIn("another process", self.mistake("train", "--resume", self.folder / "a"))
        process.kill()
        process.communicate()
        for _ in range(2):
            self.assertIn(
                "has no checkpoint yet; it saves one at step 100000, or when it is stopped",
                self.mistake("run", "-m", self.folder / "a", "-p", "The"),
            )
            (self.folder / "a" / "log.jsonl").unlink(missing_ok=True)


if __name__ == "__main__":
    limpid_program.main()
