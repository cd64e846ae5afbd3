// The CPU executor's keys and values: each block of each KV head in one piece, K transposed, so
// that scores need no sums across lanes and attention streams both.
#pragma once

#include "base/aligned_buffer.h"
#include "executor/cpu/kernels.h"
#include "executor/executor.h"

namespace limpid {

// K [n_layers, n_blocks, n_kv_heads, head_dim, 64] and V [n_layers, n_blocks, n_kv_heads, 64,
// head_dim rounded up to 16], f32 or f16, zero until written.
class CpuKvStorage final : public KvStorage {
 public:
  // Throws UnsupportedError for other dtypes, ShapeError when it is too large, ResourceError
  // without memory.
  explicit CpuKvStorage(const KvLayout& layout);

  // Where one head's 64 positions lie: K [head_dim, 64], V [64, head_dim rounded up to 16].
  std::byte* k_block(int64_t layer, int64_t block, int64_t kv_head) {
    return k_.data() + index(layer, block, kv_head) * k_block_bytes_;
  }
  std::byte* v_block(int64_t layer, int64_t block, int64_t kv_head) {
    return v_.data() + index(layer, block, kv_head) * v_block_bytes_;
  }
  bool k_is_f16() const { return layout().k_dtype == DType::kF16; }
  bool v_is_f16() const { return layout().v_dtype == DType::kF16; }

 private:
  uint64_t index(int64_t layer, int64_t block, int64_t kv_head) const {
    return static_cast<uint64_t>((layer * layout().n_blocks + block) * layout().n_kv_heads +
                                 kv_head);
  }

  uint64_t k_block_bytes_;
  uint64_t v_block_bytes_;
  AlignedBuffer k_;
  AlignedBuffer v_;
};

}  // namespace limpid
