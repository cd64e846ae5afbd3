// Writes a model in the layout of another program: a GGUF file, a folder for `transformers`, or a
// folder for Meta's own code or nanoGPT's.
//
// The model is already canonical (layouts/canonical.h), so each layout needs three steps: complete
// the tensors that it requires (completed.h), describe the model in its keys (gguf_description.h,
// model_config_json.h), and stream the tensors under its names (quantize/write_model.h).
#pragma once

#include <string>

#include "checkpoint/checkpoint.h"
#include "quantize/write_model.h"

namespace limpid {

// The layouts that can be written.
enum class Layout : uint8_t {
  kGguf,         // one file
  kHuggingFace,  // config.json, model.safetensors, the tokenizer's files
  // For PyTorch, with the tokenizer's files. A Llama for Meta's code: params.json and
  // consolidated.00.pth. A GPT-2 for nanoGPT: ckpt.pt.
  kTorch,
};

// Options of export_model.
struct ExportOptions {
  Layout layout = Layout::kGguf;
  // The type of the matrices. nullptr: keep the types. Outside GGUF only f32, f16 and bf16.
  const FileType* file_type = nullptr;
  bool allow_requantize = false;
  Importance importance{};  // of a matrix's columns, for a GGUF file
  // Receives the plan before anything is written; returning false writes nothing.
  std::function<bool(const TensorPlan& plan)> on_plan{};
  WriteOptions write{};
};

// The result of export_model: the types and sizes of the tensors, and what the user should know.
struct ExportResult {
  TensorPlan plan;
  // What the new layout could not express, one sentence each.
  std::vector<std::string> remarks;
};

// Writes the canonical `checkpoint` to `path`, a file or a folder that is created. Only one piece
// of one tensor is in memory at a time. Outside GGUF, quantised matrices become f16 unless
// file_type says otherwise, and vectors keep their type. Throws UnsupportedError for a model that
// the layout cannot express, FormatError, ResourceError.
ExportResult export_model(const std::string& path, const Checkpoint& checkpoint,
                          const ExportOptions& options);

}  // namespace limpid
