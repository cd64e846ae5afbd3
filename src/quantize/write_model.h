// Writes the tensors of a plan into a file.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "checkpoint/checkpoint.h"
#include "checkpoint/gguf_writer.h"
#include "layouts/name_table.h"
#include "quantize/tensor_stream.h"

namespace limpid {

// Options of all writers of models.
struct WriteOptions {
  int n_threads = 0;  // 0: one per core
  // Receives the bytes of the source that are done, and the total; returning false cancels
  // (ResourceError).
  std::function<bool(uint64_t done, uint64_t total)> progress;
  // Whether the model is run before it is quantised, to measure the inputs of its matrices
  // (input_means.h).
  bool calibrate = true;
  // Like `progress`, for that run: tokens done, and the total.
  std::function<bool(uint64_t done, uint64_t total)> calibration_progress = {};
};

// Returns the result of measure_inputs, for InputFacts::means (tensor_stream.h). Returns no means
// if the options turn calibration off, or if every tensor of the plan keeps so many bits that
// calibration does not matter (Q8_0).
InputMeans calibrate(const Checkpoint& checkpoint, const TensorPlan& plan,
                     const WriteOptions& options);

// Hands the bytes of every tensor of the plan to `write`, one tensor after another, and reports
// progress. `path` is used in messages.
void stream_tensors(const std::string& path, const Checkpoint& checkpoint, const TensorPlan& plan,
                    const InputFacts& facts, const WriteOptions& options, const ByteSink& write);

// Returns names, types and shapes of the plan's tensors for the header of a file. Uses the names of
// `names`, or GGUF's if it is nullptr. Throws UnsupportedError for a tensor that `names` does not
// list.
std::vector<NamedTensor> tensor_list(const TensorPlan& plan, const NameTable* names);

// Writes a GGUF file with the metadata of `checkpoint` and the tensors of `plan`. Sets
// general.file_type and general.quantization_version if `file_type` is not nullptr.
void write_model_gguf(const std::string& path, const Checkpoint& checkpoint, const TensorPlan& plan,
                      const FileType* file_type, const InputFacts& facts,
                      const WriteOptions& options);

}  // namespace limpid
