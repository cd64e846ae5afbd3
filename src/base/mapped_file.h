// A read-only memory map of a regular file. Opening a model maps its file: the weights are read
// when they are first used, and the pages can be shared by processes and dropped by the system.
// Tensor views point into the map, and a view's Checkpoint keeps the map alive.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace limpid {

// One mapped file; the map ends with the object.
class MappedFile {
 public:
  // Maps the whole file. Throws ResourceError if the file cannot be opened or mapped, or is not a
  // regular file.
  static std::shared_ptr<const MappedFile> open(const std::string& path);

  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  ~MappedFile();

  const std::string& path() const { return path_; }
  std::span<const std::byte> bytes() const { return {data_, size_}; }
  uint64_t size() const { return size_; }

 private:
  MappedFile(std::string path, const std::byte* data, size_t size)
      : path_(std::move(path)), data_(data), size_(size) {}

  std::string path_;
  const std::byte* data_;
  size_t size_;
};

// Files by name.
using NamedFiles = std::map<std::string, std::shared_ptr<const MappedFile>, std::less<>>;

// Returns the path of the MappedFile that contains `address`, or null. The text is valid as long as
// the map. Async-signal-safe: it is for a handler of SIGBUS, which the kernel raises when a program
// reads bytes of a map that the file no longer has.
const char* mapped_path_of(const void* address) noexcept;

// The message for such a file, after its path.
inline constexpr char kBecameUnreadable[] =
    " became unreadable while it was in use: it was truncated, or its disk failed";

// Bytes as text; and the content of a mapped file.
inline std::string_view text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}
inline std::string_view text_of(const MappedFile& file) { return text_of(file.bytes()); }

// Tells the system that the pages that lie entirely in `part` of a mapped file are not needed for
// now. They no longer count as memory of this process, and are read again when they are next used.
void leave_pages(std::span<const std::byte> part);

}  // namespace limpid
