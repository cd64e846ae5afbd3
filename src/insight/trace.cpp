#include "insight/trace.h"

#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "layouts/name_table.h"
#include "tensor/codec.h"

namespace limpid {
namespace {

constexpr std::string_view kTokenIds = "token_ids";
constexpr int64_t kMostTokens = int64_t{1} << 20;

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
  const auto fail = [&](const std::string& problem) {
    throw FormatError(checkpoint.path, FormatError::kNoOffset, std::string(kTokenIds), problem);
  };
  if (tensor == nullptr) fail("is missing; this is not a trace");
  if (tensor->shape.rank() != 1 || tensor->shape.n_elements() < 1 ||
      tensor->shape.n_elements() > kMostTokens) {
    fail(fmt::format("is {}, expected a list of tokens", tensor->to_string()));
  }
  Tensor storage;
  const TensorView bytes = checkpoint.read(kTokenIds, storage);
  if (bytes.dtype == DType::kI64) return whole_numbers<int64_t>(bytes);
  if (bytes.dtype == DType::kI32) return whole_numbers<int32_t>(bytes);
  fail(fmt::format("is {}, expected i64 or i32", tensor->to_string()));
  return {};
}

// Values are compared as f32; those of an f64 trace are rounded.
std::vector<float> read_values(const Checkpoint& checkpoint, const std::string& name) {
  Tensor storage;
  const TensorView bytes = checkpoint.read(name, storage);
  if (bytes.dtype != DType::kF64) return decode(bytes);
  std::vector<float> values(static_cast<size_t>(bytes.shape.n_elements()));
  for (size_t i = 0; i < values.size(); ++i) {
    double value = 0;
    std::memcpy(&value, bytes.data + i * sizeof(double), sizeof(double));
    values[i] = static_cast<float>(value);
  }
  return values;
}

// The reverse of trace_name: "blk.3.ffn_residual" -> layer 3, "ffn_residual".
Observation named(const std::string& name) {
  Observation seen;
  seen.what = name;
  const size_t dot = name.find('.', 4);
  if (name.starts_with("blk.") && dot != std::string::npos) {
    if (const auto layer = match_name("{}", name.substr(4, dot - 4))) {
      seen.layer = *layer;
      seen.what = name.substr(dot + 1);
    }
  }
  return seen;
}

}  // namespace

std::string trace_name(const Observation& observation) {
  return observation.layer < 0 ? observation.what
                               : fmt::format("blk.{}.{}", observation.layer, observation.what);
}

// Every other tensor of the file is an activation with one row for each token.
Trace read_trace(const Checkpoint& checkpoint) {
  Trace trace;
  trace.token_ids = read_token_ids(checkpoint);
  const auto n_tokens = static_cast<int64_t>(trace.token_ids.size());
  for (const std::string& name : checkpoint.tensor_order) {
    if (name == kTokenIds) continue;
    const TensorView& tensor = *checkpoint.find(name);
    const bool is_float = tensor.dtype == DType::kF32 || tensor.dtype == DType::kF64;
    if (tensor.shape.rank() != 2 || tensor.shape[0] != n_tokens || !is_float) {
      throw FormatError(
          checkpoint.path, FormatError::kNoOffset, name,
          fmt::format("is {}, expected f32 or f64 [{}, …]", tensor.to_string(), n_tokens));
    }
    Observation seen = named(name);
    seen.n_rows = tensor.shape[0];
    seen.n_cols = tensor.shape[1];
    seen.values = read_values(checkpoint, name);
    trace.observations.push_back(std::move(seen));
  }
  return trace;
}

// All positions ask for logits, so that the trace has them for every token. The cache is f32: a
// cache of f16 would round keys and values, which the reference may not do.
Trace trace_model(Model& model, TapExecutor& tap, std::span<const int32_t> token_ids) {
  const auto cache = model.make_cache(std::ssize(token_ids), DType::kF32, DType::kF32);
  const StepItem item{cache->add_sequence(), token_ids, StepItem::Outputs::kAll};
  model.step(*cache, {&item, 1});
  return {{token_ids.begin(), token_ids.end()}, tap.take()};
}

}  // namespace limpid
