// The key/value section of a GGUF file. An entry is a key (u64 length, bytes), a type number (u32)
// and a value; an array value states the type of its elements and their count first.
#pragma once

#include <cstdint>
#include <string>

#include "checkpoint/byte_reader.h"
#include "checkpoint/metadata.h"

namespace limpid {

// The section as read. `alignment` is general.alignment, or the default where the file has none.
struct GgufMetadata {
  Metadata values;
  uint32_t alignment = 0;
};

// Reads `count` key/value pairs. Throws FormatError, and UnsupportedError for an array of u64 with
// a value that does not fit int64_t.
GgufMetadata read_gguf_metadata(ByteReader& reader, uint64_t count);

// Reads a string of 1 to `longest` bytes that must be UTF-8 without NUL: a key or a tensor name.
std::string read_gguf_name(ByteReader& reader, const std::string& field, uint64_t longest);

}  // namespace limpid
