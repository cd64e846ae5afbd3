#include "base/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>

#include "base/check.h"
#include "base/divide_up.h"
#include "base/open_files.h"
#include "base/paths.h"

namespace limpid {
namespace {

constinit OpenFiles maps;  // all maps of this process, for mapped_path_of

// A page table entry can map 2 MiB of a file at once, if the file is cached in pieces of that size.
// Reading weights is then 1.05 to 1.1 times as fast (AMD Zen 4), as there are fewer entries to look
// up. ext4 and XFS of Linux 6.x cache a file in such pieces if the program asks for them before it
// first reads the file. A file that is already cached in small pages stays so, and other file
// systems ignore the request.
constexpr size_t kHugePage = size_t{2} << 20;

// Closes a descriptor at the end of the scope.
struct Descriptor {
  int fd;
  ~Descriptor() {
    if (fd >= 0) ::close(fd);
  }
};

}  // namespace

std::shared_ptr<const MappedFile> MappedFile::open(const std::string& path) {
  // O_NONBLOCK, so that opening a FIFO does not wait. It has no effect on regular files.
  const Descriptor file{::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)};
  LIMPID_CHECK(ResourceError, file.fd >= 0, "cannot open {}: {}", shown_path(path),
               std::strerror(errno));
  struct stat status {};
  LIMPID_CHECK(ResourceError, ::fstat(file.fd, &status) == 0, "cannot stat {}: {}", path,
               std::strerror(errno));
  LIMPID_CHECK(ResourceError, S_ISREG(status.st_mode), "{} is not a regular file", path);
  const auto size = static_cast<size_t>(status.st_size);
  if (size == 0) return std::shared_ptr<const MappedFile>(new MappedFile(path, nullptr, 0));
  void* data = ::mmap(nullptr, size, PROT_READ, MAP_SHARED, file.fd, 0);
  LIMPID_CHECK(ResourceError, data != MAP_FAILED, "cannot map {} ({} bytes): {}", path, size,
               std::strerror(errno));
  if (size >= kHugePage) ::madvise(data, size, MADV_HUGEPAGE);
  std::shared_ptr<const MappedFile> mapped(
      new MappedFile(path, static_cast<const std::byte*>(data), size));
  maps.add(mapped->path().c_str(), mapped->bytes().data(), size);
  return mapped;
}

MappedFile::~MappedFile() {
  if (data_ == nullptr) return;
  maps.remove(data_);
  ::munmap(const_cast<std::byte*>(data_), size_);
}

const char* mapped_path_of(const void* address) noexcept {
  const char* found = nullptr;
  const auto* byte = static_cast<const std::byte*>(address);
  maps.each([&](const char* path, const void* key, size_t size) {
    const auto* begin = static_cast<const std::byte*>(key);
    if (byte >= begin && byte < begin + size) found = path;
  });
  return found;
}

// `part` rarely begins or ends at the boundary of a page. The first and the last page may hold
// parts of other tensors too, so they are kept.
void leave_pages(std::span<const std::byte> part) {
  const auto page = static_cast<uintptr_t>(::sysconf(_SC_PAGESIZE));
  const auto first = reinterpret_cast<uintptr_t>(part.data());
  const uintptr_t begin = divide_up(first, page) * page;
  const uintptr_t end = (first + part.size()) / page * page;
  if (begin < end) ::madvise(reinterpret_cast<void*>(begin), end - begin, MADV_DONTNEED);
}

}  // namespace limpid
