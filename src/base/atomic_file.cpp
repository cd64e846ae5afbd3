#include "base/atomic_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <utility>

#include "base/check.h"

namespace limpid {
namespace {

// Renaming over a device or a folder would replace it, or fail after all the work.
void check_replaceable(const std::string& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) return;
  LIMPID_CHECK(ResourceError, !S_ISDIR(status.st_mode),
               "cannot write {}: it is a folder; name a file in it", path);
  LIMPID_CHECK(ResourceError, S_ISREG(status.st_mode),
               "cannot write {}: it is a device or a pipe; name a file", path);
}

}  // namespace

AtomicFile::AtomicFile(std::string path) : path_(std::move(path)), temporary_(path_ + ".XXXXXX") {
  check_replaceable(path_);
  fd_ = ::mkostemp(temporary_.data(), O_CLOEXEC);
  if (fd_ < 0) fail("write");
}

AtomicFile::~AtomicFile() {
  if (fd_ < 0) return;
  ::close(fd_);
  ::unlink(temporary_.c_str());
}

void AtomicFile::fail(const char* what) const {
  const char* then = errno == ENOENT   ? "; make its folder first"
                     : errno == ENOSPC ? "; free some space, or write to another disk"
                                       : "";
  throw ResourceError(fmt::format("cannot {} {}: {}{}", what, path_, std::strerror(errno), then));
}

void AtomicFile::write(std::string_view bytes) {
  while (!bytes.empty()) {
    // Linux writes at most 2 GiB less a page at once.
    const size_t chunk = std::min<size_t>(bytes.size(), size_t{1} << 30);
    const ssize_t written = ::write(fd_, bytes.data(), chunk);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) fail("write");
    bytes.remove_prefix(static_cast<size_t>(written));
    size_ += static_cast<uint64_t>(written);
  }
}

void AtomicFile::write_at(uint64_t offset, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::pwrite(fd_, bytes.data(), std::min<size_t>(bytes.size(), 1U << 30),
                                     static_cast<off_t>(offset));
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) fail("write");
    bytes.remove_prefix(static_cast<size_t>(written));
    offset += static_cast<uint64_t>(written);
  }
}

void AtomicFile::commit() {
  // mkostemp makes private files; the result should be as if created by open().
  const mode_t mask = ::umask(0);
  ::umask(mask);
  if (::fchmod(fd_, 0666 & ~mask) != 0) fail("write");
  if (::fsync(fd_) != 0) fail("write");
  if (std::rename(temporary_.c_str(), path_.c_str()) != 0) fail("rename the finished file to");
  ::close(std::exchange(fd_, -1));
}

}  // namespace limpid
