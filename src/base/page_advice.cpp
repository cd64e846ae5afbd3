#include "base/page_advice.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>

namespace limpid {

// `part` rarely begins or ends at a page. Its neighbours are other tensors, so only the pages that
// lie entirely in `part` are left.
void leave_pages(std::span<const std::byte> part) {
  const auto page = static_cast<uintptr_t>(::sysconf(_SC_PAGESIZE));
  const auto first = reinterpret_cast<uintptr_t>(part.data());
  const uintptr_t begin = (first + page - 1) / page * page;
  const uintptr_t end = (first + part.size()) / page * page;
  if (begin < end) ::madvise(reinterpret_cast<void*>(begin), end - begin, MADV_DONTNEED);
}

}  // namespace limpid
