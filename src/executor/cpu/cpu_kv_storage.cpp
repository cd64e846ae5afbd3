#include "executor/cpu/cpu_kv_storage.h"

#include "base/check.h"

namespace limpid {
namespace {

uint64_t storage_bytes(const KvLayout& layout, DType dtype, int64_t head_dim) {
  LIMPID_CHECK(UnsupportedError, dtype == DType::kF32 || dtype == DType::kF16,
               "a KV cache holds f32 or f16, not {}", dtype_info(dtype).name);
  return tensor_bytes(
      dtype, Shape{layout.n_layers, layout.n_blocks, layout.n_kv_heads, kKvBlock, head_dim});
}

}  // namespace

CpuKvStorage::CpuKvStorage(const KvLayout& layout)
    : KvStorage(layout),
      k_block_bytes_(tensor_bytes(layout.k_dtype, Shape{kKvBlock, layout.head_dim})),
      v_block_bytes_(
          tensor_bytes(layout.v_dtype, Shape{kKvBlock, padded_head_dim(layout.head_dim)})),
      k_(storage_bytes(layout, layout.k_dtype, layout.head_dim)),
      v_(storage_bytes(layout, layout.v_dtype, padded_head_dim(layout.head_dim))) {}

}  // namespace limpid
