#include "train/microgpt/dataset.h"

#include <algorithm>
#include <limits>

#include "base/check.h"

namespace limpid::microgpt {
namespace {

// The characters that Python's str.strip() removes.
bool is_space(char32_t c) {
  return (c >= 0x09 && c <= 0x0d) || (c >= 0x1c && c <= 0x20) || c == 0x85 || c == 0xa0 ||
         c == 0x1680 || (c >= 0x2000 && c <= 0x200a) || c == 0x2028 || c == 0x2029 || c == 0x202f ||
         c == 0x205f || c == 0x3000;
}

std::u32string_view strip(std::u32string_view text) {
  while (!text.empty() && is_space(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_space(text.back())) text.remove_suffix(1);
  return text;
}

}  // namespace

std::u32string from_utf8(std::string_view text, const std::string& name) {
  std::u32string points;
  points.reserve(text.size());
  for (size_t i = 0; i < text.size();) {
    const auto lead = static_cast<unsigned char>(text[i]);
    const size_t length = lead < 0x80 ? 1 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
    char32_t point = length == 1 ? lead : lead & (0x7fU >> length);
    bool valid = lead < 0x80 || (lead >= 0xc2 && lead <= 0xf4 && i + length <= text.size());
    for (size_t k = 1; valid && k < length; ++k) {
      const auto next = static_cast<unsigned char>(text[i + k]);
      valid = (next & 0xc0U) == 0x80;
      point = (point << 6) | (next & 0x3fU);
    }
    // An overlong sequence, a surrogate, or a value beyond Unicode.
    valid = valid && !(length == 3 && point < 0x800) && !(length == 4 && point < 0x10000) &&
            !(point >= 0xd800 && point <= 0xdfff) && point <= 0x10ffff;
    if (!valid) throw FormatError(name, i, "text", "not UTF-8; convert the file first");
    points.push_back(point);
    i += length;
  }
  return points;
}

std::string to_utf8(std::u32string_view text) {
  std::string bytes;
  const auto put = [&bytes](char32_t value) { bytes.push_back(static_cast<char>(value)); };
  for (const char32_t c : text) {
    if (c < 0x80) {
      put(c);
    } else if (c < 0x800) {
      put(0xc0 | (c >> 6));
      put(0x80 | (c & 0x3f));
    } else if (c < 0x10000) {
      put(0xe0 | (c >> 12));
      put(0x80 | ((c >> 6) & 0x3f));
      put(0x80 | (c & 0x3f));
    } else {
      put(0xf0 | (c >> 18));
      put(0x80 | ((c >> 12) & 0x3f));
      put(0x80 | ((c >> 6) & 0x3f));
      put(0x80 | (c & 0x3f));
    }
  }
  return bytes;
}

void Alphabet::encode(std::u32string_view document, std::vector<Token>& tokens) const {
  tokens.clear();
  tokens.push_back(bos());
  for (const char32_t c : document) {
    const auto at = std::lower_bound(characters_.begin(), characters_.end(), c);
    LIMPID_CHECK(
        ArgumentError, at != characters_.end() && *at == c,
        "the model's alphabet does not contain '{}'; continue with the data it was trained on",
        to_utf8(std::u32string(1, c)));
    tokens.push_back(static_cast<Token>(at - characters_.begin()));
  }
  tokens.push_back(bos());
}

std::string Alphabet::decode(Token token) const {
  if (token == bos()) return {};
  return to_utf8(std::u32string(1, characters_.at(static_cast<size_t>(token))));
}

Dataset Dataset::parse(std::string_view text, const std::string& name) {
  const std::u32string points = from_utf8(text, name);
  Dataset dataset;
  for (size_t begin = 0; begin <= points.size();) {
    const size_t end = std::min(points.find_first_of(U"\r\n", begin), points.size());
    const auto document = strip(std::u32string_view(points).substr(begin, end - begin));
    if (!document.empty()) dataset.documents_.emplace_back(document);
    begin = end + 1;
  }
  if (dataset.documents_.empty()) {
    throw FormatError(name, FormatError::kNoOffset, "text", "no documents; write one per line");
  }
  if (dataset.documents_.size() >= std::numeric_limits<uint32_t>::max()) {
    throw FormatError(name, FormatError::kNoOffset, "text", "more than 2^32 documents");
  }
  return dataset;
}

Alphabet Dataset::alphabet(bool with_period) const {
  std::u32string characters = with_period ? U"." : U"";
  for (const std::u32string& document : documents_) characters += document;
  std::sort(characters.begin(), characters.end());
  characters.erase(std::unique(characters.begin(), characters.end()), characters.end());
  return Alphabet(std::move(characters));
}

}  // namespace limpid::microgpt
