#include "base/atomic_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <regex>
#include <system_error>
#include <utility>

#include "base/check.h"
#include "base/mapped_file.h"
#include "base/open_files.h"
#include "base/paths.h"

namespace limpid {
namespace {

constinit OpenFiles temporary_files;  // all of this process

// The mode of the file at `path`, which will be replaced; nothing if there is none. A rename onto a
// device would replace the device, and a rename onto a folder would fail after all the work.
std::optional<mode_t> mode_to_keep(const std::string& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) return std::nullopt;
  LIMPID_CHECK(ResourceError, !S_ISDIR(status.st_mode),
               "cannot write {}: it is a folder; name a file in it", path);
  LIMPID_CHECK(ResourceError, S_ISREG(status.st_mode),
               "cannot write {}: it is a device or a pipe; name a file", path);
  return status.st_mode & (S_IRWXU | S_IRWXG | S_IRWXO);
}

// Locks the temporary file until it is closed: the lock shows other processes that its writer
// lives. Returns false when one of them removed the file before it was locked.
bool lock_temporary(int fd, const std::string& path) {
  const bool is_taken = ::flock(fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;
  return !is_taken && ::access(path.c_str(), F_OK) == 0;
}

// Removes the temporary files of `path` that killed processes left: those that nobody has locked.
void remove_remains(const std::string& path) {
  static const std::regex ending(R"(\.\d+-\d+\.part)");  // as open_temporary() gives it to a name
  const std::string beginning = std::filesystem::path(path).filename().string();
  for (const std::filesystem::path& entry : entries_of(folder_of(path))) {
    const std::string name = entry.filename().string();
    const bool is_temporary =
        name.starts_with(beginning) && std::regex_match(name.substr(beginning.size()), ending);
    const int fd = is_temporary ? ::open(entry.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW) : -1;
    if (fd < 0) continue;
    if (::flock(fd, LOCK_EX | LOCK_NB) == 0) ::unlink(entry.c_str());
    ::close(fd);
  }
}

}  // namespace

// Delegates to the default constructor: the object then counts as constructed, so the destructor
// runs when open_temporary() throws.
AtomicFile::AtomicFile(std::string path) : AtomicFile() {
  path_ = std::move(path);
  mode_ = mode_to_keep(path_);
  remove_remains(path_);
  open_temporary();
}

AtomicFile::~AtomicFile() {
  if (fd_ >= 0) {
    ::close(fd_);
    ::unlink(temporary_.c_str());
  }
  temporary_files.remove(this);
}

// The kernel applies the umask to 0666. mkstemp() would create a private file, and the umask can
// only be read by changing it for the whole process. The copy of a private file is private from the
// start, and its owner can always open it (remove_remains). O_EXCL never opens an existing file, so
// it does no harm that others can guess the name. The name is listed before the file exists: a
// signal between the two steps must not leave the file behind.
void AtomicFile::open_temporary() {
  static std::atomic<uint64_t> n_names = 0;
  const mode_t mode = mode_.value_or(0666) | S_IRUSR | S_IWUSR;
  do {
    if (fd_ >= 0) ::close(fd_);
    temporary_files.remove(this);
    temporary_ = fmt::format("{}.{}-{}.part", path_, ::getpid(), ++n_names);
    temporary_files.add(temporary_.c_str(), this, 0);
    fd_ = ::open(temporary_.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, mode);
  } while (fd_ < 0 ? errno == EEXIST : !lock_temporary(fd_, temporary_));
  if (fd_ < 0) fail("write");
}

void AtomicFile::fail(const char* what) const {
  const char* then = errno == ENOENT   ? "; create its folder first"
                     : errno == ENOSPC ? "; free some space, or write to another disk"
                                       : "";
  throw ResourceError(fmt::format("cannot {} {}: {}{}", what, path_, std::strerror(errno), then));
}

// `bytes` may be in a mapped file. When that file has become shorter, an instruction that reads the
// bytes raises SIGBUS, but a system call returns EFAULT. The error must then name the file that is
// read, not the one that is written.
void AtomicFile::fail_write(std::string_view bytes) const {
  const char* source = errno == EFAULT ? mapped_path_of(bytes.data()) : nullptr;
  if (source == nullptr) fail("write");
  throw ResourceError(fmt::format("{}{}", source, kBecameUnreadable));
}

void AtomicFile::write(std::string_view bytes) {
  write_at(size_, bytes);
  size_ += bytes.size();
}

void AtomicFile::write(std::span<const std::byte> bytes) { write(text_of(bytes)); }

void AtomicFile::write_at(uint64_t offset, std::string_view bytes) {
  while (!bytes.empty()) {
    // Linux writes at most 2 GiB less a page at once.
    const size_t chunk = std::min<size_t>(bytes.size(), size_t{1} << 30);
    const ssize_t written = ::pwrite(fd_, bytes.data(), chunk, static_cast<off_t>(offset));
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) fail_write(bytes);
    bytes.remove_prefix(static_cast<size_t>(written));
    offset += static_cast<uint64_t>(written);
  }
}

void AtomicFile::sync() {
  if (::fsync(fd_) != 0) fail("write");
}

// A file system without modes refuses one, and has none to keep.
void AtomicFile::commit() {
  if (mode_) ::fchmod(fd_, *mode_);
  sync();
  if (std::rename(temporary_.c_str(), path_.c_str()) != 0) fail("rename the finished file to");
  ::close(std::exchange(fd_, -1));
}

void write_file(const std::string& path, std::string_view content) {
  AtomicFile file(path);
  file.write(content);
  file.commit();
}

void make_folder(const std::string& path) {
  std::error_code error;
  std::filesystem::create_directories(path, error);
  std::error_code unseen;
  LIMPID_CHECK(ResourceError, !error || !std::filesystem::is_symlink(path, unseen),
               "cannot make the folder {}: there is a link of that name, which leads to no folder",
               path);
  LIMPID_CHECK(ResourceError, !error, "cannot make the folder {}: {}", path, error.message());
}

bool remove_temporary_files() noexcept {
  bool removed = false;
  temporary_files.each(
      [&](const char* path, const void*, size_t) { removed |= ::unlink(path) == 0; });
  return removed;
}

}  // namespace limpid
