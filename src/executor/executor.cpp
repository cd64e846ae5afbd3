#include "executor/executor.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <limits>
#include <numeric>

#include "base/check.h"
#include "base/checked.h"
#include "base/system_limits.h"
#include "executor/check_shapes.h"
#include "executor/executors.h"
#include "executor/gpu/gpu_devices.h"
#include "tensor/codec.h"

namespace limpid {

std::vector<float> decode_vector(const WeightSource& source) {
  std::vector<float> stored = decode(source.tensor);
  if (source.row_order == RowOrder::kHalfSplit) return stored;
  std::vector<float> half_split(stored.size());
  for (size_t i = 0; i < stored.size(); ++i) {
    half_split[half_split_row(static_cast<int64_t>(i), source.head_dim, source.head_dim)] =
        stored[i];
  }
  return half_split;
}

StoredRows::StoredRows(const TensorView& whole)
    : ranges_{{0, whole.shape.rows(), whole.data}}, row_bytes_(whole.row_bytes()) {}

StoredRows::StoredRows(const WeightSource& source) : StoredRows(source.tensor) {
  if (source.row_parts.empty()) return;
  ranges_.clear();
  int64_t n_rows = 0;
  for (const TensorView& part : source.row_parts) {
    LIMPID_CHECK(ShapeError,
                 part.dtype == source.tensor.dtype && !is_quantized(part.dtype) &&
                     part.shape.cols() == source.tensor.shape.cols(),
                 "{}: a part is {}, which does not fit into {}", source.name, part.to_string(),
                 source.tensor.to_string());
    ranges_.push_back({n_rows, n_rows + part.shape.rows(), part.data});
    n_rows += part.shape.rows();
  }
  LIMPID_CHECK(ShapeError, n_rows == source.tensor.shape.rows(), "{}: the parts of {} have {} rows",
               source.name, source.tensor.to_string(), n_rows);
}

const std::byte* StoredRows::row(int64_t i) const {
  const auto after = std::ranges::upper_bound(ranges_, i, {}, &Range::begin);
  const Range& range = *std::prev(after);
  return range.data + static_cast<uint64_t>(i - range.begin) * row_bytes_;
}

uint64_t KvLayout::bytes_of(int64_t n, int64_t v_head_dim) const {
  const Shape k{n_layers, n, n_kv_heads, kKvBlock * head_dim};
  const Shape v{n_layers, n, n_kv_heads, kKvBlock * std::max(head_dim, v_head_dim)};
  const auto sum = checked_add(tensor_bytes(k_dtype, k), tensor_bytes(v_dtype, v));
  LIMPID_CHECK(ShapeError, sum.has_value(), "[kv] cache {} has too many bytes", v.to_string());
  return *sum;
}

KvStorage::KvStorage(KvLayout layout) : layout_(layout) {
  for (const DType dtype : {layout.k_dtype, layout.v_dtype}) {
    LIMPID_CHECK(UnsupportedError, dtype == DType::kF32 || dtype == DType::kF16,
                 "a KV cache holds f32 or f16, not {}", dtype_info(dtype).name);
  }
}

uint64_t KvStorage::bytes_to_grow(int64_t n_blocks) const {
  const auto n_new = static_cast<uint64_t>(std::max<int64_t>(0, n_blocks - layout_.n_blocks));
  const auto n_bytes = checked_mul(n_new, block_bytes());
  LIMPID_CHECK(ShapeError, n_bytes.has_value(), "[kv] {} blocks of {} bytes are too large", n_new,
               block_bytes());
  return *n_bytes;
}

void StepInputs::clear() {
  for (auto* list :
       {&token_ids, &positions, &sequences, &output_rows, &block_table, &block_table_begin})
    list->clear();
}

Activation Executor::write(std::span<const float> /*values*/, int64_t /*rows*/, int64_t /*cols*/) {
  throw UnsupportedError(
      fmt::format("the {} executor cannot take activations from the host", name()));
}

void Executor::linear_in_parts(const Activation& x, const Weight& weight, const SeePart& see) {
  std::array projections = {Projection{weight, {}, {}}};
  linear(x, projections);
  show_whole(projections[0].y, see);
}

void Executor::show_whole(const Activation& y, const SeePart& see) {
  std::vector<float> copied;
  std::span<const float> values = view(y);
  if (values.empty()) {
    copied.resize(static_cast<size_t>(y.rows() * y.cols()));
    read(y, copied);
    values = copied;
  }
  see({0, y.cols(), values.data(), y.cols()});
}

// Sorts what is not finite as the largest float.
void Executor::read_best(const Activation& x, int64_t k, std::span<int32_t> columns,
                         std::span<float> values) {
  check_best(x, k, columns, values);
  std::vector<float> all(static_cast<size_t>(x.rows() * x.cols()));
  read(x, all);
  std::vector<int32_t> order(static_cast<size_t>(x.cols()));
  for (int64_t row = 0; row < x.rows(); ++row) {
    const float* of_row = all.data() + row * x.cols();
    const auto key = [&](int32_t column) {
      return std::isfinite(of_row[column]) ? of_row[column]
                                           : std::numeric_limits<float>::infinity();
    };
    std::iota(order.begin(), order.end(), 0);
    std::ranges::partial_sort(order, order.begin() + k, [&](int32_t a, int32_t b) {
      return key(a) > key(b) || (key(a) == key(b) && a < b);
    });
    for (int64_t i = 0; i < k; ++i) {
      const auto at = static_cast<size_t>(row * k + i);
      columns[at] = order[static_cast<size_t>(i)];
      values[at] = of_row[columns[at]];
    }
  }
}

uint64_t Executor::rope_bytes(int64_t n_rot, int64_t n_positions) const {
  return tensor_bytes(DType::kF32, Shape{n_positions, n_rot});
}

uint64_t Executor::step_bytes(const StepSize& size) const {
  uint64_t most = 0;
  for (const StepSize::Moment& moment : size.moments) {
    most = std::max(most, tensor_bytes(DType::kF32, Shape{size.n_tokens, moment.of_tokens}) +
                              tensor_bytes(DType::kF32, Shape{size.n_outputs, moment.of_outputs}));
  }
  return most;
}

uint64_t Executor::available_memory() const { return limpid::available_memory(); }

std::unique_ptr<Executor> make_executor(std::string_view name, const ExecutorOptions& options) {
  if (name == "cpu") return make_cpu_executor(options);
  if (name == "reference") return make_reference_executor(options);
  if (auto gpu = make_gpu_executor(name, options.products)) return gpu;
  throw ArgumentError(
      fmt::format("unknown device `{}`; there are cpu, opencl, cuda and reference", name));
}

}  // namespace limpid
