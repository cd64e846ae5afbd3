#include "executor/gpu/gpu_kv_storage.h"

#include "base/check.h"

namespace limpid {
namespace {

// A quarter of kMostState of attention.cpp: a group of four rows still fits.
constexpr int64_t kMostHeadDim = 512;

}  // namespace

GpuKvStorage::GpuKvStorage(std::shared_ptr<gpu::Device> device, const KvLayout& layout)
    : KvStorage(layout), device_(std::move(device)), block_bytes_(layout.bytes_of(1)) {
  LIMPID_CHECK(UnsupportedError, layout.head_dim <= kMostHeadDim,
               "[kv] heads of {} elements; a GPU takes heads of up to {}", layout.head_dim,
               kMostHeadDim);
  const uint64_t n_bytes = layout.bytes_of(layout.n_blocks);
  buffer_ = device_->allocate(n_bytes, "keys and values");
  device_->zero(*buffer_, 0, n_bytes);
}

void GpuKvStorage::grow(int64_t n_blocks) {
  if (n_blocks <= layout().n_blocks) return;
  const uint64_t before = layout().bytes_of(layout().n_blocks);
  const uint64_t n_bytes = layout().bytes_of(n_blocks);
  auto larger = device_->allocate(n_bytes, "keys and values");
  device_->copy(*buffer_, *larger, before);
  device_->zero(*larger, before, n_bytes - before);
  // The copy may not have run yet, and a driver keeps a buffer until what uses it is done.
  buffer_ = std::move(larger);
  KvStorage::grow(n_blocks);
}

uint64_t GpuKvStorage::bytes_to_grow(int64_t n_blocks) const {
  return n_blocks <= layout().n_blocks ? 0 : layout().bytes_of(n_blocks);
}

void GpuKvStorage::read_block(int64_t block, std::span<std::byte> out) const {
  device_->read(*buffer_, static_cast<uint64_t>(block) * block_bytes_, out.first(block_bytes_));
}

void GpuKvStorage::write_block(int64_t block, std::span<const std::byte> content) {
  device_->write(*buffer_, static_cast<uint64_t>(block) * block_bytes_,
                 content.first(block_bytes_));
}

}  // namespace limpid
