#include "train/microgpt/dataset.h"

#include <algorithm>
#include <limits>

#include "base/check.h"
#include "jinja/unicode_text.h"
#include "tokenizer/unicode.h"

namespace limpid::microgpt {
namespace {

// Python's str.strip(). What counts as white space decides the documents and so the whole run,
// which must repeat the one of the Python program.
std::u32string_view strip(std::u32string_view text) {
  while (!text.empty() && jinja::is_space(text.front())) text.remove_prefix(1);
  while (!text.empty() && jinja::is_space(text.back())) text.remove_suffix(1);
  return text;
}

}  // namespace

std::u32string from_utf8(std::string_view text, const std::string& name) {
  std::u32string points;
  points.reserve(text.size());
  unicode::for_each_character(text, [&](std::string_view character) {
    const char32_t point = unicode::decode(character).value;
    if (point >= unicode::kInvalidByte) {
      throw FormatError(name, static_cast<uint64_t>(character.data() - text.data()), "text",
                        "not UTF-8; convert the file first");
    }
    points.push_back(point);
  });
  return points;
}

std::string to_utf8(std::u32string_view text) {
  std::string bytes;
  for (const char32_t c : text) unicode::append_utf8(c, bytes);
  return bytes;
}

void Alphabet::encode(std::u32string_view document, std::vector<Token>& tokens) const {
  tokens.clear();
  tokens.push_back(bos());
  for (const char32_t c : document) {
    const auto at = std::ranges::lower_bound(characters_, c);
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
  // The file of a model could not hold the alphabet.
  if (const size_t zero = text.find('\0'); zero != std::string_view::npos)
    throw FormatError(name, zero, "text", "has a zero byte; the file is not text");
  const std::u32string points = from_utf8(text, name);
  Dataset dataset;
  for (size_t begin = 0; begin <= points.size();) {
    const size_t end = std::min(points.find_first_of(U"\r\n", begin), points.size());
    const auto document = strip(std::u32string_view(points).substr(begin, end - begin));
    if (!document.empty()) dataset.documents_.emplace_back(document);
    begin = end + 1;
  }
  if (dataset.documents_.empty())
    throw_format_error(name, "text", "no documents; write one per line");
  if (dataset.documents_.size() >= std::numeric_limits<uint32_t>::max())
    throw_format_error(name, "text", "more than 2^32 documents");
  return dataset;
}

Alphabet Dataset::alphabet(bool with_period) const {
  std::u32string characters = with_period ? U"." : U"";
  for (const std::u32string& document : documents_) characters += document;
  std::ranges::sort(characters);
  characters.erase(std::ranges::unique(characters).begin(), characters.end());
  return Alphabet(std::move(characters));
}

}  // namespace limpid::microgpt
