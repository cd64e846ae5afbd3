"""The examples that `limpid COMMAND --help` shows are run, as they stand there.

A small model of random weights lies where `limpid pull smollm2` would put the real one, with as many tokens
in its vocabulary; training is cut to a few steps. What needs the network is named here and not run.
"""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

import gguf
import limpid_program
import numpy

ROOT = pathlib.Path(__file__).resolve().parents[2]
DATA = ROOT / "tests" / "data"
sys.path.insert(0, str(ROOT / "tools" / "golden"))
import make_tiny_chat_gguf as tiny_chat  # noqa: E402

N_VOCAB = 49152  # SmolLM2's
N_CTX = 8192
FEW_STEPS = "--num_steps 20"
NEEDS_NETWORK = {
    "limpid pull smollm2",
    "limpid pull Qwen/Qwen3-0.6B",
    "limpid pull ORGANISATION/MODEL-GGUF --file model-Q4_K_M.gguf",
}
# Without a terminal, or without groff, or without a browser to look at it.
NEEDS_PROGRAM = {"limpid man | man -l -": "man"}


def text_of(*arguments: str) -> str:
    return limpid_program.run(*arguments).decode()


def commands() -> list[str]:
    return re.findall(r"^  (\w+) +\S", text_of("--help").split("limpid COMMAND --help")[0], re.M)


def examples(command: str) -> list[str]:
    return [
        line.strip() for line in text_of(command, "--help").split("\nexamples:\n")[1].splitlines()
    ]


def write_stand_in(path: pathlib.Path) -> None:
    """tiny_chat.gguf with SmolLM2's number of tokens and its context."""
    pieces, types = tiny_chat.vocabulary()
    n_more = N_VOCAB - len(pieces)
    pieces = pieces + [f"<unused {i}>" for i in range(n_more)]
    types = types + [gguf.TokenType.NORMAL] * n_more
    original = tiny_chat.vocabulary, tiny_chat.N_CTX
    tiny_chat.vocabulary, tiny_chat.N_CTX = lambda: (pieces, types), N_CTX
    try:
        writer = gguf.GGUFWriter(path, "llama")
        tiny_chat.add_metadata(writer)
        tiny_chat.add_tensors(writer, N_VOCAB)
    finally:
        tiny_chat.vocabulary, tiny_chat.N_CTX = original
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def write_importance(path: pathlib.Path, model: pathlib.Path) -> None:
    """Every column of every matrix counts alike."""
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_string("general.type", "imatrix")
    for tensor in gguf.GGUFReader(model).tensors:
        if len(tensor.shape) != 2:
            continue
        writer.add_tensor(f"{tensor.name}.in_sum2", numpy.ones((1, int(tensor.shape[0])), "f4"))
        writer.add_tensor(f"{tensor.name}.counts", numpy.ones((1, 1), "f4"))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


class Examples(unittest.TestCase):
    @classmethod
    def setUpClass(cls) -> None:
        holder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(holder.cleanup)
        cls.folder = pathlib.Path(holder.name)
        models = cls.folder / "cache" / "limpid" / "models"
        models.mkdir(parents=True)
        stand_in = models / limpid_program.SMOLLM2.name
        write_stand_in(stand_in)
        cls.environment = {
            "PATH": f"{cls.folder}/bin:{os.environ['PATH']}",
            "HOME": str(cls.folder),
            "XDG_CACHE_HOME": str(cls.folder / "cache"),
            "LLAMA_ARG_N_PREDICT": "8",
            "LANG": "C.UTF-8",
        }
        (cls.folder / "bin").mkdir()
        (cls.folder / "bin" / "limpid").symlink_to(limpid_program.PROGRAM)
        # What the examples name.
        tiny = DATA / "cli" / "tiny_chat.gguf"
        shutil.copy(tiny, cls.folder / "model-f16.gguf")
        write_importance(cls.folder / "imatrix.gguf", tiny)
        (cls.folder / "keys.txt").write_text("a key\n")
        (cls.folder / "text.txt").write_text("the world is in the hello")
        (cls.folder / "wiki.test.raw").write_text("the world is in the hello and " * 400)
        for folder in ("SmolLM2-135M", "original"):
            limpid_program.run("convert", tiny, cls.folder / folder, "--to", "safetensors")
        shutil.copy(cls.folder / "original" / "config.json", cls.folder)

    def prepare(self, example: str) -> str:
        model = DATA / "cli" / "tiny_chat.gguf"
        if "--trace " in example and "limpid run" not in example:  # the file of another engine
            model = DATA / "golden" / "llama" / "gqa_untied.gguf"
            shutil.copy(
                model.with_suffix(".trace.safetensors"), self.folder / "model.trace.safetensors"
            )
        shutil.copy(model, self.folder / "model.gguf")
        if "--watch" in example:  # until it waits for somebody to open the page, and then SIGINT
            return (
                # set -m: otherwise the shell lets a job in the background ignore SIGINT
                f"set -m; rm -f log; {example} 2>log & until grep -qs 'http://' log; do sleep 0.1; done; "
                "kill -INT $!; wait $!; [ $? = 130 ]"
            )
        if example.startswith("limpid microgpt") and "--sample-only" not in example:
            return re.sub(r" --num_steps \d+", "", example) + " " + FEW_STEPS
        if example.startswith("limpid train") and "--resume" not in example:
            return f"{example} --steps 2 --seq-len 16 --batch-size 2 --eval-windows 4"
        if example.startswith("limpid serve"):  # until it is ready, and then SIGTERM
            return (
                f"rm -f log; {example} --port 0 2>log & until grep -qs 'is ready' log; do sleep 0.1; done; "
                "kill $!; wait $!"
            )
        if "--connect" in example:  # with a server, on a port that is free
            connect = example.replace("http://localhost:8080", "$(cat url)")
            return (
                "rm -f log; limpid serve -m model.gguf --port 0 >url 2>log & "
                "until grep -qs 'is ready' log; do sleep 0.1; done; "
                f"{connect}; code=$?; kill $!; wait $!; exit $code"
            )
        if example.startswith("limpid doctor"):  # it would find the stand-in to be another file
            return f"XDG_CACHE_HOME=$PWD/fresh {example}"
        return example

    def check(self, example: str) -> None:
        done = subprocess.run(
            ["bash", "-c", "set -o pipefail; " + self.prepare(example)],
            cwd=self.folder,
            env=self.environment,
            input=b"hello\n",
            capture_output=True,
            timeout=120,
        )
        self.assertEqual(done.returncode, 0, f"{example}\n{done.stderr.decode()[-2000:]}")
        self.assertNotIn(b"limpid: ", done.stderr, example)

    def test_every_command_has_examples_that_work(self):
        n_run = 0
        not_run = set()
        for command in commands():
            shown = examples(command)
            self.assertTrue(shown, f"{command} shows no example")
            for example in shown:
                self.assertRegex(example, rf"\blimpid {command}\b")
                needed = NEEDS_PROGRAM.get(example)
                if example in NEEDS_NETWORK:
                    not_run.add(example)
                elif needed is None or shutil.which(needed):
                    with self.subTest(example):
                        self.check(example)
                    n_run += 1
        self.assertEqual(not_run, NEEDS_NETWORK)
        self.assertGreater(n_run, 25)


if __name__ == "__main__":
    limpid_program.main()
