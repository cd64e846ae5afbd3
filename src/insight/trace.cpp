#include "insight/trace.h"

#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "tensor/codec.h"

namespace limpid {
namespace {

constexpr std::string_view kTokenIds = "token_ids";
constexpr int64_t kMostTokens = int64_t{1} << 20;

// What other engines can show too, without a change to their sources.
constexpr PlaceSet kTraced(Place::kEmbedding, Place::kAttnHeads, Place::kAttnResidual,
                           Place::kFfnResidual, Place::kOutputNorm, Place::kLogits);

// The elements as token ids. Numbers that are not ids of any model are clamped.
template <typename T>
std::vector<int32_t> whole_numbers(const TensorView& tensor) {
  std::vector<int32_t> ids;
  for (int64_t i = 0; i < tensor.shape.n_elements(); ++i) {
    T value;
    std::memcpy(&value, tensor.data + static_cast<size_t>(i) * sizeof(T), sizeof(T));
    ids.push_back(static_cast<int32_t>(std::clamp<int64_t>(value, -1, INT32_MAX)));
  }
  return ids;
}

// Other engines may write ids as i64 or i32; any other type is refused.
std::vector<int32_t> read_token_ids(const Checkpoint& checkpoint) {
  const TensorView* tensor = checkpoint.find(kTokenIds);
  if (tensor == nullptr)
    throw_format_error(checkpoint.path, kTokenIds, "is missing; this is not a trace");
  if (tensor->shape.rank() != 1 || tensor->shape.n_elements() < 1 ||
      tensor->shape.n_elements() > kMostTokens) {
    throw_format_error(checkpoint.path, kTokenIds, "is {}, expected a list of tokens",
                       tensor->to_string());
  }
  Tensor storage;
  const TensorView bytes = checkpoint.read(kTokenIds, storage);
  if (bytes.dtype == DType::kI64) return whole_numbers<int64_t>(bytes);
  if (bytes.dtype == DType::kI32) return whole_numbers<int32_t>(bytes);
  throw_format_error(checkpoint.path, kTokenIds, "is {}, expected i64 or i32", tensor->to_string());
}

}  // namespace

std::string trace_name(const Observation& observation) {
  return observation.layer < 0 ? observation.what
                               : fmt::format("blk.{}.{}", observation.layer, observation.what);
}

// Every other tensor of the file is an activation with one row for each token. Values are compared
// as f32; those of an f64 trace are rounded.
Trace read_trace(const Checkpoint& checkpoint) {
  Trace trace;
  trace.token_ids = read_token_ids(checkpoint);
  const int64_t n_tokens = std::ssize(trace.token_ids);
  for (const std::string& name : checkpoint.tensor_order) {
    if (name == kTokenIds) continue;
    const TensorView& tensor = *checkpoint.find(name);
    const bool is_float = tensor.dtype == DType::kF32 || tensor.dtype == DType::kF64;
    if (tensor.shape.rank() != 2 || tensor.shape[0] != n_tokens || !is_float) {
      throw_format_error(checkpoint.path, name, "is {}, expected f32 or f64 [{}, …]",
                         tensor.to_string(), n_tokens);
    }
    Tensor storage;
    trace.observations.push_back(
        {name, -1, n_tokens, tensor.shape[1], decode(checkpoint.read(name, storage))});
  }
  return trace;
}

// Logits are requested for all positions, so that the trace has them for every token. The cache is
// f32: a cache of f16 would round keys and values, which the reference may not do.
Trace trace_model(Model& model, ProbeExecutor& probe, std::span<const int32_t> token_ids) {
  Trace trace{{token_ids.begin(), token_ids.end()}, {}};
  const int64_t n_rows = std::ssize(token_ids);
  const Observing watch(probe, kTraced,
                        [&](Place place, int64_t layer, std::span<const float> values) {
                          trace.observations.push_back({std::string(place_name(place)),
                                                        layer,
                                                        n_rows,
                                                        std::ssize(values) / n_rows,
                                                        {values.begin(), values.end()}});
                        });
  const auto cache = model.make_cache_for_one(n_rows, DType::kF32, DType::kF32);
  const StepItem item{cache->add_sequence(), token_ids, StepItem::Outputs::kAll};
  model.step(*cache, {&item, 1});
  return trace;
}

}  // namespace limpid
