// A file that appears under its name only when it is complete.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace limpid {

// Writes to a temporary file in the same folder; commit() renames it over `path`. Without commit()
// nothing is left. A reader that has the old file open or mapped keeps the old one.
class AtomicFile {
 public:
  // Throws ResourceError when the folder cannot be written to, or `path` is a folder or a device.
  explicit AtomicFile(std::string path);
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;
  ~AtomicFile();

  // Throws ResourceError, for instance when the disk is full.
  void write(std::string_view bytes);
  uint64_t size() const { return size_; }  // bytes written
  // The same anywhere in the file; write() does not notice.
  void write_at(uint64_t offset, std::string_view bytes);
  void commit();

 private:
  AtomicFile() = default;
  void open_temporary();
  [[noreturn]] void fail(const char* what) const;
  [[noreturn]] void fail_write(std::string_view bytes) const;

  std::string path_;
  std::string temporary_;
  int fd_ = -1;
  uint64_t size_ = 0;
};

// Removes the temporary file of every AtomicFile that lives, for a signal handler that ends the
// process. Returns whether there was one. Async-signal-safe.
bool remove_temporary_files() noexcept;

}  // namespace limpid
