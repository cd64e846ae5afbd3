// Writes GGUF version 3.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/atomic_file.h"
#include "checkpoint/metadata.h"
#include "tensor/tensor.h"

namespace limpid {

struct NamedTensor {
  std::string name;  // 1 to 64 bytes
  TensorView view;   // at most 4 dimensions, none of them 0
};

// A GGUF file whose tensors' bytes come piece by piece, so that it may be larger than memory.
class GgufStream {
 public:
  // Writes head and table; the views need no data. Tensors stand in the order given, aligned to 32
  // bytes; metadata stands by key. Values keep the type that their type_name says when it is one of
  // GGUF's that holds them, and else take the widest. `general.alignment` and `split.*` describe
  // the file that they came from and are left out. Throws ArgumentError (names, dimensions),
  // UnsupportedError (u8 and bool tensors, arrays of mixed values), ResourceError.
  GgufStream(const std::string& path, const Metadata& metadata,
             std::span<const NamedTensor> tensors);

  // The next bytes of the tensors, in their order; what is left of a tensor bounds a call. Throws
  // ArgumentError when there are more than the table says, ResourceError.
  void write(std::span<const std::byte> bytes);
  // The file appears. Throws ArgumentError when bytes are missing.
  void commit();

 private:
  void pad();

  AtomicFile file_;
  std::vector<uint64_t> sizes_;  // of the tensors, in bytes
  size_t tensor_ = 0;            // the one that is being written
  uint64_t written_ = 0;         // of it
};

}  // namespace limpid
