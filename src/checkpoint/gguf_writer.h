// Writes GGUF version 3.
#pragma once

#include <span>
#include <string>

#include "checkpoint/metadata.h"
#include "tensor/tensor.h"

namespace limpid {

struct NamedTensor {
  std::string name;  // 1 to 64 bytes
  TensorView view;   // at most 4 dimensions, none of them 0
};

// Writes `tensors` in their order, aligned to 32 bytes, and `metadata` by key; values keep the type
// that their type_name says when it is one of GGUF's that holds them, and else take the widest.
// `general.alignment` and `split.*` describe the file that they came from and are left out.
// Streams: memory for names and metadata only. The file appears when it is complete. Throws
// ArgumentError (names, dimensions), UnsupportedError (u8 and bool tensors, arrays of mixed
// values), ResourceError.
void write_gguf(const std::string& path, const Metadata& metadata,
                std::span<const NamedTensor> tensors);

}  // namespace limpid
