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

// A tensor to be written. Its view may lack data when the bytes come later, through a stream.
struct NamedTensor {
  std::string name;  // 1 to 64 bytes
  TensorView view;   // at most 4 dimensions, none of them 0
};

// Writes one GGUF file. The head and the tensor table are written first, from names and shapes
// alone; then the bytes of the tensors come piece by piece. The file may therefore be larger than
// memory, and a quantiser needs to hold only one tensor at a time.
//
//   GgufStream file("model.gguf", metadata, tensors);
//   for (…) file.write(bytes);
//   file.commit();
class GgufStream {
 public:
  // Writes head and table. The views need no data. Tensors are written in the order given, each
  // aligned to 32 bytes; metadata is sorted by key. A value is written as the type that its
  // type_name names when that is a GGUF type that can hold the value, and otherwise as the widest
  // type of its kind. `general.alignment` and `split.*` describe the file that was read and are
  // left out. Throws ArgumentError (names, dimensions), UnsupportedError (u8 and bool tensors,
  // arrays of mixed values), ResourceError.
  GgufStream(const std::string& path, const Metadata& metadata,
             std::span<const NamedTensor> tensors);

  // Appends bytes of the tensors, in their order. One call must not go beyond the end of a tensor.
  // Throws ArgumentError when it does, ResourceError.
  void write(std::span<const std::byte> bytes);
  // Gives the file its name. Throws ArgumentError when bytes are missing.
  void commit();

 private:
  void pad();

  AtomicFile file_;
  std::vector<uint64_t> sizes_;  // bytes of each tensor
  size_t tensor_ = 0;            // index of the tensor that is being written
  uint64_t written_ = 0;         // bytes of that tensor
};

}  // namespace limpid
