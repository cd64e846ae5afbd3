#include "checkpoint/byte_reader.h"

#include <fmt/format.h>

#include "limpid/error.hpp"

namespace limpid {

std::string_view ByteReader::take(uint64_t n, std::string_view field) {
  if (n > remaining()) {
    fail(offset_, field,
         fmt::format("needs {} bytes but {} of the file's {} are left; is the download complete?",
                     n, remaining(), size()));
  }
  const auto* begin = reinterpret_cast<const char*>(bytes_.data()) + offset_;
  offset_ += n;
  return {begin, static_cast<size_t>(n)};
}

void ByteReader::seek(uint64_t offset, std::string_view field) {
  if (offset > size()) {
    fail(offset_, field,
         fmt::format("is at byte {} of a file of {}; is the download complete?", offset, size()));
  }
  offset_ = offset;
}

void ByteReader::fail(uint64_t offset, std::string_view field, const std::string& problem) const {
  throw FormatError(std::string(path_), offset, std::string(field), problem);
}

}  // namespace limpid
