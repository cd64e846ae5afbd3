// Memory for tensors and packed weights: aligned to 64 bytes (a cache line, and the widest vector),
// zeroed, never resized.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
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

  std::byte* data() { return data_.get(); }
  const std::byte* data() const { return data_.get(); }
  size_t size() const { return data_ ? data_.get_deleter().size : 0; }

  // The whole buffer as objects of a trivial type.
  template <typename T>
  std::span<T> as() {
    return {reinterpret_cast<T*>(data()), size() / sizeof(T)};
  }
  template <typename T>
  std::span<const T> as() const {
    return {reinterpret_cast<const T*>(data()), size() / sizeof(T)};
  }

 private:
  struct Unmap {
    size_t size;
    void operator()(std::byte* data) const noexcept;
  };
  std::unique_ptr<std::byte, Unmap> data_;
};

}  // namespace limpid
