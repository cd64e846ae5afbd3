// Finds control and user-defined tokens in a text.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "tokenizer/name_automaton.h"
#include "tokenizer/tokenizer_spec.h"

namespace limpid {

struct SpecialTokens;

// Matches are leftmost, and the longest among those that begin at the same byte (as `tokenizers`
// matches added tokens). The time is linear in the text, whatever the names and the text are. A
// list of allowed tokens adds a pass over the names for each text that contains a name.
//
// The automaton gives the longest name at each position. If that name is not wanted, a table leads
// to the longest wanted name that it begins with, so unwanted names cost nothing. The text is read
// in windows, each from its end, which bounds the memory for matches.
class SpecialMatcher {
 public:
  // Which names to search for. Most tokens are searched in the original text (kPlain), some
  // (AddedTokenRule) by their normalized name in the normalized text (kNormalized). kAll: every
  // token by its plain name.
  enum class Names : uint8_t { kPlain, kNormalized, kAll };

  // The working memory of a search, kept between calls so that they allocate nothing. A callback of
  // `partition` must not use the same object.
  class Work {
    friend class SpecialMatcher;
    struct Found {
      size_t begin;
      int32_t name;
    };
    std::vector<Found> found_;       // in one window, from its end to its start
    std::vector<int32_t> selected_;  // see `selection`
  };

  SpecialMatcher(const TokenizerSpec& spec, Names names);

  // Calls on_text(string_view) for the stretches between matches and on_token(TokenId) for the
  // matches, in order. User-defined tokens always match; control tokens match if `allowed` says so.
  template <class Text, class Token>
  void partition(std::string_view text, const SpecialTokens& allowed, Work& work, Text&& on_text,
                 Token&& on_token) const;
  // Reports only the matches: on_match(TokenId, size_t begin, size_t end), in order, including the
  // white space that rules add. A match may only contain bytes for which `may_hold(size_t place)`
  // is true. A name that contains another byte does not match; a shorter name at the same position,
  // or one that begins later, may match. White space that a rule adds to a match is not tested.
  template <class MayHold, class OnMatch>
  void for_each_match(std::string_view text, const SpecialTokens& allowed, MayHold&& may_hold,
                      Work& work, OnMatch&& on_match) const;

  // Returns whether any token can match.
  bool can_match(const SpecialTokens& allowed) const;
  // Returns a control token whose name the text contains although it is not allowed: the leftmost
  // one, and the shortest among those that begin at the same byte.
  std::optional<TokenId> find_disallowed(std::string_view text, const SpecialTokens& allowed) const;

 private:
  // The tokens that have the same name.
  struct Name {
    TokenId user_defined = -1;  // always matches, with priority over the control token
    TokenId control = -1;
    size_t size = 0;
  };
  struct Match {
    size_t begin;
    size_t size;
    TokenId id;
  };
  struct Run {
    size_t begin = 0;
    size_t end = 0;
  };

  // Fills work.found_ with the longest wanted name at each position from `begin` to `end`.
  // `selected` returns the result of `selection`; it is called when the first name is found.
  template <class MayHold>
  void find(std::string_view text, size_t begin, size_t end, const SpecialTokens& allowed,
            MayHold& may_hold, const std::vector<int32_t>*& selected, Work& work) const;
  // By name: the longest wanted name that it begins with (possibly itself), or kNone.
  const std::vector<int32_t>& selection(const SpecialTokens& allowed, Work& work) const;
  template <class Wanted>
  void select(Wanted&& wanted, std::vector<int32_t>& selected) const;
  // By name: 1 if `allowed` lists its control token, else 0.
  void mark_listed(const SpecialTokens& allowed, std::vector<int32_t>& marks) const;
  // Extends the match by the white space that its rule takes. Returns false if the match must be a
  // separate word and is not. `spaces` is the last run of white space after a match that was read.
  bool apply_rule(std::string_view text, size_t from, Run& spaces, Match& match) const;

  static constexpr size_t kWindow = size_t{1} << 16;

  std::vector<Name> names_;  // by size
  NameAutomaton automaton_;
  std::vector<int32_t> select_all_, select_user_defined_;  // selections
  std::vector<std::pair<TokenId, int32_t>> controls_;      // control token, its name; ascending
  std::vector<AddedTokenRule> rules_;  // rules with strip or single_word; ascending ids
  bool has_user_defined_ = false;
};

template <class Text, class Token>
void SpecialMatcher::partition(std::string_view text, const SpecialTokens& allowed, Work& work,
                               Text&& on_text, Token&& on_token) const {
  size_t from = 0;  // the text before was already reported
  const auto may_hold = [](size_t) { return true; };
  for_each_match(text, allowed, may_hold, work, [&](TokenId id, size_t begin, size_t end) {
    if (begin > from) on_text(text.substr(from, begin - from));
    on_token(id);
    from = end;
  });
  if (from < text.size()) on_text(text.substr(from));
}

// Matches are needed from left to right, but the automaton reads from right to left. The text is
// therefore processed in windows: `find` collects the names that begin in a window, and the loop
// takes them in reverse order, skipping those that begin inside an earlier match.
template <class MayHold, class OnMatch>
void SpecialMatcher::for_each_match(std::string_view text, const SpecialTokens& allowed,
                                    MayHold&& may_hold, Work& work, OnMatch&& on_match) const {
  if (!can_match(allowed)) return;
  size_t from = 0;  // the end of the last match
  size_t at = 0;    // where the next match may begin
  Run spaces;
  const std::vector<int32_t>* selected = nullptr;
  // At least twice the longest name, because that many more bytes than a window are read.
  const size_t step = std::max(kWindow, 2 * names_.back().size);
  for (size_t window = 0; window < text.size(); window += step) {
    find(text, window, std::min(window + step, text.size()), allowed, may_hold, selected, work);
    for (auto found = work.found_.rbegin(); found != work.found_.rend(); ++found) {
      if (found->begin < at) continue;
      const Name& name = names_[static_cast<size_t>(found->name)];
      Match match{found->begin, name.size,
                  name.user_defined >= 0 ? name.user_defined : name.control};
      at = match.begin + match.size;
      if (!rules_.empty() && !apply_rule(text, from, spaces, match)) continue;
      from = match.begin + match.size;
      on_match(match.id, match.begin, from);
    }
  }
}

// A name that begins in the window may end after it, so reading starts one name length after the
// end of the window. Names that begin there belong to the next window and are ignored here.
template <class MayHold>
void SpecialMatcher::find(std::string_view text, size_t begin, size_t end,
                          const SpecialTokens& allowed, MayHold& may_hold,
                          const std::vector<int32_t>*& selected, Work& work) const {
  work.found_.clear();
  NameAutomaton::State state = NameAutomaton::kStart;
  for (size_t p = std::min(text.size(), end + names_.back().size - 1); p > begin;) {
    if (state == NameAutomaton::kStart) {
      p = automaton_.skip_back(text, begin, p);
      if (p == begin) break;
    }
    --p;
    state = may_hold(p) ? automaton_.next(state, text[p]) : NameAutomaton::kStart;
    const int32_t longest = automaton_.longest(state);
    if (longest == NameAutomaton::kNone || p >= end) continue;
    if (selected == nullptr) selected = &selection(allowed, work);
    const int32_t name = (*selected)[static_cast<size_t>(longest)];
    if (name != NameAutomaton::kNone) work.found_.push_back({p, name});
  }
}

}  // namespace limpid
