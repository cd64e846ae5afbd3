#include "executor/check_attention.h"

#include "base/check.h"

namespace limpid {

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

}  // namespace limpid
