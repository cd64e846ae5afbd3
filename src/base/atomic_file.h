// A file that gets its name only when it is complete.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace limpid {

// Writes to a temporary file in the same folder; commit() renames it to `path`. A rename is atomic:
// at any moment `path` is the complete old file or the complete new one, also after a crash.
// Without commit() no file remains, unless the process is killed; the next AtomicFile of that path
// removes such a file. A reader that has the old file open or mapped keeps the old one. The new
// file has the mode of the old one. A link at `path` is replaced, not followed.
class AtomicFile {
 public:
  // Throws ResourceError when the folder cannot be written to, or when `path` is a folder or a
  // device.
  explicit AtomicFile(std::string path);
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;
  ~AtomicFile();

  // Appends. Throws ResourceError, for instance when the disk is full.
  void write(std::string_view bytes);
  void write(std::span<const std::byte> bytes);
  uint64_t size() const { return size_; }  // bytes written
  // Overwrites bytes at `offset`. It does not move the place where write() appends.
  void write_at(uint64_t offset, std::string_view bytes);
  // Writes everything to the disk.
  void sync();
  // Writes everything to the disk, then renames.
  void commit();

 private:
  AtomicFile() = default;
  void open_temporary();
  [[noreturn]] void fail(const char* what) const;
  [[noreturn]] void fail_write(std::string_view bytes) const;

  std::string path_;
  std::string temporary_;
  std::optional<mode_t> mode_;  // of the file that is replaced
  int fd_ = -1;
  uint64_t size_ = 0;
};

// Writes a whole file as an AtomicFile. Throws ResourceError.
void write_file(const std::string& path, std::string_view content);

// Makes a folder and the folders above it, as far as they are missing. Throws ResourceError.
void make_folder(const std::string& path);

// Removes the temporary file of every AtomicFile that exists, for a signal handler that ends the
// process. Returns whether there was one. Async-signal-safe.
bool remove_temporary_files() noexcept;

}  // namespace limpid
