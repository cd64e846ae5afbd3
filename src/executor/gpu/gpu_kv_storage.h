// The GPU executor's keys and values, in one buffer of the device.
#pragma once

#include <memory>

#include "executor/executor.h"
#include "executor/gpu/gpu_api.h"

namespace limpid {

// [n_blocks, n_layers, n_kv_heads] times (K [head_dim / chunk, 64, chunk], V [64, head_dim]), f32
// or f16, zero until written: kernels/kv_cache.cl.h has the chunks. A block's heads and layers lie
// together, so that the cache grows by a longer buffer that begins like the one before.
class GpuKvStorage final : public KvStorage {
 public:
  // Throws UnsupportedError for other dtypes and too large heads, ShapeError when it is too large,
  // ResourceError without memory.
  GpuKvStorage(std::shared_ptr<gpu::Device> device, const KvLayout& layout);

  void grow(int64_t n_blocks) override;
  uint64_t bytes_to_grow(int64_t n_blocks) const override;
  uint64_t block_bytes() const override { return block_bytes_; }
  void read_block(int64_t block, std::span<std::byte> out) const override;
  void write_block(int64_t block, std::span<const std::byte> content) override;

  const gpu::Buffer& buffer() const { return *buffer_; }

 private:
  std::shared_ptr<gpu::Device> device_;
  uint64_t block_bytes_;
  std::unique_ptr<gpu::Buffer> buffer_;
};

}  // namespace limpid
