// Finds control and user-defined tokens in a text.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "tokenizer/tokenizer_spec.h"

namespace limpid {

struct SpecialTokens;

// A trie over the bytes of the tokens' names. Matches are leftmost, and among those that begin at
// one byte the longest (as `tokenizers` matches added tokens), whatever else the text holds: time
// is at most text size × longest name.
class SpecialMatcher {
 public:
  // Tokens of which names: most are looked for in the text as it is, some (AddedTokenRule) in the
  // normalized text, by their normalized names. kAll: every token by its plain name.
  enum class Names : uint8_t { kPlain, kNormalized, kAll };

  SpecialMatcher(const TokenizerSpec& spec, Names names);

  // Calls text(string_view) for the stretches between and token(TokenId) for the matches, in order.
  // User-defined tokens always match; control tokens where `allowed` says so.
  template <class Text, class Token>
  void partition(std::string_view text, const SpecialTokens& allowed, Text&& on_text,
                 Token&& on_token) const {
    size_t from = 0;
    for (size_t at = 0;;) {
      Match match = find(text, at, allowed);
      at = match.begin + match.size;
      if (match.id >= 0 && !rules_.empty() && !apply_rule(text, from, match)) continue;
      if (match.begin > from) on_text(text.substr(from, match.begin - from));
      if (match.id < 0) return;
      on_token(match.id);
      from = match.begin + match.size;
    }
  }

  // Calls found(TokenId, size_t begin, size_t end) for the matches, in order, with the white space
  // that they take. Matches begin and end (that white space apart) within one of the stretches
  // `where`, [begin, end) in ascending order; text outside them is only looked at as neighbour.
  template <class Found>
  void for_each_within(std::string_view text, std::span<const std::pair<size_t, size_t>> where,
                       const SpecialTokens& allowed, Found&& found) const {
    size_t from = 0;
    for (const auto& [begin, end] : where) {
      for (size_t at = std::max(from, begin); at < end;) {
        Match match = find(text.substr(0, end), at, allowed);
        at = match.begin + match.size;
        if (match.id < 0 || (!rules_.empty() && !apply_rule(text, from, match))) continue;
        from = at = match.begin + match.size;
        found(match.id, match.begin, at);
      }
    }
  }

  // Whether anything can match at all.
  bool can_match(const SpecialTokens& allowed) const;
  // A control token whose name the text holds although it is not allowed.
  std::optional<TokenId> find_disallowed(std::string_view text, const SpecialTokens& allowed) const;

 private:
  struct Match {
    size_t begin;
    size_t size;
    TokenId id;  // -1: no match, begin is the end of the text
  };
  struct Node {
    TokenId user_defined = -1;  // token that ends here and always matches
    TokenId control = -1;
    int32_t first_edge = -1;  // edges of one node form a list
  };
  struct Edge {
    uint8_t byte;
    int32_t target;
    int32_t next;
  };
  Match find(std::string_view text, size_t at, const SpecialTokens& allowed) const;
  // Widens the match by the white space it takes; false if it must be a word of its own and is not.
  bool apply_rule(std::string_view text, size_t from, Match& match) const;
  int32_t child(int32_t node, uint8_t byte) const;
  void add(std::string_view name, TokenId id, bool user_defined);

  std::vector<Node> nodes_;
  std::vector<Edge> edges_;
  std::vector<AddedTokenRule> rules_;            // those that strip or want a word; ascending ids
  std::array<bool, 256> starts_user_defined_{};  // first bytes
  std::array<bool, 256> starts_any_{};
  bool has_user_defined_ = false;
  bool has_control_ = false;
};

}  // namespace limpid
