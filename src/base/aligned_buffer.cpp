#include "base/aligned_buffer.h"

#include <sys/mman.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "base/check.h"

namespace limpid {

AlignedBuffer::AlignedBuffer(uint64_t n_bytes) {
  if (n_bytes == 0) return;
  // Pages directly from the system: aligned, zeroed, and taken only when they are first touched.
  void* data = ::mmap(nullptr, n_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  LIMPID_CHECK(ResourceError, data != MAP_FAILED, "cannot allocate {} bytes: {}", n_bytes,
               std::strerror(errno));
  constexpr uint64_t kHugePage = 2 << 20;
  if (n_bytes >= kHugePage) ::madvise(data, n_bytes, MADV_HUGEPAGE);
  data_ = static_cast<std::byte*>(data);
  size_ = n_bytes;
}

AlignedBuffer::AlignedBuffer(AlignedBuffer&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}

AlignedBuffer& AlignedBuffer::operator=(AlignedBuffer&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  return *this;
}

AlignedBuffer::~AlignedBuffer() {
  if (data_ != nullptr) ::munmap(data_, size_);
}

}  // namespace limpid
