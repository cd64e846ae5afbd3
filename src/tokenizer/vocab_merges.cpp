#include "tokenizer/vocab_merges.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_set>

#include "base/json_file.h"
#include "limpid/error.hpp"
#include "tokenizer/byte_alphabet.h"
#include "tokenizer/stop_tokens.h"
#include "tokenizer/unicode.h"
#include "tokenizer/vocabulary_json.h"

namespace limpid {
namespace {

constexpr std::string_view kEndOfText = "<|endoftext|>";

// Reads the lines "left right". A first line "#version…" and empty lines are skipped.
std::vector<std::string> parse_merges(const std::string& path, std::string_view text) {
  std::vector<std::string> merges;
  std::string_view rest = text;
  while (!rest.empty()) {
    const auto offset = static_cast<uint64_t>(rest.data() - text.data());
    const size_t end = std::min(rest.find('\n'), rest.size());
    std::string_view line = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
    if (line.empty() || (offset == 0 && line.substr(0, 8) == "#version")) continue;
    const size_t space = line.find(' ');
    if (space == std::string_view::npos || space == 0 || space + 1 == line.size() ||
        line.find(' ', space + 1) != std::string_view::npos)
      throw FormatError(path, offset, "merge", "is not two pieces separated by one space");
    merges.emplace_back(line);
  }
  if (merges.empty()) throw FormatError(path, FormatError::kNoOffset, "merges", "are missing");
  return merges;
}

}  // namespace

TokenizerSpec read_vocab_and_merges(const std::string& vocab_path, std::string_view vocab,
                                    const std::string& merges_path, std::string_view merges) {
  TokenizerSpec spec;
  const JsonFile file(vocab_path, vocab);
  const PieceIds ids = read_vocabulary(file.root(), spec);
  spec.merges = parse_merges(merges_path, merges);
  if (const auto it = ids.find(kEndOfText); it != ids.end()) {
    spec.types[static_cast<size_t>(it->second)] = TokenType::kControl;
    spec.bos = spec.eos = it->second;
  }
  spec.stop_ids = find_stop_ids(spec);
  return spec;
}

TokenizerSpec read_merges_alone(const std::string& path, std::string_view merges) {
  TokenizerSpec spec;
  spec.merges = parse_merges(path, merges);
  // First the bytes that are spelled as themselves, then the others.
  for (const bool is_itself : {true, false}) {
    for (int byte = 0; byte < 256; ++byte) {
      const char32_t c = byte_alphabet::code_point_of(static_cast<uint8_t>(byte));
      if ((c == static_cast<char32_t>(byte)) == is_itself)
        unicode::append_utf8(c, spec.pieces.emplace_back());
    }
  }
  std::unordered_set<std::string> seen(spec.pieces.begin(), spec.pieces.end());
  for (size_t i = 0; i < spec.merges.size(); ++i) {
    std::string piece = spec.merges[i];
    piece.erase(piece.find(' '), 1);
    if (!seen.insert(piece).second) {
      throw FormatError(path, FormatError::kNoOffset, fmt::format("merge {}", i),
                        "makes a piece that already exists");
    }
    spec.pieces.push_back(std::move(piece));
  }
  spec.types.assign(spec.pieces.size(), TokenType::kNormal);
  spec.bos = spec.eos = static_cast<TokenId>(spec.pieces.size());
  spec.pieces.emplace_back(kEndOfText);
  spec.types.push_back(TokenType::kControl);
  spec.stop_ids = find_stop_ids(spec);
  return spec;
}

}  // namespace limpid
