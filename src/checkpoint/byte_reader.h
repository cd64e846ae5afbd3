// The one way that binary readers walk through a file: bounded, with an offset and a field name in
// every error. Little-endian.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>

#include "base/printable.h"

namespace limpid {

static_assert(std::endian::native == std::endian::little,
              "file readers assume a little-endian host");

class ByteReader {
 public:
  // `path` names the file in errors; both must outlive the reader.
  ByteReader(std::string_view path, std::span<const std::byte> bytes)
      : path_(path), bytes_(bytes) {}

  std::string_view path() const { return path_; }
  uint64_t offset() const { return offset_; }
  uint64_t size() const { return bytes_.size(); }
  uint64_t remaining() const { return bytes_.size() - offset_; }

  // The next number; throws FormatError naming `field` when fewer bytes are left.
  template <typename T>
  T number(std::string_view field) {
    T value;
    std::memcpy(&value, take(sizeof(T), field).data(), sizeof(T));
    return value;
  }

  // The next `n` bytes, in place.
  std::string_view take(uint64_t n, std::string_view field);

  // Moves to an absolute offset. Throws FormatError when it lies behind the end.
  void seek(uint64_t offset, std::string_view field);

  // Throws FormatError. `offset` is where the offending item begins.
  [[noreturn]] void fail(uint64_t offset, std::string_view field, const std::string& problem) const;

 private:
  std::string_view path_;
  std::span<const std::byte> bytes_;
  uint64_t offset_ = 0;
};

}  // namespace limpid
