// Writes a model in the layout of another program: a GGUF file, a folder as `transformers` reads
// it, or a folder as Meta's own code does.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "checkpoint/checkpoint.h"
#include "model/tensor_stream.h"

namespace limpid {

enum class Layout : uint8_t {
  kGguf,         // one file
  kHuggingFace,  // config.json, model.safetensors, the tokenizer's files
  kMeta,         // params.json, consolidated.00.pth, the tokenizer's files
};

struct WriteOptions {
  int n_threads = 0;  // 0: as many as cores
  // Called with bytes of the source done and in all; false cancels (ResourceError).
  std::function<bool(uint64_t done, uint64_t total)> progress;
  // Whether the model is run before it is quantised, to know what its matrices meet
  // (input_means.h).
  bool calibrate = true;
  // The same as `progress`, of that run: tokens done and in all.
  std::function<bool(uint64_t done, uint64_t total)> calibration_progress = {};
};

// What measure_inputs says of `checkpoint`; nothing if the options do not want it, or if no tensor
// of the plan becomes so coarse that it matters (Q8_0 does not).
InputMeans calibrate(const Checkpoint& checkpoint, const TensorPlan& plan,
                     const WriteOptions& options);

// Writes `checkpoint`, as described_for_gguf gives it, as `plan` says. general.file_type and
// general.quantization_version tell `file_type`, if there is one.
void write_model_gguf(const std::string& path, const Checkpoint& checkpoint, const TensorPlan& plan,
                      const FileType* file_type, const InputFacts& facts,
                      const WriteOptions& options);

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
