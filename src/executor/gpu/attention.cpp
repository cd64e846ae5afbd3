#include <algorithm>

#include "base/check.h"
#include "executor/gpu/gpu_executor.h"
#include "executor/gpu/gpu_kv_storage.h"

namespace limpid {

void GpuExecutor::check_attention(const Activation& q, const Activation& k, const Activation& v,
                                  const KvLayout& layout, int64_t layer,
                                  const AttentionShape& shape) const {
  LIMPID_CHECK(
      ShapeError,
      shape.n_kv_heads > 0 && shape.n_heads % shape.n_kv_heads == 0 &&
          q.cols() == shape.n_heads * shape.head_dim &&
          k.cols() == shape.n_kv_heads * shape.head_dim && v.cols() == k.cols() &&
          q.rows() == inputs_.n_tokens() && k.rows() == q.rows() && v.rows() == q.rows(),
      "[attention] q [{}, {}], k [{}, {}], v [{}, {}] for {} tokens, {} heads, {} KV heads of {}",
      q.rows(), q.cols(), k.rows(), k.cols(), v.rows(), v.cols(), inputs_.n_tokens(), shape.n_heads,
      shape.n_kv_heads, shape.head_dim);
  LIMPID_CHECK(ShapeError,
               layout.n_kv_heads == shape.n_kv_heads && layout.head_dim == shape.head_dim &&
                   layer >= 0 && layer < layout.n_layers,
               "[attention] layer {}, {} KV heads of {} in a cache of {} layers, {} KV heads of {}",
               layer, shape.n_kv_heads, shape.head_dim, layout.n_layers, layout.n_kv_heads,
               layout.head_dim);
  for (size_t t = 0; t < inputs_.positions.size(); ++t) {
    const auto s = static_cast<size_t>(inputs_.sequences[t]);
    LIMPID_CHECK(ShapeError,
                 inputs_.positions[t] / kKvBlock <
                         inputs_.block_table_begin[s + 1] - inputs_.block_table_begin[s] &&
                     inputs_.block_of(inputs_.sequences[t], inputs_.positions[t]) < layout.n_blocks,
                 "[attention] no block holds position {} of sequence {}", inputs_.positions[t], s);
  }
}

Activation GpuExecutor::attention(const Activation& q, const Activation& k, const Activation& v,
                                  KvStorage& kv, int64_t layer, const AttentionShape& shape) {
  // Items of a group, as in kernels/attention.cl.h.
  constexpr int kAppendItems = 128;
  constexpr int kAttendItems = 64;
  const auto& storage = static_cast<const GpuKvStorage&>(kv);
  const KvLayout& layout = storage.layout();
  check_attention(q, k, v, layout, layer, shape);
  const AttentionKernels& kernels = attention_kernels(layout.k_dtype, layout.v_dtype);
  const auto n_tokens = static_cast<int32_t>(q.rows());
  const auto layer_number = static_cast<int32_t>(layer);
  const auto n_layers = static_cast<int32_t>(layout.n_layers);
  const auto n_kv_heads = static_cast<int32_t>(shape.n_kv_heads);
  const auto head_dim = static_cast<int32_t>(shape.head_dim);
  launch(*kernels.append, gpu::cover(k.rows() * k.cols(), kAppendItems), buffer(k), buffer(v),
         storage.buffer(), *step_, lists_.positions, lists_.sequences, lists_.table,
         lists_.table_begin, n_tokens, layer_number, n_layers, n_kv_heads, head_dim);
  Activation out = allocate(q.rows(), q.cols());
  launch(*kernels.attend, {q.rows(), shape.n_heads, kAttendItems}, buffer(q), storage.buffer(),
         *step_, lists_.positions, lists_.sequences, lists_.table, lists_.table_begin, buffer(out),
         layer_number, n_layers, n_kv_heads, static_cast<int32_t>(shape.n_heads / shape.n_kv_heads),
         head_dim, shape.scale);
  return out;
}

}  // namespace limpid
