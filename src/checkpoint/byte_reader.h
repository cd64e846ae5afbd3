// A cursor over the bytes of a file, shared by all binary readers. Every read is checked against
// the end of the file, and every error names the file, the offset and the field. Numbers are
// little-endian.
//
// A reader of "length, then text" looks like this:
//
//   ByteReader reader(path, bytes);
//   const auto length = reader.number<uint64_t>("header.name_length");
//   const std::string_view name = reader.take(length, "header.name");
//
// No length from a file can move the cursor past the end, so a reader that uses only this class
// cannot read outside its map.
#pragma once

#include <fmt/format.h>

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>

#include "limpid/error.hpp"

namespace limpid {

static_assert(std::endian::native == std::endian::little,
              "file readers assume a little-endian host");

// The cursor. It copies no bytes: the views that take() returns point into the file.
class ByteReader {
 public:
  // `path` names the file in errors. `path` and `bytes` must outlive the reader.
  ByteReader(std::string_view path, std::span<const std::byte> bytes)
      : path_(path), bytes_(bytes) {}

  std::string_view path() const { return path_; }
  uint64_t offset() const { return offset_; }
  std::span<const std::byte> bytes() const { return bytes_; }
  uint64_t size() const { return bytes_.size(); }
  uint64_t remaining() const { return bytes_.size() - offset_; }

  // Reads the next number. Throws FormatError, which names `field`, when fewer bytes are left.
  // memcpy is used because files do not align their numbers for the processor.
  template <typename T>
  T number(std::string_view field) {
    T value;
    std::memcpy(&value, take(sizeof(T), field).data(), sizeof(T));
    return value;
  }

  // Reads the number of items that follow (u64), of at least `item_bytes` each. Throws FormatError
  // when they are more than `most`, or do not fit in the rest of the file: a damaged count cannot
  // cause a large allocation that way.
  uint64_t count(std::string_view field, uint64_t item_bytes, std::string_view items = "entries",
                 uint64_t most = UINT64_MAX) {
    const uint64_t start = offset_;
    const auto n = number<uint64_t>(field);
    if (n > most) fail(start, field, "{} {}; at most {} are read", n, items, most);
    if (n > remaining() / item_bytes) {
      fail(start, field, "{} {} do not fit in the {} bytes left of {}; is the download complete?",
           n, items, remaining(), size());
    }
    return n;
  }

  // Returns a view of the next `n` bytes and moves past them. Throws FormatError when fewer are
  // left.
  std::string_view take(uint64_t n, std::string_view field) {
    if (n > remaining()) {
      fail(offset_, field,
           "needs {} bytes but {} of the file's {} are left; is the download complete?", n,
           remaining(), size());
    }
    const auto* begin = reinterpret_cast<const char*>(bytes_.data()) + offset_;
    offset_ += n;
    return {begin, static_cast<size_t>(n)};
  }

  // Moves to an absolute offset. Throws FormatError when the offset is past the end.
  void seek(uint64_t offset, std::string_view field) {
    if (offset > size()) {
      fail(offset_, field, "is at byte {} of a file of {}; is the download complete?", offset,
           size());
    }
    offset_ = offset;
  }

  // Throws FormatError with a formatted problem. `offset` is where the bad item begins, which is
  // often before offset().
  template <typename... Args>
  [[noreturn]] void fail(uint64_t offset, std::string_view field,
                         fmt::format_string<Args...> problem, Args&&... args) const {
    throw FormatError(std::string(path_), offset, std::string(field),
                      fmt::format(problem, std::forward<Args>(args)...));
  }

 private:
  std::string_view path_;
  std::span<const std::byte> bytes_;
  uint64_t offset_ = 0;
};

// Appends a number to the bytes of a file, for the binary writers.
template <typename T>
void put(std::string& out, T value) {
  out.append(reinterpret_cast<const char*>(&value), sizeof(T));
}

}  // namespace limpid
