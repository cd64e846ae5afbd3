#include <algorithm>

#include "base/check.h"
#include "executor/check_attention.h"
#include "executor/gpu/gpu_executor.h"
#include "executor/gpu/gpu_kv_storage.h"

namespace limpid {

Activation GpuExecutor::attention(const Activation& q, const Activation& k, const Activation& v,
                                  KvStorage& kv, int64_t layer, const AttentionShape& shape) {
  // Items of a group, as in kernels/attention.cl.h.
  constexpr int kAppendItems = 128;
  constexpr int kAttendItems = 64;
  const auto& storage = static_cast<const GpuKvStorage&>(kv);
  const KvLayout& layout = storage.layout();
  check_attention(inputs_, q, k, v, layout, layer, shape);
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
