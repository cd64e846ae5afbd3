// Writes safetensors files.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>

#include "base/atomic_file.h"
#include "checkpoint/gguf_writer.h"

namespace limpid {

// Writes one file. The header is written first, from names and shapes alone; then the bytes of the
// tensors come piece by piece. The file may therefore be larger than memory.
class SafetensorsStream {
 public:
  // Writes the header. The views need no data. Tensors are written in the order given, without
  // padding between them; all of them are aligned when tensors with larger elements come first.
  // `metadata` becomes __metadata__ (transformers requires {"format": "pt"}). Throws ArgumentError
  // for a name that is empty, contains NUL, is not UTF-8, is used twice or is `__metadata__`;
  // UnsupportedError for quantised dtypes; ResourceError.
  SafetensorsStream(const std::string& path, const std::map<std::string, std::string>& metadata,
                    std::span<const NamedTensor> tensors);

  // Appends bytes of the tensors, in their order. Throws ArgumentError when there are more than the
  // header says, ResourceError.
  void write(std::span<const std::byte> bytes);
  // Finishes the file, which has a temporary name until then (base/atomic_file.h). Throws
  // ArgumentError when bytes are missing, ResourceError.
  void commit();

 private:
  AtomicFile file_;
  uint64_t missing_ = 0;  // bytes that the header promises and that are not written yet
};

// Writes tensors that are in memory or in mapped files; see SafetensorsStream.
void write_safetensors(const std::string& path, const std::map<std::string, std::string>& metadata,
                       std::span<const NamedTensor> tensors);

}  // namespace limpid
