"""Writes what torch.save writes, without torch: a zip archive of stored, aligned records and a pickle of a state dictionary.

Only the standard library and numpy. docs/formats/torch.md describes the format.
"""

import pathlib
import struct
import zlib
from collections.abc import Iterable, Iterator
from typing import BinaryIO

import numpy

STORAGES = {
    "f32": ("FloatStorage", 4),
    "f16": ("HalfStorage", 2),
    "bf16": ("BFloat16Storage", 2),
    "f64": ("DoubleStorage", 8),
}
ALIGNMENT = 64


def bf16_bytes(values: numpy.ndarray) -> bytes:
    """Rounded to nearest even; the values are finite."""
    bits = numpy.ascontiguousarray(values, dtype=numpy.float32).view(numpy.uint32)
    odd = (bits >> numpy.uint32(16)) & numpy.uint32(1)
    return ((bits + odd + numpy.uint32(0x7FFF)) >> numpy.uint32(16)).astype("<u2").tobytes()


def encode(values: numpy.ndarray, dtype: str) -> bytes:
    if dtype == "bf16":
        return bf16_bytes(values)
    return values.astype({"f32": "<f4", "f16": "<f2", "f64": "<f8"}[dtype]).tobytes()


def text(value: str) -> bytes:
    data = value.encode()
    return b"X" + struct.pack("<I", len(data)) + data


def name(module: str, attribute: str) -> bytes:
    return f"c{module}\n{attribute}\n".encode()


def integers(values: Iterable[int]) -> bytes:
    return b"(" + b"".join(b"J" + struct.pack("<i", value) for value in values) + b"t"


def state_dict_pickle(tensors: list[tuple[str, tuple[int, ...]]], dtype: str) -> bytes:
    storage, _ = STORAGES[dtype]
    ordered = name("collections", "OrderedDict") + b")R"
    out = b"\x80\x02" + ordered + b"("
    for i, (key, dims) in enumerate(tensors):
        n_elements = int(numpy.prod(dims, dtype=numpy.int64))
        strides = [int(numpy.prod(dims[d + 1 :], dtype=numpy.int64)) for d in range(len(dims))]
        out += text(key) + name("torch._utils", "_rebuild_tensor_v2") + b"(("
        out += text("storage") + name("torch", storage) + text(str(i)) + text("cpu")
        out += b"J" + struct.pack("<i", n_elements) + b"tQ" + b"J" + bytes(4)
        out += integers(dims) + integers(strides) + b"\x89" + ordered + b"tR"
    return out + b"u."


class Archive:
    """A zip archive whose records begin at multiples of 64 bytes, as torch.save pads them."""

    def __init__(self, file: BinaryIO) -> None:
        self.file = file
        self.directory = b""
        self.n_records = 0

    def add(self, record: str, content: bytes) -> None:
        offset = self.file.tell()
        path = f"archive/{record}".encode()
        crc, n = zlib.crc32(content), len(content)
        if n >= 0xFFFFFFFF:
            raise ValueError(f"{record} has {n} bytes; this writer knows no records that large")
        padding = -(offset + 30 + len(path) + 4) % ALIGNMENT
        extra = b"FB" + struct.pack("<H", padding) + b"Z" * padding
        sizes = struct.pack("<IIIH", crc, n, n, len(path))
        self.file.write(b"PK\x03\x04" + bytes(10) + sizes + struct.pack("<H", len(extra)))
        self.file.write(path + extra)
        self.file.write(content)
        wide = struct.pack("<HHQ", 1, 8, offset) if offset >= 0xFFFFFFFF else b""
        self.directory += b"PK\x01\x02" + bytes(12) + sizes + struct.pack("<H", len(wide))
        self.directory += bytes(10) + struct.pack("<I", min(offset, 0xFFFFFFFF)) + path + wide
        self.n_records += 1

    def close(self) -> None:
        start, n, size = self.file.tell(), self.n_records, len(self.directory)
        end64 = b"PK\x06\x06" + struct.pack("<QHHIIQQQQ", 44, 798, 45, 0, 0, n, n, size, start)
        locator = b"PK\x06\x07" + struct.pack("<IQI", 0, start + size, 1)
        end = b"PK\x05\x06" + struct.pack("<HHHHIIH", 0, 0, n, n, size, min(start, 0xFFFFFFFF), 0)
        self.file.write(self.directory + end64 + locator + end)


def write(
    path: pathlib.Path,
    tensors: list[tuple[str, tuple[int, ...]]],
    values: Iterator[numpy.ndarray],
    dtype: str,
) -> None:
    """`values` gives one array for each of `tensors`, in their order."""
    with path.open("wb") as file:
        archive = Archive(file)
        archive.add("data.pkl", state_dict_pickle(tensors, dtype))
        archive.add("byteorder", b"little")
        for i, (_, array) in enumerate(zip(tensors, values, strict=True)):
            archive.add(f"data/{i}", encode(array, dtype))
        archive.add("version", b"3\n")
        archive.close()
