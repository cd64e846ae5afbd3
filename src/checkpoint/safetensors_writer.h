// Writes safetensors files.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "base/atomic_file.h"
#include "checkpoint/gguf_writer.h"

namespace limpid {

// A file whose tensors' bytes come piece by piece, so that it may be larger than memory.
class SafetensorsStream {
 public:
  // Writes the header; the views need no data. Tensors stand in the order given, one right behind
  // the other: all of them lie aligned when those of the larger elements come first. `metadata`
  // becomes __metadata__ (transformers wants {"format": "pt"}). Throws ArgumentError for names that
  // are empty, no clean UTF-8, there twice or `__metadata__`, UnsupportedError for quantised
  // dtypes, ResourceError.
  SafetensorsStream(const std::string& path, const std::map<std::string, std::string>& metadata,
                    std::span<const NamedTensor> tensors);

  // The next bytes of the tensors, in their order. Throws ArgumentError when there are more than
  // the header says, ResourceError.
  void write(std::span<const std::byte> bytes);
  // The file appears. Throws ArgumentError when bytes are missing.
  void commit();

 private:
  AtomicFile file_;
  uint64_t missing_ = 0;  // bytes
};

// Writes tensors that lie in memory or in mapped files; see SafetensorsStream.
void write_safetensors(const std::string& path, const std::map<std::string, std::string>& metadata,
                       std::span<const NamedTensor> tensors);

}  // namespace limpid
