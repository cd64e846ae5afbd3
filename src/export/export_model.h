// Writes a model in the layout of another program: a GGUF file, a folder as `transformers` reads
// it, or a folder as Meta's own code does.
#pragma once

#include <optional>
#include <string>

#include "checkpoint/checkpoint.h"
#include "quantize/write_model.h"

namespace limpid {

enum class Layout : uint8_t {
  kGguf,         // one file
  kHuggingFace,  // config.json, model.safetensors, the tokenizer's files
  kMeta,         // params.json, consolidated.00.pth, the tokenizer's files
};

struct ExportOptions {
  Layout layout = Layout::kGguf;
  // What matrices become; null: what they are. Only f32, f16 and bf16 outside GGUF.
  const FileType* file_type = nullptr;
  bool allow_requantize = false;
  WriteOptions write{};
};

struct ExportResult {
  TensorPlan plan;
  // What the new layout could not take along, a sentence each.
  std::vector<std::string> remarks;
};

// Writes `checkpoint` (canonical) to `path`, a file or a folder that is made. Streams: one piece of
// one tensor is in memory at a time. Outside GGUF, quantised matrices become f16 unless file_type
// says otherwise, and vectors keep their type. Throws UnsupportedError for what the layout cannot
// express, FormatError, ResourceError.
ExportResult export_model(const std::string& path, const Checkpoint& checkpoint,
                          const ExportOptions& options);

}  // namespace limpid
