#include "checkpoint/byte_reader.h"

#include <fmt/format.h>
#include <simdjson.h>

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
         fmt::format("lies at byte {} of a file of {}; is the download complete?", offset, size()));
  }
  offset_ = offset;
}

void ByteReader::fail(uint64_t offset, std::string_view field, const std::string& problem) const {
  throw FormatError(std::string(path_), offset, std::string(field), problem);
}

std::string printable(std::string_view text) {
  constexpr size_t kLongest = 100;
  std::string out;
  for (const char c : text.substr(0, kLongest)) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte == 0x7f) {
      out += fmt::format("\\x{:02x}", byte);
    } else {
      out += c;
    }
  }
  if (!is_clean_utf8(out)) {  // also a character cut in two
    std::string escaped;
    for (const char c : out) {
      const auto byte = static_cast<unsigned char>(c);
      escaped += byte < 0x80 ? std::string(1, c) : fmt::format("\\x{:02x}", byte);
    }
    out = std::move(escaped);
  }
  if (text.size() > kLongest) out += "...";
  return out;
}

bool is_clean_utf8(std::string_view text) {
  return text.find('\0') == std::string_view::npos &&
         simdjson::validate_utf8(text.data(), text.size());
}

}  // namespace limpid
