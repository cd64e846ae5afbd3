#include "executor/cpu/cpu_kv_storage.h"

#include "base/check.h"
#include "base/checked.h"

namespace limpid {
namespace {

uint64_t block_bytes(DType dtype, int64_t head_dim) {
  LIMPID_CHECK(UnsupportedError, dtype == DType::kF32 || dtype == DType::kF16,
               "a KV cache holds f32 or f16, not {}", dtype_info(dtype).name);
  return tensor_bytes(dtype, Shape{kKvBlock, head_dim});
}

uint64_t storage_bytes(const KvLayout& layout, uint64_t bytes_of_block) {
  const Shape blocks{layout.n_blocks, layout.n_layers, layout.n_kv_heads};
  const auto n_bytes = checked_mul(static_cast<uint64_t>(blocks.n_elements()), bytes_of_block);
  LIMPID_CHECK(ShapeError, n_bytes.has_value(), "[kv] {} blocks of {} bytes are too large",
               blocks.to_string(), bytes_of_block);
  return *n_bytes;
}

}  // namespace

CpuKvStorage::CpuKvStorage(const KvLayout& layout)
    : KvStorage(layout),
      k_bytes_(block_bytes(layout.k_dtype, layout.head_dim)),
      v_bytes_(block_bytes(layout.v_dtype, padded_head_dim(layout.head_dim))),
      memory_(storage_bytes(layout, k_bytes_ + v_bytes_)) {}

}  // namespace limpid
