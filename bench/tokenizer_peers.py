"""The tokenizers that compare_tokenizers.py runs in turn: each encodes a text once when asked and says how long it took.

Times are processor time. All peers get the same bytes, each in the form that suits it best: what is measured is the call
that gives ids.
"""

from __future__ import annotations

import base64
import ctypes
import os
import pathlib
import shlex
import subprocess
import sys
import tempfile
import time

import numpy

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "tests" / "oracles"), str(ROOT / "tools" / "golden")]


class Program:
    """A program that encodes the text once for each line of its input and answers "SECONDS IDS"; a line that is not
    empty names a file for the ids, as 32-bit integers."""

    def __init__(self, command: list[str], text: pathlib.Path) -> None:
        self.process = subprocess.Popen(
            [*command, str(text)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def ask(self, line: str) -> float:
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline().split()
        if len(answer) != 2:
            raise RuntimeError(f"{self.process.args} gave no answer")
        return float(answer[0])

    def ids(self) -> numpy.ndarray:
        with tempfile.NamedTemporaryFile() as file:
            self.ask(file.name)
            return numpy.fromfile(file.name, dtype=numpy.int32)

    def seconds(self) -> float:
        return self.ask("")

    def close(self) -> None:
        self.process.stdin.close()
        self.process.wait()


class FirstPass:
    """A program that is started anew for each pass, so that it remembers nothing of the text."""

    def __init__(self, command: list[str], text: pathlib.Path) -> None:
        self.command, self.text = command, text

    def ids(self) -> numpy.ndarray:
        return self.once(Program.ids)

    def seconds(self) -> float:
        return self.once(Program.seconds)

    def once(self, measure):
        program = Program(self.command, self.text)
        try:
            return measure(program)
        finally:
            program.close()

    def close(self) -> None:
        pass


class InProcess:
    """A callable that gives ids."""

    def __init__(self, encode, text) -> None:
        self.encode, self.text = encode, text

    def ids(self) -> numpy.ndarray:
        return numpy.asarray(self.encode(self.text), dtype=numpy.int32)

    def seconds(self) -> float:
        start = time.process_time()
        self.encode(self.text)
        return time.process_time() - start

    def close(self) -> None:
        pass


def limpid(
    program: pathlib.Path, model: pathlib.Path, text: pathlib.Path, kind: type = Program
) -> Program | FirstPass:
    return kind([str(program), str(model)], text)


def named_command(command: str, text: pathlib.Path) -> Program:
    return Program(shlex.split(command), text)


def hugging_face(tokenizer_json: pathlib.Path, text: pathlib.Path) -> InProcess:
    """A batch of parts of 4 KiB or so: on one long string it is several times slower. One thread."""
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    import tokenizers

    tokenizer = tokenizers.Tokenizer.from_file(str(tokenizer_json))
    tokenizer.encode_special_tokens = True
    parts = cut(read(text), 4096)

    def encode(parts: list[str]) -> list[int]:
        encodings = tokenizer.encode_batch_fast(parts, add_special_tokens=False)
        return [token_id for encoding in encodings for token_id in encoding.ids]

    return InProcess(encode, parts)


def read(path: pathlib.Path) -> str:
    return path.read_bytes().decode(errors="replace")  # line ends as they are


def cut(text: str, size: int) -> list[str]:
    """Parts of at least `size` characters, cut between a letter and a space with a letter behind it: every expression
    cuts there too, so no token reaches over."""
    parts, begin, at = [], 0, 0
    while (at := text.find(" ", max(at + 1, begin + size))) >= 0:
        if text[at - 1].isalpha() and text[at + 1 : at + 2].isalpha():
            parts.append(text[begin:at])
            begin = at
    return [*parts, text[begin:]]


def tiktoken(ranks_file: pathlib.Path, text: pathlib.Path) -> InProcess:
    import tiktoken
    from tiktoken_ext import openai_public
    from tokenizer_reference import cl100k

    ranks = {}
    for line in ranks_file.read_bytes().splitlines():
        token, rank = line.split()
        ranks[base64.b64decode(token)] = int(rank)
    pattern = cl100k(r"\p{N}{1,3}")  # Meta's; OpenAI's own are in tiktoken_ext
    if ranks_file.suffix == ".tiktoken":
        # The constructor would download the ranks.
        openai_public.load_tiktoken_bpe = lambda *_, **__: ranks
        pattern = openai_public.ENCODING_CONSTRUCTORS[ranks_file.stem]()["pat_str"]
    encoding = tiktoken.Encoding(
        ranks_file.name, pat_str=pattern, mergeable_ranks=ranks, special_tokens={}
    )
    return InProcess(encoding.encode_ordinary, read(text))


def llama_cpp(model: pathlib.Path, text: pathlib.Path) -> InProcess:
    import llama_cpp
    import llama_cpp_oracle  # quiet logs  # noqa: F401

    params = llama_cpp.llama_model_default_params()
    params.vocab_only = True
    loaded = llama_cpp.llama_model_load_from_file(os.fsencode(model), params)
    if not loaded:
        raise RuntimeError(f"llama.cpp cannot load {model}")
    vocab = llama_cpp.llama_model_get_vocab(loaded)
    raw = text.read_bytes()
    room = (ctypes.c_int32 * len(raw))()

    def encode(raw: bytes) -> ctypes.Array:
        n = llama_cpp.llama_tokenize(vocab, raw, len(raw), room, len(room), False, False)
        if n < 0:
            raise RuntimeError(f"llama.cpp: {n}")
        return memoryview(room)[:n]

    return InProcess(encode, raw)
