#include "quantize/write_model.h"

#include <algorithm>

#include "base/check.h"

namespace limpid {
namespace {

constexpr int64_t kQuantizationVersion = 2;  // version of ggml's block formats since May 2023

}  // namespace

void stream_tensors(const std::string& path, const Checkpoint& checkpoint, const TensorPlan& plan,
                    const InputFacts& facts, const WriteOptions& options, const ByteSink& write) {
  ThreadPool pool(options.n_threads);
  uint64_t done = 0;
  for (const PlannedTensor& tensor : plan.tensors) {
    const uint64_t before = tensor_bytes(tensor.from, tensor.shape);
    const uint64_t after = tensor_bytes(tensor.to, tensor.shape);
    uint64_t written = 0;
    stream_tensor(checkpoint, tensor, facts, pool, [&](std::span<const std::byte> bytes) {
      write(bytes);
      written += bytes.size();
      const auto part = static_cast<double>(written) / static_cast<double>(after);
      const uint64_t so_far = done + static_cast<uint64_t>(part * static_cast<double>(before));
      LIMPID_CHECK(ResourceError, !options.progress || options.progress(so_far, plan.bytes_before),
                   "{}: writing was cancelled", path);
    });
    done += before;
  }
}

std::vector<NamedTensor> tensor_list(const TensorPlan& plan, const NameTable* names) {
  std::vector<NamedTensor> table;
  for (const PlannedTensor& tensor : plan.tensors) {
    std::string name = tensor.name;
    if (names != nullptr) {
      const auto theirs = their_name(*names, tensor.name);
      LIMPID_CHECK(UnsupportedError, theirs.has_value(), "the layout has no name for {}",
                   tensor.name);
      name = *theirs;
    }
    table.push_back({std::move(name), {tensor.to, tensor.shape, nullptr}});
  }
  return table;
}

InputMeans calibrate(const Checkpoint& checkpoint, const TensorPlan& plan,
                     const WriteOptions& options) {
  const bool coarse = std::ranges::any_of(plan.tensors, [](const PlannedTensor& tensor) {
    return tensor.from != tensor.to && is_quantized(tensor.to) && tensor.to != DType::kQ8_0;
  });
  if (!options.calibrate || !coarse) return {};
  return measure_inputs(checkpoint, options.n_threads, options.calibration_progress);
}

void write_model_gguf(const std::string& path, const Checkpoint& checkpoint, const TensorPlan& plan,
                      const FileType* file_type, const InputFacts& facts,
                      const WriteOptions& options) {
  Metadata metadata = checkpoint.metadata;
  if (file_type != nullptr) {
    metadata.set("general.file_type", {file_type->id, "u32"});
    metadata.set("general.quantization_version", {kQuantizationVersion, "u32"});
  }
  GgufStream stream(path, metadata, tensor_list(plan, nullptr));
  stream_tensors(path, checkpoint, plan, facts, options,
                 [&](std::span<const std::byte> bytes) { stream.write(bytes); });
  stream.commit();
}

}  // namespace limpid
