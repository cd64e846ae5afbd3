#include "base/aligned_buffer.h"

#include <sys/mman.h>

#include <cerrno>
#include <cstring>

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
  data_ = std::unique_ptr<std::byte, Unmap>(static_cast<std::byte*>(data), Unmap{n_bytes});
}

void AlignedBuffer::Unmap::operator()(std::byte* data) const noexcept { ::munmap(data, size); }

}  // namespace limpid
