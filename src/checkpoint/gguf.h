// GGUF, versions 2 and 3, little-endian. A file has four parts:
//
//   header        magic "GGUF", version, number of tensors, number of key/value pairs
//   key/values    all metadata, the tokenizer included
//   tensor table  name, dimensions, type and data offset of each tensor
//   data          one tensor after another, each padded to general.alignment (32 by default)
//
// docs/formats/gguf.md has the layout and all that is refused.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "checkpoint/checkpoint.h"

namespace limpid {

// One tensor of one file. append_gguf_tensors() moves it into a Checkpoint.
struct GgufTensor {
  std::string name;
  TensorView view;       // dimensions outermost first, data inside the file's bytes
  uint64_t info_offset;  // where its table entry begins in the file, for errors
};

// One parsed file. Every view has been checked and is inside `bytes`.
struct GgufFile {
  uint32_t version = 0;
  Metadata metadata;
  std::vector<GgufTensor> tensors;  // in file order
};

// Parses a whole file in memory. `path` names it in errors. Views point into `bytes`, which must
// outlive them. Throws FormatError when the file breaks the format, and UnsupportedError for
// versions, byte orders and tensor types that Limpid does not read.
GgufFile parse_gguf(const std::string& path, std::span<const std::byte> bytes);

// Opens a GGUF file. When it is the first part of a split model (`…-00001-of-0000N.gguf`), opens
// all parts. Throws ResourceError too.
Checkpoint open_gguf(const std::string& path);

}  // namespace limpid
