#include "tokenizer/merge_list.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "tokenizer/unicode.h"

namespace limpid {
namespace {

// Pieces that plain text merges into, by their spelling.
class NormalPieces {
 public:
  explicit NormalPieces(const TokenizerSpec& spec) : spec_(spec) {
    for (size_t id = 0; id < spec.pieces.size(); ++id) {
      if (spec.types[id] == TokenType::kNormal) ids_.emplace(spec.pieces[id], id);
    }
  }

  // Of two pieces that are spelled alike the first counts.
  bool is_first(size_t id) const {
    const auto found = ids_.find(spec_.pieces[id]);
    return found != ids_.end() && found->second == id;
  }

  // The ways to make a piece from two, by the ids of these.
  std::vector<std::pair<size_t, size_t>> halves(size_t id) const {
    std::vector<std::pair<size_t, size_t>> found;
    const std::string_view piece = spec_.pieces[id];
    const char* const end = piece.data() + piece.size();
    size_t at = 0;
    while (true) {
      at += unicode::decode(piece.data() + at, end).size;
      if (at >= piece.size()) break;
      const auto left = ids_.find(piece.substr(0, at));
      const auto right = ids_.find(piece.substr(at));
      if (left != ids_.end() && right != ids_.end())
        found.emplace_back(left->second, right->second);
    }
    std::sort(found.begin(), found.end());
    return found;
  }

 private:
  const TokenizerSpec& spec_;
  std::unordered_map<std::string_view, size_t> ids_;
};

std::string merge_of(const TokenizerSpec& spec, const std::pair<size_t, size_t>& halves) {
  return fmt::format("{} {}", spec.pieces[halves.first], spec.pieces[halves.second]);
}

}  // namespace

std::vector<std::string> merge_list(const TokenizerSpec& spec) {
  if (spec.merge_order == MergeOrder::kList) return spec.merges;
  std::vector<size_t> order(spec.pieces.size());
  std::iota(order.begin(), order.end(), size_t{0});
  if (spec.merge_order == MergeOrder::kScores) {
    std::stable_sort(order.begin(), order.end(),
                     [&](size_t a, size_t b) { return spec.scores[a] > spec.scores[b]; });
  }
  const NormalPieces pieces(spec);
  std::vector<std::string> merges;
  for (const size_t id : order) {
    if (!pieces.is_first(id)) continue;
    for (const auto& way : pieces.halves(id)) merges.push_back(merge_of(spec, way));
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

std::optional<std::vector<float>> merge_scores(const TokenizerSpec& spec) {
  std::unordered_map<std::string_view, size_t> ids;
  for (size_t id = 0; id < spec.pieces.size(); ++id) {
    if (spec.types[id] == TokenType::kNormal) ids.emplace(spec.pieces[id], id);
  }
  const NormalPieces pieces(spec);
  std::vector<float> scores(spec.pieces.size(), 0.0F);
  std::vector<bool> made(spec.pieces.size(), false);
  size_t n_made = 0;
  for (size_t i = 0; i < spec.merges.size();) {
    std::string joined = spec.merges[i];
    joined.erase(std::min(joined.find(' '), joined.size() - 1), 1);
    const auto found = ids.find(joined);
    if (found == ids.end() || made[found->second]) return std::nullopt;
    const size_t id = found->second;
    std::vector<std::string> ways;
    for (const auto& halves : pieces.halves(id)) ways.push_back(merge_of(spec, halves));
    if (ways.empty() || i + ways.size() > spec.merges.size()) return std::nullopt;
    const auto begin = spec.merges.begin() + static_cast<std::ptrdiff_t>(i);
    if (!std::is_permutation(ways.begin(), ways.end(), begin)) return std::nullopt;
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
