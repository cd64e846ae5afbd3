#include "tokenizer/vocabulary_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

namespace limpid {

PieceIds read_vocabulary(const JsonPlace& place, TokenizerSpec& spec) {
  const auto object = place.object();
  PieceIds ids;
  ids.reserve(object.size());
  std::vector<std::pair<std::string_view, TokenId>> entries;
  int64_t last = -1;
  for (const auto& [piece, value] : object) {
    int64_t id = -1;
    if (value.get_int64().get(id) != simdjson::SUCCESS || id < 0 || id > INT32_MAX)
      place.fail(fmt::format("entry {} has no token id", entries.size()));
    if (!ids.emplace(piece, static_cast<TokenId>(id)).second)
      place.fail(fmt::format("entry {} repeats the piece of an earlier entry", entries.size()));
    entries.emplace_back(piece, static_cast<TokenId>(id));
    last = std::max(last, id);
  }
  if (entries.empty()) place.fail("is empty");
  // The number of gaps is limited, so that a small file cannot request much memory.
  const auto most = static_cast<int64_t>(2 * entries.size() + 1024);
  if (last >= most)
    place.fail(fmt::format("id {} for a vocabulary of {} tokens", last, entries.size()));
  spec.pieces.resize(static_cast<size_t>(last) + 1);
  spec.types.assign(spec.pieces.size(), TokenType::kUnused);
  for (const auto& [piece, id] : entries) {
    if (spec.types[static_cast<size_t>(id)] != TokenType::kUnused)
      place.fail(fmt::format("id {} is a duplicate", id));
    spec.pieces[static_cast<size_t>(id)] = piece;
    spec.types[static_cast<size_t>(id)] = TokenType::kNormal;
  }
  return ids;
}

}  // namespace limpid
