// A GGUF file of tensors that lie in memory, in one call.
#pragma once

#include <span>
#include <string>

#include "checkpoint/gguf_writer.h"

namespace limpid::testing {

inline void write_gguf(const std::string& path, const Metadata& metadata,
                       std::span<const NamedTensor> tensors) {
  GgufStream stream(path, metadata, tensors);
  for (const NamedTensor& tensor : tensors)
    stream.write({tensor.view.data, static_cast<size_t>(tensor.view.n_bytes())});
  stream.commit();
}

}  // namespace limpid::testing
