// The key/value section of a GGUF file.
#pragma once

#include <cstdint>
#include <string>

#include "checkpoint/byte_reader.h"
#include "checkpoint/metadata.h"

namespace limpid {

struct GgufMetadata {
  Metadata values;
  uint32_t alignment = 0;
};

// Reads `count` key/value pairs. Throws FormatError; UnsupportedError for arrays of u64 beyond i64.
GgufMetadata read_gguf_metadata(ByteReader& reader, uint64_t count);

// A string that must be 1 to `longest` bytes of UTF-8 without NUL: keys and tensor names.
std::string read_gguf_name(ByteReader& reader, const std::string& field, uint64_t longest);

}  // namespace limpid
