// The tensor table of a GGUF file.
#pragma once

#include <span>
#include <vector>

#include "checkpoint/byte_reader.h"
#include "checkpoint/gguf.h"

namespace limpid {

// Reads `count` entries of the table. Checks that the tensors' data follow each other, aligned,
// from the end of the table, and that they end inside the file. Only then it creates the views into
// `bytes`. Throws FormatError, UnsupportedError.
std::vector<GgufTensor> read_gguf_tensors(ByteReader& reader, uint64_t count, uint32_t alignment,
                                          std::span<const std::byte> bytes);

}  // namespace limpid
