#include "tokenizer/special_matcher.h"

#include <algorithm>

#include "tokenizer/tokenizer.h"

namespace limpid {

SpecialMatcher::SpecialMatcher(const TokenizerSpec& spec) : nodes_(1) {
  for (size_t i = 0; i < spec.pieces.size(); ++i) {
    const TokenType type = spec.types[i];
    if (spec.pieces[i].empty()) continue;
    // The unknown token's name is a control token of the reference too ("<unk>" is special there).
    if (type == TokenType::kControl || type == TokenType::kUnknown)
      add(spec.pieces[i], static_cast<TokenId>(i), false);
    if (type == TokenType::kUserDefined) add(spec.pieces[i], static_cast<TokenId>(i), true);
  }
}

int32_t SpecialMatcher::child(int32_t node, uint8_t byte) const {
  for (int32_t e = nodes_[node].first_edge; e >= 0; e = edges_[e].next) {
    if (edges_[e].byte == byte) return edges_[e].target;
  }
  return -1;
}

void SpecialMatcher::add(std::string_view name, TokenId id, bool user_defined) {
  int32_t node = 0;
  for (const char c : name) {
    const auto byte = static_cast<uint8_t>(c);
    int32_t target = child(node, byte);
    if (target < 0) {
      target = static_cast<int32_t>(nodes_.size());
      nodes_.emplace_back();
      edges_.push_back({byte, target, nodes_[node].first_edge});
      nodes_[node].first_edge = static_cast<int32_t>(edges_.size()) - 1;
    }
    node = target;
  }
  TokenId& slot = user_defined ? nodes_[node].user_defined : nodes_[node].control;
  if (slot < 0) slot = id;  // of two tokens of one name, the first
  const auto first = static_cast<uint8_t>(name.front());
  starts_any_[first] = true;
  if (user_defined) starts_user_defined_[first] = has_user_defined_ = true;
}

SpecialMatcher::Match SpecialMatcher::find(std::string_view text, size_t at,
                                           const SpecialTokens& allowed) const {
  using Allow = SpecialTokens::Allow;
  const Match none{text.size(), 0, -1};
  if (allowed.allow == Allow::kNone && !has_user_defined_) return none;
  const auto& starts = allowed.allow == Allow::kNone ? starts_user_defined_ : starts_any_;
  const auto may_match = [&](TokenId control) {
    if (control < 0 || allowed.allow == Allow::kNone) return false;
    if (allowed.allow == Allow::kAll) return true;
    return std::find(allowed.list.begin(), allowed.list.end(), control) != allowed.list.end();
  };
  for (; at < text.size(); ++at) {
    if (!starts[static_cast<uint8_t>(text[at])]) continue;
    Match best = none;
    int32_t node = 0;
    for (size_t i = at; i < text.size(); ++i) {
      node = child(node, static_cast<uint8_t>(text[i]));
      if (node < 0) break;
      if (may_match(nodes_[node].control)) best = {at, i + 1 - at, nodes_[node].control};
      if (nodes_[node].user_defined >= 0) best = {at, i + 1 - at, nodes_[node].user_defined};
    }
    if (best.id >= 0) return best;
  }
  return none;
}

}  // namespace limpid
