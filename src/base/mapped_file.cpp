#include "base/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/check.h"

namespace limpid {
namespace {

// Closes a descriptor at the end of the scope.
struct Descriptor {
  int fd;
  ~Descriptor() {
    if (fd >= 0) ::close(fd);
  }
};

}  // namespace

std::shared_ptr<const MappedFile> MappedFile::open(const std::string& path) {
  // O_NONBLOCK: opening a FIFO must not hang; it has no effect on regular files.
  const Descriptor file{::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)};
  LIMPID_CHECK(ResourceError, file.fd >= 0, "cannot open {}: {}", path, std::strerror(errno));
  struct stat status {};
  LIMPID_CHECK(ResourceError, ::fstat(file.fd, &status) == 0, "cannot stat {}: {}", path,
               std::strerror(errno));
  LIMPID_CHECK(ResourceError, S_ISREG(status.st_mode), "{} is not a regular file", path);
  const auto size = static_cast<size_t>(status.st_size);
  if (size == 0) return std::shared_ptr<const MappedFile>(new MappedFile(path, nullptr, 0));
  void* data = ::mmap(nullptr, size, PROT_READ, MAP_SHARED, file.fd, 0);
  LIMPID_CHECK(ResourceError, data != MAP_FAILED, "cannot map {} ({} bytes): {}", path, size,
               std::strerror(errno));
  return std::shared_ptr<const MappedFile>(
      new MappedFile(path, static_cast<const std::byte*>(data), size));
}

MappedFile::~MappedFile() {
  if (data_ != nullptr) ::munmap(const_cast<std::byte*>(data_), size_);
}

}  // namespace limpid
