// GGUF, versions 2 and 3, little-endian: header, key/values, tensor table, aligned data.
// docs/formats/gguf.md has the layout and all that is refused.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "checkpoint/checkpoint.h"

namespace limpid {

struct GgufTensor {
  std::string name;
  TensorView view;       // dimensions outermost first, data inside the file's bytes
  uint64_t info_offset;  // where its entry begins in the tensor table, for errors
};

// One file, parsed and proven: every view lies inside `bytes`.
struct GgufFile {
  uint32_t version = 0;
  uint32_t alignment = 0;
  Metadata metadata;
  std::vector<GgufTensor> tensors;  // in file order
};

// Parses a whole file in memory; `path` names it in errors. Views point into `bytes`. Throws
// FormatError for what breaks the format and UnsupportedError for versions, byte orders and tensor
// types that are not read.
GgufFile parse_gguf(const std::string& path, std::span<const std::byte> bytes);

// Opens a GGUF file. When it is the first of a split model (`…-00001-of-0000N.gguf`), opens all its
// parts. Throws also ResourceError.
Checkpoint open_gguf(const std::string& path);

}  // namespace limpid
