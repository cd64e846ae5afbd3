#include "tokenizer/special_matcher.h"

#include <algorithm>
#include <string>

#include "tokenizer/text_normalizer.h"
#include "tokenizer/tokenizer.h"
#include "tokenizer/unicode.h"

namespace limpid {

namespace {

// Rust's regular expressions call these \\w: letters, marks, decimal digits, letter numbers,
// connecting punctuation, the joiners, and the circled and squared letters.
bool is_word(char32_t c) {
  using namespace unicode;
  constexpr Properties kWord = kLetter | kMark | bit(kNd) | bit(kNl) | bit(kPc);
  return (properties_of(c) & kWord) != 0 || c == 0x200C || c == 0x200D ||
         (c >= 0x24B6 && c <= 0x24E9) || (c >= 0x1F130 && c <= 0x1F149) ||
         (c >= 0x1F150 && c <= 0x1F169) || (c >= 0x1F170 && c <= 0x1F189);
}

// The last code point of `text`, not empty; an invalid byte as itself.
unicode::CodePoint last_code_point(std::string_view text) {
  const char* const end = text.data() + text.size();
  for (size_t size = std::min<size_t>(text.size(), 4); size > 1; --size) {
    const unicode::CodePoint c = unicode::decode(end - size, end);
    if (c.size == size) return c;
  }
  return unicode::decode(end - 1, end);
}

bool is_space(char32_t c) { return (unicode::properties_of(c) & unicode::kSpace) != 0; }

}  // namespace

SpecialMatcher::SpecialMatcher(const TokenizerSpec& spec, Names names) : nodes_(1) {
  std::vector<bool> is_normalized(spec.pieces.size());
  for (const AddedTokenRule& rule : spec.added_rules) {
    if (rule.normalized && names != Names::kAll) is_normalized[static_cast<size_t>(rule.id)] = true;
    const bool is_here = names == Names::kAll || rule.normalized == (names == Names::kNormalized);
    if (is_here && (rule.strip_left || rule.strip_right || rule.single_word))
      rules_.push_back(rule);
  }
  std::sort(rules_.begin(), rules_.end(),
            [](const AddedTokenRule& a, const AddedTokenRule& b) { return a.id < b.id; });
  std::string buffer;
  for (size_t i = 0; i < spec.pieces.size(); ++i) {
    const TokenType type = spec.types[i];
    std::string_view name = spec.pieces[i];
    if (name.empty() || is_normalized[i] != (names == Names::kNormalized)) continue;
    if (is_normalized[i]) name = normalize_text(spec, name, buffer);
    // The unknown token's name is a control token of the reference too ("<unk>" is special there).
    if (type == TokenType::kControl || type == TokenType::kUnknown)
      add(name, static_cast<TokenId>(i), false);
    if (type == TokenType::kUserDefined) add(name, static_cast<TokenId>(i), true);
  }
}

bool SpecialMatcher::can_match(const SpecialTokens& allowed) const {
  return has_user_defined_ || (has_control_ && allowed.allow != SpecialTokens::Allow::kNone);
}

std::optional<TokenId> SpecialMatcher::find_disallowed(std::string_view text,
                                                       const SpecialTokens& allowed) const {
  const auto is_allowed = [&](TokenId id) {
    return allowed.allow == SpecialTokens::Allow::kAll ||
           (allowed.allow == SpecialTokens::Allow::kList &&
            std::find(allowed.list.begin(), allowed.list.end(), id) != allowed.list.end());
  };
  for (size_t at = 0; has_control_ && at < text.size(); ++at) {
    int32_t node = 0;
    for (size_t i = at; i < text.size(); ++i) {
      node = child(node, static_cast<uint8_t>(text[i]));
      if (node < 0) break;
      const TokenId control = nodes_[node].control;
      if (control >= 0 && !is_allowed(control)) return control;
    }
  }
  return std::nullopt;
}

bool SpecialMatcher::apply_rule(std::string_view text, size_t from, Match& match) const {
  const auto rule = std::lower_bound(
      rules_.begin(), rules_.end(), match.id,
      [](const AddedTokenRule& candidate, TokenId id) { return candidate.id < id; });
  if (rule == rules_.end() || rule->id != match.id) return true;
  size_t end = match.begin + match.size;
  const char* const text_end = text.data() + text.size();
  if (rule->single_word) {
    if (match.begin > 0 && is_word(last_code_point(text.substr(0, match.begin)).value))
      return false;
    if (end < text.size() && is_word(unicode::decode(text.data() + end, text_end).value))
      return false;
  }
  while (rule->strip_left && match.begin > from) {
    const unicode::CodePoint c = last_code_point(text.substr(from, match.begin - from));
    if (!is_space(c.value)) break;
    match.begin -= c.size;
  }
  while (rule->strip_right && end < text.size()) {
    const unicode::CodePoint c = unicode::decode(text.data() + end, text_end);
    if (!is_space(c.value)) break;
    end += c.size;
  }
  match.size = end - match.begin;
  return true;
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
  has_control_ = has_control_ || !user_defined;
  if (user_defined) starts_user_defined_[first] = has_user_defined_ = true;
}

SpecialMatcher::Match SpecialMatcher::find(std::string_view text, size_t at,
                                           const SpecialTokens& allowed) const {
  using Allow = SpecialTokens::Allow;
  const Match none{text.size(), 0, -1};
  if (!can_match(allowed)) return none;
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
