// Memory for tensors and packed weights: aligned to 64 bytes (a cache line, and the widest vector),
// zeroed, never resized.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace limpid {

// Owns a block of memory. Moving passes the block on; nothing is copied.
class AlignedBuffer {
 public:
  static constexpr size_t kAlignment = 64;

  AlignedBuffer() = default;
  // Throws ResourceError, which names the size, when there is not enough memory. Large buffers ask
  // for huge pages.
  explicit AlignedBuffer(uint64_t n_bytes);
  AlignedBuffer(AlignedBuffer&& other) noexcept;
  AlignedBuffer& operator=(AlignedBuffer&& other) noexcept;
  ~AlignedBuffer();

  std::byte* data() { return data_; }
  const std::byte* data() const { return data_; }
  size_t size() const { return size_; }

  // The whole buffer as objects of a trivial type.
  template <typename T>
  std::span<T> as() {
    return {reinterpret_cast<T*>(data_), size_ / sizeof(T)};
  }
  template <typename T>
  std::span<const T> as() const {
    return {reinterpret_cast<const T*>(data_), size_ / sizeof(T)};
  }

 private:
  std::byte* data_ = nullptr;
  size_t size_ = 0;
};

}  // namespace limpid
