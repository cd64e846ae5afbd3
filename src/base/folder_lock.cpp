#include "base/folder_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/check.h"

namespace limpid {

FolderLock::FolderLock(const std::string& path) : FolderLock() {
  descriptor_ = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  LIMPID_CHECK(ResourceError, descriptor_ >= 0, "cannot open the folder {}: {}", path,
               std::strerror(errno));
  const bool is_taken = ::flock(descriptor_, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;
  LIMPID_CHECK(ArgumentError, !is_taken, "another process is writing to {}", path);
}

FolderLock::~FolderLock() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

}  // namespace limpid
