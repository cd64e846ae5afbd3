"""Limpid's reader and writer of PyTorch's files against Python's own zip and pickle, without torch: archives that
tools/golden/torch_file.py writes, read by us; and files that we write, read by zipfile and by a pickle.Unpickler that knows
what torch's names mean. tests/oracles/live_torch_files.py does the same with torch itself.
"""

from __future__ import annotations

import json
import os
import pickle
import subprocess
import sys
import tempfile
import unittest
import zipfile
from collections import OrderedDict
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools" / "golden"))
import torch_file  # noqa: E402

TOOL = Path(os.environ["LIMPID_PROGRAM"]).parent / "tests" / "gguf_tool"
DTYPES = {
    "FloatStorage": "<f4",
    "HalfStorage": "<f2",
    "BFloat16Storage": "<u2",
    "DoubleStorage": "<f8",
    "LongStorage": "<i8",
}


def tool(*arguments: str | Path) -> str:
    done = subprocess.run([TOOL, *arguments], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise AssertionError(done.stderr)
    return done.stdout


class StateDictUnpickler(pickle.Unpickler):
    def __init__(self, archive: zipfile.ZipFile, root: str) -> None:
        super().__init__(archive.open(f"{root}/data.pkl"))
        self.archive, self.root = archive, root

    def find_class(self, module: str, name: str):
        if (module, name) == ("collections", "OrderedDict"):
            return OrderedDict
        if (module, name) == ("torch._utils", "_rebuild_tensor_v2"):
            return self.rebuild
        if module == "torch" and name in DTYPES:
            return DTYPES[name]
        raise AssertionError(f"{module}.{name}")

    def persistent_load(self, pid):
        kind, dtype, key, device, n_elements = pid
        assert (kind, device) == ("storage", "cpu")
        storage = np.frombuffer(self.archive.read(f"{self.root}/data/{key}"), dtype)
        assert storage.size == n_elements
        return storage

    @staticmethod
    def rebuild(storage, offset, sizes, strides, requires_grad, hooks):
        assert not requires_grad and hooks == OrderedDict()
        strides = [stride * storage.itemsize for stride in strides]
        return np.lib.stride_tricks.as_strided(storage[offset:], sizes, strides)


class TorchFiles(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        random = np.random.default_rng(1)
        self.arrays = {
            "tok.weight": random.standard_normal((5, 4)),
            "norm.weight": random.standard_normal(7),
            "deep.conv": random.standard_normal((2, 1, 3, 1)),
            "scalar": np.array(1.5),
            "empty": np.zeros((0, 3)),
        }

    def written(self, dtype: str) -> Path:
        path = self.folder / f"{dtype}.pth"
        tensors = [(name, array.shape) for name, array in self.arrays.items()]
        torch_file.write(path, tensors, iter(self.arrays.values()), dtype)
        return path

    def test_we_read_what_python_writes(self) -> None:
        for dtype in torch_file.STORAGES:
            tensors = json.loads(tool("dump", self.written(dtype)))["tensors"]
            self.assertEqual([tensor["name"] for tensor in tensors], list(self.arrays))
            for tensor in tensors:
                array = self.arrays[tensor["name"]]
                self.assertEqual((tensor["type"], tensor["shape"]), (dtype, list(array.shape)))
                self.assertEqual(tensor["content"], torch_file.encode(array, dtype).hex())

    def test_python_reads_what_we_write(self) -> None:
        for dtype in torch_file.STORAGES:
            path = self.folder / "ours.pth"
            tool("torch", self.written(dtype), path)
            with zipfile.ZipFile(path) as archive:
                self.assertIsNone(archive.testzip())
                self.assertEqual(archive.read("archive/byteorder"), b"little")
                for record in archive.infolist():
                    header = path.read_bytes()[record.header_offset :]
                    extra = int.from_bytes(header[28:30], "little")
                    start = record.header_offset + 30 + len(record.filename) + extra
                    self.assertEqual(start % 64, 0, record.filename)
                state = StateDictUnpickler(archive, "archive").load()
            self.assertEqual(list(state), list(self.arrays))
            for name, array in state.items():
                self.assertEqual(array.shape, self.arrays[name].shape)
                expected = torch_file.encode(self.arrays[name], dtype)
                self.assertEqual(np.ascontiguousarray(array).tobytes(), expected)

    def test_writing_what_was_written_changes_nothing(self) -> None:
        first, second = self.folder / "1.pth", self.folder / "2.pth"
        tool("torch", self.written("f32"), first)
        tool("torch", first, second)
        self.assertEqual(first.read_bytes(), second.read_bytes())


if __name__ == "__main__":
    unittest.main()
