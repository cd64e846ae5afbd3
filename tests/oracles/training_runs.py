"""What tests of `limpid train` share: a tiny model, a small text, how runs are compared and how they are killed."""

import json
import os
import pathlib
import random
import signal
import subprocess
import tempfile
import time
import unittest
import unittest.mock

import limpid_program

CONFIG = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "vocab_size": 64,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 64,
    "rms_norm_eps": 1e-5,
    "tie_word_embeddings": True,
}
TEXT = "The cat sat on the mat. The dog sat on the log. " * 40


class Training(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        cache = unittest.mock.patch.dict(os.environ, XDG_CACHE_HOME=str(self.folder / "cache"))
        cache.start()
        self.addCleanup(cache.stop)
        self.config = self.folder / "config.json"
        self.config.write_text(json.dumps(CONFIG))
        self.data = self.folder / "text.txt"
        self.data.write_text(TEXT)

    def command(self, out: str, *options: object) -> list[str]:
        return [
            "train", "--config", self.config, "--tokenizer", "chars", "--data", self.data, "--batch-size", "4",
            "--seq-len", "32", "--lr", "1e-2", "--steps", "30", "--eval-every", "10", "--out", self.folder / out,
            *options,
        ]  # fmt: skip

    def fine(self, *arguments: object) -> str:
        code, out, err = limpid_program.outcome(*arguments)
        self.assertEqual(code, 0, err)
        return out

    def mistake(self, *arguments: object) -> str:
        code, _, err = limpid_program.outcome(*arguments)
        self.assertEqual(code, 1, err)
        self.assertEqual(err.count("\n"), 1, err)
        return err

    def log(self, out: str) -> list[dict]:
        """The lines of log.jsonl, without the times."""
        lines = [
            json.loads(line) for line in (self.folder / out / "log.jsonl").read_text().splitlines()
        ]
        return [{k: v for k, v in line.items() if k != "tokens_per_second"} for line in lines]

    def samples(self, out: str) -> list[dict]:
        lines = (self.folder / out / "samples.jsonl").read_text().splitlines()
        return [json.loads(line) for line in lines]

    def histograms(self, out: str) -> list[dict]:
        lines = (self.folder / out / "histograms.jsonl").read_text().splitlines()
        return [json.loads(line) for line in lines]

    def weights(self, out: str) -> bytes:
        return (self.folder / out / "step-000030" / "model.safetensors").read_bytes()

    def wait_for_step(self, out: str, step: int) -> None:
        log = self.folder / out / "log.jsonl"
        until = time.monotonic() + 60
        while not log.exists() or log.read_text().count("\n") <= step:
            self.assertLess(time.monotonic(), until)
            time.sleep(0.005)

    def start(self, *arguments: object, **options: object) -> subprocess.Popen:
        return subprocess.Popen(
            [str(limpid_program.PROGRAM), *map(str, arguments)],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            **options,
        )

    def assert_same_run(self, one: str, other: str) -> None:
        self.assertEqual(self.log(one), self.log(other))
        self.assertEqual(self.weights(one), self.weights(other))

    def kill_at_random(self, n_kills: int, seed: int, *options: object) -> None:
        """Kills runs that save often and goes on with each: their losses and last weights are those of the run that
        nobody interrupted. A third of the kills come at any moment from the start on, the others a few steps later."""
        options = ("--save-every", "1", "--steps", "30", *options)
        begin = time.monotonic()
        self.fine(*self.command("whole", *options))
        seconds = time.monotonic() - begin
        random_numbers = random.Random(seed)
        n_runs = n_killed = 0
        while n_killed < n_kills:
            n_runs += 1
            out = f"killed {n_runs}"
            while True:
                process = self.start(*self.begin_or_resume(out, *options))
                if n_killed < n_kills:
                    if random_numbers.random() < 2 / 3:
                        self.wait_for_more(out, process)
                        time.sleep(random_numbers.uniform(0, seconds / 4))
                    else:
                        time.sleep(random_numbers.uniform(0, seconds))
                    process.kill()
                _, err = process.communicate(timeout=120)
                if process.returncode != -signal.SIGKILL:
                    break
                n_killed += 1
            self.assertEqual(process.returncode, 0, err)
            self.assert_same_run(out, "whole")
            files, expected = (
                {path.name for path in (self.folder / run).iterdir()} for run in (out, "whole")
            )
            self.assertEqual(files, expected)

    def begin_or_resume(self, out: str, *options: object) -> list[object]:
        """A run that is killed before its settings are written has not begun."""
        if (self.folder / out / "run.json").exists():
            return ["train", "--resume", self.folder / out]
        return self.command(out, *options)

    def wait_for_more(self, out: str, process: subprocess.Popen) -> None:
        """Until the process has written a line of the log, or has ended."""
        log = self.folder / out / "log.jsonl"
        before = log.read_bytes() if log.exists() else b""
        while process.poll() is None and (not log.exists() or log.read_bytes() == before):
            time.sleep(0.002)
