#include "tokenizer/merge_list.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "base/check.h"
#include "base/utf8.h"
#include "tokenizer/name_automaton.h"

namespace limpid {
namespace {

// The pieces that plain text can merge into, by spelling.
class NormalPieces {
 public:
  explicit NormalPieces(const TokenizerSpec& spec) : spec_(spec) {
    std::vector<std::string> spellings;
    for (size_t id = 0; id < spec.pieces.size(); ++id) {
      const std::string& piece = spec.pieces[id];
      if (spec.types[id] != TokenType::kNormal || piece.empty() ||
          !names_.emplace(piece, ids_.size()).second)
        continue;
      ids_.push_back(id);
      spellings.push_back(piece);
    }
    automaton_ = NameAutomaton(spellings);
  }

  // Returns the piece with this spelling. When two pieces have the same spelling, the first one is
  // used.
  std::optional<size_t> find(std::string_view piece) const {
    const auto found = names_.find(piece);
    if (found == names_.end()) return std::nullopt;
    return ids_[found->second];
  }
  bool is_first(size_t id) const { return find(spec_.pieces[id]) == id; }

  // Returns the ways to form a piece from two pieces, ordered by the ids of the parts. Takes O(n
  // log n) for n bytes: the pieces that it begins with are a chain in the automaton, and the pieces
  // that it ends with are states.
  std::vector<std::pair<size_t, size_t>> halves(size_t id) const {
    const std::string& piece = spec_.pieces[id];
    std::vector<std::pair<size_t, size_t>> found;
    if (piece.empty()) return found;
    std::vector<int32_t> ends(piece.size(), NameAutomaton::kNone);  // by where they begin
    NameAutomaton::State state = NameAutomaton::kStart;
    for (size_t at = piece.size(); at-- > 1;) {
      state = automaton_.next(state, piece[at]);
      const int32_t name = automaton_.longest(state);
      if (name != NameAutomaton::kNone && size_of(name) == piece.size() - at) ends[at] = name;
    }
    std::vector<bool> is_cut(piece.size());  // between characters
    unicode::for_each_character(piece, [&](std::string_view character) {
      is_cut[static_cast<size_t>(character.data() - piece.data())] = true;
    });
    int32_t start = automaton_.shorter(static_cast<int32_t>(names_.at(piece)));
    for (; start != NameAutomaton::kNone; start = automaton_.shorter(start)) {
      const size_t at = size_of(start);
      if (is_cut[at] && ends[at] != NameAutomaton::kNone)
        found.emplace_back(id_of(start), id_of(ends[at]));
    }
    std::sort(found.begin(), found.end());
    return found;
  }

 private:
  size_t id_of(int32_t name) const { return ids_[static_cast<size_t>(name)]; }
  size_t size_of(int32_t name) const { return spec_.pieces[id_of(name)].size(); }

  const TokenizerSpec& spec_;
  std::unordered_map<std::string_view, size_t> names_;
  std::vector<size_t> ids_;  // by name
  NameAutomaton automaton_;
};

// Returns "left right", the entry of a merge list.
std::string merge_of(const TokenizerSpec& spec, const std::pair<size_t, size_t>& halves) {
  return fmt::format("{} {}", spec.pieces[halves.first], spec.pieces[halves.second]);
}

}  // namespace

std::vector<std::string> merge_list(const TokenizerSpec& spec) {
  if (spec.merge_order == MergeOrder::kList) return spec.merges;
  std::vector<size_t> order(spec.pieces.size());
  std::iota(order.begin(), order.end(), size_t{0});
  if (spec.merge_order == MergeOrder::kScores) {
    std::ranges::stable_sort(order, std::greater<>(), [&](size_t id) { return spec.scores[id]; });
  }
  const NormalPieces pieces(spec);
  // Pieces that are all prefixes of each other need quadratic memory here.
  size_t room = size_t{1} << 20;
  for (const std::string& piece : spec.pieces) room += 64 * piece.size();
  std::vector<std::string> merges;
  for (const size_t id : order) {
    if (!pieces.is_first(id)) continue;
    for (const auto& way : pieces.halves(id)) {
      merges.push_back(merge_of(spec, way));
      LIMPID_CHECK(
          UnsupportedError, merges.back().size() <= room,
          "the tokenizer's pieces can be made in too many ways to list them all as merges");
      room -= merges.back().size();
    }
  }
  return merges;
}

size_t n_equal_scores(const TokenizerSpec& spec) {
  if (spec.merge_order != MergeOrder::kScores) return 0;
  const NormalPieces pieces(spec);
  std::vector<float> scores;
  for (size_t id = 0; id < spec.pieces.size(); ++id) {
    if (pieces.is_first(id) && !pieces.halves(id).empty()) scores.push_back(spec.scores[id]);
  }
  const size_t n = scores.size();
  std::sort(scores.begin(), scores.end());
  return n - static_cast<size_t>(std::unique(scores.begin(), scores.end()) - scores.begin());
}

// Walks through the list. The merges of each piece must be adjacent and must be all ways to form
// the piece, in any order. Each piece then gets the next lower score: 0, -1, -2, …
std::optional<std::vector<float>> merge_scores(const TokenizerSpec& spec) {
  const NormalPieces pieces(spec);
  std::vector<float> scores(spec.pieces.size(), 0.0F);
  std::vector<bool> made(spec.pieces.size(), false);
  size_t n_made = 0;
  for (size_t i = 0; i < spec.merges.size();) {
    const auto parts = halves_of_merge(spec.merges[i]);
    if (!parts) return std::nullopt;
    const auto found = pieces.find(std::string(parts->first).append(parts->second));
    if (!found || made[*found]) return std::nullopt;
    const size_t id = *found;
    std::vector<std::string> ways;
    for (const auto& halves : pieces.halves(id)) ways.push_back(merge_of(spec, halves));
    if (ways.empty() || i + ways.size() > spec.merges.size()) return std::nullopt;
    const auto begin = spec.merges.begin() + static_cast<std::ptrdiff_t>(i);
    std::vector<std::string> listed(begin, begin + static_cast<std::ptrdiff_t>(ways.size()));
    std::sort(listed.begin(), listed.end());
    std::sort(ways.begin(), ways.end());
    if (listed != ways) return std::nullopt;
    made[id] = true;
    scores[id] = -static_cast<float>(n_made++);
    i += ways.size();
  }
  for (size_t id = 0; id < spec.pieces.size(); ++id) {
    if (pieces.is_first(id) && !made[id] && !pieces.halves(id).empty()) return std::nullopt;
  }
  return scores;
}

}  // namespace limpid
