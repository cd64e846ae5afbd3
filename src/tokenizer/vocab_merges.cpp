#include "tokenizer/vocab_merges.h"

#include <algorithm>
#include <unordered_set>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/json_file.h"
#include "base/text.h"
#include "tokenizer/byte_alphabet.h"
#include "tokenizer/unicode.h"

namespace limpid {
namespace {

constexpr std::string_view kEndOfText = "<|endoftext|>";

// Reads the lines "left right". A first line "#version…" and empty lines are skipped.
std::vector<std::string> parse_merges(const std::string& path, std::string_view text) {
  std::vector<std::string> merges;
  std::string_view rest = text;
  while (!rest.empty()) {
    const auto offset = static_cast<uint64_t>(rest.data() - text.data());
    const std::string_view line = take_line(rest);
    if (line.empty() || (offset == 0 && line.substr(0, 8) == "#version")) continue;
    if (!halves_of_merge(line))
      throw FormatError(path, offset, "merge", "is not two pieces separated by one space");
    merges.emplace_back(line);
  }
  if (merges.empty()) throw_format_error(path, "merges", "are missing");
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
      throw_format_error(path, fmt::format("merge {}", i), "forms a piece that already exists");
    }
    spec.pieces.push_back(std::move(piece));
  }
  spec.types.assign(spec.pieces.size(), TokenType::kNormal);
  spec.bos = spec.eos = static_cast<TokenId>(spec.pieces.size());
  spec.pieces.emplace_back(kEndOfText);
  spec.types.push_back(TokenType::kControl);
  return spec;
}

PieceIds read_vocabulary(const JsonPlace& place, TokenizerSpec& spec) {
  const auto object = place.object();
  PieceIds ids;
  ids.reserve(object.size());
  std::vector<std::pair<std::string_view, TokenId>> entries;
  int64_t last = -1;
  for (const auto& [piece, value] : object) {
    int64_t id = -1;
    if (value.get_int64().get(id) != simdjson::SUCCESS || id < 0 || id > INT32_MAX)
      place.fail("entry {} has no token id", entries.size());
    if (!ids.emplace(piece, static_cast<TokenId>(id)).second)
      place.fail("entry {} repeats the piece of an earlier entry", entries.size());
    entries.emplace_back(piece, static_cast<TokenId>(id));
    last = std::max(last, id);
  }
  if (entries.empty()) place.fail("is empty");
  // The number of gaps is limited, so that a small file cannot request much memory.
  const auto most = static_cast<int64_t>(2 * entries.size() + 1024);
  if (last >= most)
    place.fail("id {} is too large for a vocabulary of {} tokens", last, entries.size());
  spec.pieces.resize(static_cast<size_t>(last) + 1);
  spec.types.assign(spec.pieces.size(), TokenType::kUnused);
  for (const auto& [piece, id] : entries) {
    if (spec.types[static_cast<size_t>(id)] != TokenType::kUnused)
      place.fail("id {} is a duplicate", id);
    spec.pieces[static_cast<size_t>(id)] = piece;
    spec.types[static_cast<size_t>(id)] = TokenType::kNormal;
  }
  return ids;
}

}  // namespace limpid
