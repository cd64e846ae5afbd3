// The parts of a GGUF file that have entries: gguf_metadata.cpp reads the key/values, and
// gguf_tensors.cpp the table of tensors.
#pragma once

#include <string>
#include <vector>

#include "checkpoint/byte_reader.h"
#include "checkpoint/gguf.h"

namespace limpid {

// Reads `count` key/value pairs. An entry is a key (u64 length, bytes), a type number (u32) and a
// value; an array value states the type of its elements and their count first. Throws FormatError,
// and UnsupportedError for an array of u64 with a value that does not fit int64_t.
Metadata read_gguf_metadata(ByteReader& reader, uint64_t count);

// Reads a string of 1 to `longest` bytes that must be UTF-8 without NUL: a key or a tensor name.
std::string read_gguf_name(ByteReader& reader, const std::string& field, uint64_t longest);

// Reads `count` entries of the table. Checks that the tensors' data follow each other, aligned,
// from the end of the table, and that they end inside the file. Only then it creates the views into
// the file. Throws FormatError, UnsupportedError.
std::vector<GgufTensor> read_gguf_tensors(ByteReader& reader, uint64_t count, uint32_t alignment);

}  // namespace limpid
