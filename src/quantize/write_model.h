// The tensors of a plan, written into a file.
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

// Hands the bytes of every tensor of the plan to `write`, tensor after tensor, and reports
// progress.
void stream_tensors(const std::string& path, const Checkpoint& checkpoint, const TensorPlan& plan,
                    const InputFacts& facts, const WriteOptions& options, const ByteSink& write);

// Names, types and shapes of the plan's tensors, for the head of a file: by the names of `names`,
// or by ours when it is null. Throws UnsupportedError for a tensor that `names` has no name for.
std::vector<NamedTensor> tensor_list(const TensorPlan& plan, const NameTable* names);

// Writes a GGUF file: the metadata of `checkpoint`, and its tensors as `plan` says.
// general.file_type and general.quantization_version tell `file_type`, if there is one.
void write_model_gguf(const std::string& path, const Checkpoint& checkpoint, const TensorPlan& plan,
                      const FileType* file_type, const InputFacts& facts,
                      const WriteOptions& options);

}  // namespace limpid
