"""Limpid's GGUF reader and writer against the `gguf` package: files that it writes, read by us; files that
we write, read by it; and SmolLM2 when `make model` has fetched it.
"""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
import unittest
from pathlib import Path

import limpid_program
import numpy as np
from gguf import GGMLQuantizationType, GGUFReader, GGUFValueType, GGUFWriter
from gguf.quants import quantize

TOOL = Path(os.environ["LIMPID_PROGRAM"]).parent / "tests" / "gguf_tool"
SMOLLM2 = limpid_program.SMOLLM2
PLAIN = {
    "f32": np.float32,
    "f16": np.float16,
    "f64": np.float64,
    "i8": np.int8,
    "i16": np.int16,
    "i32": np.int32,
    "i64": np.int64,
}
TYPE_NAMES = {
    GGUFValueType.UINT8: "u8",
    GGUFValueType.INT8: "i8",
    GGUFValueType.UINT16: "u16",
    GGUFValueType.INT16: "i16",
    GGUFValueType.UINT32: "u32",
    GGUFValueType.INT32: "i32",
    GGUFValueType.FLOAT32: "f32",
    GGUFValueType.BOOL: "bool",
    GGUFValueType.STRING: "string",
    GGUFValueType.UINT64: "u64",
    GGUFValueType.INT64: "i64",
    GGUFValueType.FLOAT64: "f64",
}


def tool(*arguments: str | Path) -> str:
    done = subprocess.run([TOOL, *arguments], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise AssertionError(done.stderr)
    return done.stdout


def dump(path: Path) -> dict:
    return json.loads(tool("dump", path))


def content(data: bytes) -> str:
    if len(data) <= 65536:
        return data.hex()
    return f"fnv1a:{fnv1a(data):016x}"


def fnv1a(data: bytes) -> int:
    value = 0xCBF29CE484222325
    for byte in data:
        value = ((value ^ byte) * 0x100000001B3) & 0xFFFFFFFFFFFFFFFF
    return value


def expected_fields(reader: GGUFReader) -> dict[str, dict]:
    fields = {}
    for key, field in reader.fields.items():
        if key.startswith("GGUF."):
            continue
        name = TYPE_NAMES.get(field.types[-1], "")
        if field.types[0] == GGUFValueType.ARRAY:
            name = f"array of {name}"
        fields[key] = {"type": name, "value": field.contents()}
    return fields


def write_example(path: Path) -> None:
    rng = np.random.default_rng(3)
    writer = GGUFWriter(path, "llama")
    writer.add_uint8("n.u8", 255)
    writer.add_int8("n.i8", -128)
    writer.add_uint16("n.u16", 65535)
    writer.add_int16("n.i16", -32768)
    writer.add_uint32("n.u32", 4294967295)
    writer.add_int32("n.i32", -2147483648)
    writer.add_uint64("n.u64", 18446744073709551615)
    writer.add_int64("n.i64", -9223372036854775808)
    writer.add_float32("n.f32", float(np.float32(0.1)))
    writer.add_float64("n.f64", 0.1)
    writer.add_bool("n.bool", True)
    writer.add_string("n.string", 'Ünïcode, "quotes" and\nlines')
    writer.add_array("a.strings", ["", "▁the", "<0x0A>"])
    writer.add_array("a.ints", [-1, 2, 3])
    writer.add_array("a.floats", [0.5, -2.0])
    for name, dtype in PLAIN.items():
        values = (rng.standard_normal((2, 3, 5)) * 50).astype(dtype)
        writer.add_tensor(f"plain.{name}", values)
    values = rng.standard_normal((3, 512)).astype(np.float32)
    for name in ("BF16", "Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0"):
        qtype = GGMLQuantizationType[name]
        writer.add_tensor(f"block.{name}", quantize(values, qtype), raw_dtype=qtype)
    for name, size in (("Q2_K", 84), ("Q4_K", 144), ("Q6_K", 210), ("IQ4_XS", 136)):
        blocks = rng.integers(0, 256, (3, 2 * size), dtype=np.uint8)
        writer.add_tensor(f"block.{name}", blocks, raw_dtype=GGMLQuantizationType[name])
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


class GgufTest(unittest.TestCase):
    def setUp(self) -> None:
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.example = Path(self.folder.name) / "example.gguf"
        write_example(self.example)

    def check_equal(self, seen: dict, reader: GGUFReader, contents: bool = True) -> None:
        expected = expected_fields(reader)
        self.assertEqual(seen["metadata"].keys(), expected.keys())
        for key, value in expected.items():
            self.assertEqual(seen["metadata"][key], value, key)
        self.assertEqual([t["name"] for t in seen["tensors"]], [t.name for t in reader.tensors])
        for ours, theirs in zip(seen["tensors"], reader.tensors, strict=True):
            self.assertEqual(ours["shape"], [int(n) for n in reversed(theirs.shape)], theirs.name)
            self.assertEqual(ours["type"].upper(), theirs.tensor_type.name, theirs.name)
            if contents:
                self.assertEqual(ours["content"], content(theirs.data.tobytes()), theirs.name)

    def test_we_read_what_the_package_writes(self) -> None:
        self.check_equal(dump(self.example), GGUFReader(self.example))

    def test_the_package_reads_what_we_write(self) -> None:
        copied = self.example.with_name("copy.gguf")
        tool("copy", self.example, copied)
        original, copy = GGUFReader(self.example), GGUFReader(copied)
        self.assertEqual(expected_fields(copy), expected_fields(original))
        for a, b in zip(original.tensors, copy.tensors, strict=True):
            self.assertEqual((a.name, a.tensor_type), (b.name, b.tensor_type))
            self.assertEqual(a.shape.tolist(), b.shape.tolist())
            self.assertEqual(a.data.tobytes(), b.data.tobytes(), a.name)
            self.assertEqual(b.data_offset % 32, 0)

    def test_smollm2(self) -> None:
        if not SMOLLM2.exists():
            self.skipTest("SmolLM2 is not in the cache; `make model` fetches it")
        reader = GGUFReader(SMOLLM2)
        seen = dump(SMOLLM2)
        self.check_equal(seen, reader, contents=False)
        small = [t for t in seen["tensors"] if not t["content"].startswith("fnv1a:")]
        self.assertGreater(len(small), 60)
        by_name = {t.name: t for t in reader.tensors}
        for tensor in small:
            self.assertEqual(tensor["content"], by_name[tensor["name"]].data.tobytes().hex())
        copied = self.example.with_name("smollm2.gguf")
        tool("copy", SMOLLM2, copied)
        self.assertEqual(dump(copied), seen)


if __name__ == "__main__":
    limpid_program.main()
