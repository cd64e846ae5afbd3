#include "executor/check_shapes.h"

#include <algorithm>
#include <iterator>

#include "base/check.h"

namespace limpid {

void check_elements(std::string_view op, size_t n_elements, int64_t rows, int64_t cols) {
  LIMPID_CHECK(ShapeError, static_cast<int64_t>(n_elements) == rows * cols,
               "[{}] {} elements for [{}, {}]", op, n_elements, rows, cols);
}

void check_same_shape(std::string_view op, const Activation& a, const Activation& b) {
  LIMPID_CHECK(ShapeError, a.rows() == b.rows() && a.cols() == b.cols(),
               "[{}] [{}, {}] and [{}, {}]", op, a.rows(), a.cols(), b.rows(), b.cols());
}

void check_vector(std::string_view op, const Weight& vector, int64_t cols) {
  LIMPID_CHECK(ShapeError, vector.cols == cols, "[{}] weight [{}] for {} columns", op, vector.cols,
               cols);
}

void check_indices(std::string_view op, std::span<const int32_t> indices, int64_t n_rows) {
  LIMPID_CHECK(ShapeError,
               std::ranges::all_of(indices, [n_rows](int32_t i) { return 0 <= i && i < n_rows; }),
               "[{}] an index is outside the {} rows", op, n_rows);
}

void check_heads(const WeightSource& source) {
  const int64_t n_rows = source.tensor.shape.rows();
  LIMPID_CHECK(
      ShapeError,
      source.row_order == RowOrder::kHalfSplit ||
          (source.head_dim > 0 && source.head_dim % 2 == 0 && n_rows % source.head_dim == 0),
      "{}: {} rows are not whole heads of {}", source.name, n_rows, source.head_dim);
}

void check_gradient(const WeightSource& weight, size_t n_elements) {
  LIMPID_CHECK(ShapeError, static_cast<int64_t>(n_elements) == weight.tensor.shape.n_elements(),
               "[keep_gradient] {} elements for {} {}", n_elements, weight.name,
               weight.tensor.to_string());
  LIMPID_CHECK(UnsupportedError,
               is_plain_float(weight.tensor.dtype) && weight.row_parts.size() <= 1,
               "{} is {}: only tensors of f32, f16 and bf16 have a gradient", weight.name,
               weight.tensor.to_string());
}

void check_rms_norm(const Activation& x, const Weight& weight) {
  LIMPID_CHECK(ShapeError, weight.cols > 0 && x.cols() % weight.cols == 0,
               "[rms_norm] weight [{}], x [{}, {}]", weight.cols, x.rows(), x.cols());
}

void check_linear(std::string_view op, const Activation& x, const Projection& projection) {
  const Weight& weight = projection.weight;
  LIMPID_CHECK(ShapeError, weight.cols == x.cols(), "[{}] weight [{}, {}], x [{}, {}]", op,
               weight.rows, weight.cols, x.rows(), x.cols());
  if (projection.bias) check_vector(op, projection.bias, weight.rows);
}

void check_rope(const StepInputs& inputs, const Activation& x, const RopeTable& table,
                int64_t head_dim, int64_t n_positions) {
  LIMPID_CHECK(ShapeError, head_dim > 0 && x.cols() % head_dim == 0 && table.n_rot <= head_dim,
               "[rope] {} columns, heads of {}, {} rotated", x.cols(), head_dim, table.n_rot);
  check_indices("rope", inputs.positions, n_positions);
  LIMPID_CHECK(ShapeError, x.rows() == inputs.n_tokens(), "[rope] {} rows for {} tokens", x.rows(),
               inputs.n_tokens());
}

void check_attention(const StepInputs& inputs, const Activation& q, const Activation& k,
                     const Activation& v, const KvLayout& layout, int64_t layer,
                     const AttentionShape& shape) {
  LIMPID_CHECK(
      ShapeError,
      shape.n_kv_heads > 0 && shape.n_heads % shape.n_kv_heads == 0 &&
          q.cols() == shape.n_heads * shape.head_dim &&
          k.cols() == shape.n_kv_heads * shape.head_dim && v.cols() == k.cols() &&
          q.rows() == inputs.n_tokens() && k.rows() == q.rows() && v.rows() == q.rows(),
      "[attention] q [{}, {}], k [{}, {}], v [{}, {}] for {} tokens, {} heads, {} KV heads of {}",
      q.rows(), q.cols(), k.rows(), k.cols(), v.rows(), v.cols(), inputs.n_tokens(), shape.n_heads,
      shape.n_kv_heads, shape.head_dim);
  LIMPID_CHECK(ShapeError,
               layout.n_kv_heads == shape.n_kv_heads && layout.head_dim == shape.head_dim &&
                   layer >= 0 && layer < layout.n_layers,
               "[attention] layer {}, {} KV heads of {} in a cache of {} layers, {} KV heads of {}",
               layer, shape.n_kv_heads, shape.head_dim, layout.n_layers, layout.n_kv_heads,
               layout.head_dim);
  for (size_t t = 0; t < inputs.positions.size(); ++t) {
    const auto s = static_cast<size_t>(inputs.sequences[t]);
    LIMPID_CHECK(ShapeError,
                 inputs.positions[t] / kKvBlock <
                         inputs.block_table_begin[s + 1] - inputs.block_table_begin[s] &&
                     inputs.block_of(inputs.sequences[t], inputs.positions[t]) < layout.n_blocks,
                 "[attention] no block holds position {} of sequence {}", inputs.positions[t], s);
  }
}

void check_best(const Activation& x, int64_t k, std::span<const int32_t> columns,
                std::span<const float> values) {
  const int64_t n = x.rows() * k;
  LIMPID_CHECK(ShapeError,
               1 <= k && k <= x.cols() && std::ssize(columns) == n && std::ssize(values) == n,
               "[read_best] the {} best of [{}, {}], {} columns, {} values", k, x.rows(), x.cols(),
               columns.size(), values.size());
}

}  // namespace limpid
