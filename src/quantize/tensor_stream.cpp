#include "quantize/tensor_stream.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>

#include "base/check.h"
#include "layouts/model_classes.h"
#include "model/decoder_from_checkpoint.h"
#include "tensor/codec.h"

namespace limpid {
namespace {

constexpr uint64_t kPieceBytes = uint64_t{8} << 20;  // of f32 values

bool is_query_or_key(std::string_view name) {
  return name.find(".attn_q.") != std::string_view::npos ||
         name.find(".attn_k.") != std::string_view::npos;
}

// Returns the row of the source that becomes row `row` of the result.
int64_t source_row(const PlannedTensor& tensor, int64_t row) {
  if (!tensor.moves_rows()) return row;
  return tensor.order_after == RowOrder::kHalfSplit
             ? interleaved_row(row, tensor.head_dim, tensor.n_rot)
             : half_split_row(row, tensor.head_dim, tensor.n_rot);
}

// Treats a vector as a matrix with one column, so that its elements move like rows.
TensorView as_rows(const TensorView& tensor, const PlannedTensor& planned) {
  if (!planned.moves_rows() || tensor.shape.rank() != 1) return tensor;
  return {tensor.dtype, Shape{tensor.shape[0], 1}, tensor.data};
}

// Returns the type of the tensor in the new file. Only a mixture may have wanted another one.
MixedType new_type(const PlanOptions& options, const MixFacts& facts, const PlannedTensor& tensor) {
  const auto only = [](DType dtype) { return MixedType{dtype, dtype}; };
  const bool vector = !is_quantizable(tensor.name, tensor.shape);
  // f64 is never kept: no kernel computes in f64.
  if (tensor.from == DType::kF64 && (vector || options.file_type == nullptr))
    return only(DType::kF32);
  if (vector && is_float(tensor.from)) return only(options.plain_types ? tensor.from : DType::kF32);
  if (options.file_type == nullptr)
    return only(options.plain_types && is_quantized(tensor.from) ? DType::kF16 : tensor.from);
  if (vector) return only(tensor.from);
  return mixed_type(*options.file_type, facts, tensor.name, tensor.shape);
}

void check_source(const Checkpoint& checkpoint, const PlannedTensor& tensor,
                  const PlanOptions& options) {
  if (tensor.from == tensor.to || is_float(tensor.from)) return;
  LIMPID_CHECK(UnsupportedError, is_quantized(tensor.from),
               "{}: {} is {} and cannot be converted to {}", checkpoint.path, tensor.name,
               dtype_info(tensor.from).name, dtype_info(tensor.to).name);
  LIMPID_CHECK(
      UnsupportedError, options.allow_requantize || !is_quantized(tensor.to),
      "{}: {} is already quantised ({}); quantising it again to {} would add further error. "
      "Start from a file in f16, bf16 or f32, or set PlanOptions::allow_requantize",
      checkpoint.path, tensor.name, dtype_info(tensor.from).name, dtype_info(tensor.to).name);
}

// Whether a tensor of this type can hold the value. Scales of blocks are halves.
bool can_hold(DType dtype, float value) {
  constexpr float kLargestHalf = 65504;
  if (is_quantized(dtype)) return std::abs(value) <= kLargestHalf;
  constexpr float kRoundsToInfinity = 65520;
  return dtype != DType::kF16 || !std::isfinite(value) || std::abs(value) < kRoundsToInfinity;
}

// Converts rows [begin, end) of the new tensor into `out`.
void convert_rows(const Checkpoint& checkpoint, const TensorView& source,
                  const PlannedTensor& planned, const ColumnFacts& facts, int64_t begin,
                  int64_t end, std::byte* out) {
  const uint64_t row_bytes = tensor_bytes(planned.to, Shape{source.shape.cols()});
  std::vector<float> values(static_cast<size_t>(source.shape.cols()));
  for (int64_t row = begin; row < end; ++row, out += row_bytes) {
    const std::byte* from = source.row(source_row(planned, row));
    if (planned.from == planned.to) {
      std::memcpy(out, from, row_bytes);
      continue;
    }
    decode_row(planned.from, from, values);
    if (!std::ranges::all_of(values, [&](float v) { return can_hold(planned.to, v); })) {
      throw_format_error(checkpoint.path, planned.name,
                         "contains a NaN, an infinity or a value beyond 65,504, which {} cannot "
                         "represent; bf16 and f32 can",
                         dtype_info(planned.to).name);
    }
    quantize_row(planned.to, values, facts, out);
  }
}

}  // namespace

ColumnFacts InputFacts::of(std::string_view name, int64_t n_cols) const {
  ColumnFacts facts;
  facts.importance = importance.columns_of(name, n_cols);
  const auto found = means.of.find(name);
  if (found == means.of.end()) return facts;
  const InputMean& input = found->second;
  LIMPID_CHECK(ShapeError, static_cast<int64_t>(input.mean.size()) == n_cols,
               "{} has {} columns, but the mean of its input has {}", name, n_cols,
               input.mean.size());
  facts.mean = input.mean;
  facts.variance = input.variance;
  // Importances are relative and may have any unit. Dividing the variance by their mean keeps its
  // scale.
  const double sum = std::accumulate(facts.importance.begin(), facts.importance.end(), 0.0);
  if (sum > 0) facts.variance *= static_cast<float>(static_cast<double>(n_cols) / sum);
  return facts;
}

TensorPlan plan_tensors(const Checkpoint& checkpoint, const PlanOptions& options) {
  const DecoderSpec spec = read_spec(checkpoint);
  const MixFacts facts{spec.architecture, spec.n_layers,        spec.n_heads,
                       spec.n_kv_heads,   spec.tied_embeddings, options.has_importance};
  const RowOrder order_after =
      options.row_order.value_or(model_class_of(checkpoint).gguf_row_order);
  TensorPlan plan;
  for (const std::string& name : checkpoint.tensor_order) {
    const TensorView& stored = *checkpoint.find(name);
    PlannedTensor tensor;
    tensor.name = name;
    tensor.shape = stored.shape;
    tensor.from = stored.dtype;
    const MixedType type = new_type(options, facts, tensor);
    tensor.to = type.dtype;
    tensor.wanted = type.wanted;
    check_source(checkpoint, tensor, options);
    if (is_query_or_key(name)) {
      tensor.order_before = spec.row_order;
      tensor.order_after = order_after;
      tensor.head_dim = spec.head_dim;
      tensor.n_rot = spec.rope.n_rot;
    }
    plan.bytes_before += stored.n_bytes();
    plan.bytes_after += tensor_bytes(tensor.to, tensor.shape);
    plan.tensors.push_back(std::move(tensor));
  }
  return plan;
}

// Reads, converts and writes one piece at a time: `piece_rows` rows of about 8 MiB in f32. Only the
// piece and one scratch row per thread are in memory, whatever the size of the model, and the pages
// of the source are released after each piece. Every row is converted on its own, so the bytes do
// not depend on the number of threads. When rows move, the rows of a piece come from different
// places, so the source is released only at the end.
void stream_tensor(const Checkpoint& checkpoint, const PlannedTensor& tensor,
                   const InputFacts& facts, ThreadPool& pool, const ByteSink& sink) {
  Tensor storage;
  const TensorView stored = checkpoint.read(tensor.name, storage);
  if (stored.n_bytes() == 0) return;
  const TensorView source = as_rows(stored, tensor);
  ColumnFacts columns;
  if (is_quantized(tensor.to)) columns = facts.of(tensor.name, source.shape.cols());
  const uint64_t row_bytes = tensor_bytes(tensor.to, Shape{source.shape.cols()});
  const int64_t n_rows = source.shape.rows();
  const auto row_floats = static_cast<uint64_t>(source.shape.cols()) * sizeof(float);
  const int64_t piece_rows = static_cast<int64_t>(std::max<uint64_t>(kPieceBytes / row_floats, 1));
  std::vector<std::byte> piece;
  for (int64_t begin = 0; begin < n_rows; begin += piece_rows) {
    const int64_t end = std::min(begin + piece_rows, n_rows);
    piece.resize(static_cast<size_t>(end - begin) * row_bytes);
    pool.for_ranges(end - begin, 1, [&](int64_t from, int64_t to, int /*thread*/) {
      convert_rows(checkpoint, source, tensor, columns, begin + from, begin + to,
                   piece.data() + static_cast<uint64_t>(from) * row_bytes);
    });
    sink(piece);
    const std::byte* first = source.row(begin);
    if (!tensor.moves_rows()) {
      leave_file(checkpoint, {first, static_cast<size_t>(end - begin) * source.row_bytes()});
    }
  }
  leave_file(checkpoint, {stored.data, stored.n_bytes()});
}

}  // namespace limpid
