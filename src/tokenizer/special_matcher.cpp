#include "tokenizer/special_matcher.h"

#include <algorithm>
#include <string>
#include <unordered_map>

#include "tokenizer/normalize.h"
#include "tokenizer/tokenizer.h"
#include "tokenizer/unicode.h"

namespace limpid {

namespace {

// The characters that \w matches in Rust's regular expressions: letters, marks, decimal digits,
// letter numbers, connecting punctuation, the joiners, and the circled and squared letters.
bool is_word(char32_t c) {
  using namespace unicode;
  constexpr Properties kWord = kLetter | kMark | bit(kNd) | bit(kNl) | bit(kPc);
  return (properties_of(c) & kWord) != 0 || c == 0x200C || c == 0x200D ||
         (c >= 0x24B6 && c <= 0x24E9) || (c >= 0x1F130 && c <= 0x1F149) ||
         (c >= 0x1F150 && c <= 0x1F169) || (c >= 0x1F170 && c <= 0x1F189);
}

bool is_space(char32_t c) { return (unicode::properties_of(c) & unicode::kSpace) != 0; }

}  // namespace

SpecialMatcher::SpecialMatcher(const TokenizerSpec& spec, Names names) {
  std::vector<bool> is_normalized(spec.pieces.size());
  for (const AddedTokenRule& rule : spec.added_rules) {
    if (rule.normalized && names != Names::kAll) is_normalized[static_cast<size_t>(rule.id)] = true;
    const bool is_here = names == Names::kAll || rule.normalized == (names == Names::kNormalized);
    if (is_here && (rule.strip_left || rule.strip_right || rule.single_word))
      rules_.push_back(rule);
  }
  std::ranges::stable_sort(rules_, {}, &AddedTokenRule::id);
  std::unordered_map<std::string, Name> found;
  std::string buffer;
  for (size_t i = 0; i < spec.pieces.size(); ++i) {
    const TokenType type = spec.types[i];
    std::string_view text = spec.pieces[i];
    if (text.empty() || is_normalized[i] != (names == Names::kNormalized)) continue;
    // The name of the unknown token is a control token in the reference too ("<unk>" is special
    // there).
    const bool is_control = type == TokenType::kControl || type == TokenType::kUnknown;
    if (!is_control && type != TokenType::kUserDefined) continue;
    if (is_normalized[i]) text = normalize_text(spec, text, buffer);
    Name& name = found[std::string(text)];
    name.size = text.size();
    TokenId& slot = is_control ? name.control : name.user_defined;
    if (slot < 0) slot = static_cast<TokenId>(i);  // of equal names, the first token is used
  }
  std::vector<std::string> texts;
  texts.reserve(found.size());
  for (const auto& [text, name] : found) texts.push_back(text);
  std::ranges::sort(texts, {}, [](const std::string& text) {
    return std::pair(text.size(), std::string_view(text));
  });
  for (const std::string& text : texts) {
    const Name& name = found.at(text);
    if (name.control >= 0)
      controls_.emplace_back(name.control, static_cast<int32_t>(names_.size()));
    has_user_defined_ = has_user_defined_ || name.user_defined >= 0;
    names_.push_back(name);
  }
  std::ranges::sort(controls_);
  automaton_ = NameAutomaton(texts);
  select([](const Name&) { return true; }, select_all_);
  select([](const Name& name) { return name.user_defined >= 0; }, select_user_defined_);
}

bool SpecialMatcher::can_match(const SpecialTokens& allowed) const {
  return has_user_defined_ || (!controls_.empty() && allowed.allow != SpecialTokens::Allow::kNone);
}

// Names are sorted, so the shorter names that a name begins with come before it.
template <class Wanted>
void SpecialMatcher::select(Wanted&& wanted, std::vector<int32_t>& selected) const {
  selected.resize(names_.size());
  for (size_t i = 0; i < names_.size(); ++i) {
    const auto name = static_cast<int32_t>(i);
    const int32_t shorter = automaton_.shorter(name);
    const bool is_wanted = wanted(names_[i]);
    selected[i] = is_wanted                         ? name
                  : shorter == NameAutomaton::kNone ? shorter
                                                    : selected[static_cast<size_t>(shorter)];
  }
}

// controls_ is sorted by id, so each listed token is found by binary search.
void SpecialMatcher::mark_listed(const SpecialTokens& allowed, std::vector<int32_t>& marks) const {
  marks.assign(names_.size(), 0);
  if (allowed.allow != SpecialTokens::Allow::kList) return;
  for (const TokenId id : allowed.list) {
    const auto found = std::ranges::lower_bound(controls_, std::pair(id, 0));
    if (found != controls_.end() && found->first == id)
      marks[static_cast<size_t>(found->second)] = 1;
  }
}

const std::vector<int32_t>& SpecialMatcher::selection(const SpecialTokens& allowed,
                                                      Work& work) const {
  if (allowed.allow == SpecialTokens::Allow::kAll) return select_all_;
  if (allowed.allow == SpecialTokens::Allow::kNone) return select_user_defined_;
  std::vector<int32_t>& selected = work.selected_;
  mark_listed(allowed, selected);
  // `select` calls the predicate for a name before it overwrites that name's entry.
  select(
      [&](const Name& name) {
        return name.user_defined >= 0 || selected[static_cast<size_t>(&name - names_.data())] == 1;
      },
      selected);
  return selected;
}

// One pass from the end of the text. Every refused name that is found lies further left than the
// one found before, so the last one found is the leftmost.
std::optional<TokenId> SpecialMatcher::find_disallowed(std::string_view text,
                                                       const SpecialTokens& allowed) const {
  if (controls_.empty() || allowed.allow == SpecialTokens::Allow::kAll) return std::nullopt;
  // By name: the shortest refused name that it begins with.
  std::vector<int32_t> refused;
  mark_listed(allowed, refused);
  for (size_t i = 0; i < names_.size(); ++i) {
    const auto name = static_cast<int32_t>(i);
    const int32_t shorter = automaton_.shorter(name);
    const bool is_refused = names_[i].control >= 0 && refused[i] == 0;
    refused[i] = is_refused ? name : NameAutomaton::kNone;
    if (shorter == NameAutomaton::kNone) continue;
    const int32_t shortest = refused[static_cast<size_t>(shorter)];
    if (shortest != NameAutomaton::kNone) refused[i] = shortest;
  }
  int32_t leftmost = NameAutomaton::kNone;
  NameAutomaton::State state = NameAutomaton::kStart;
  for (size_t p = text.size(); p-- > 0;) {
    state = automaton_.next(state, text[p]);
    const int32_t longest = automaton_.longest(state);
    if (longest == NameAutomaton::kNone) continue;
    const int32_t name = refused[static_cast<size_t>(longest)];
    if (name != NameAutomaton::kNone) leftmost = name;
  }
  if (leftmost == NameAutomaton::kNone) return std::nullopt;
  return names_[static_cast<size_t>(leftmost)].control;
}

// Example: with strip_left and strip_right, "a <mask> b" matches " <mask> "; with single_word,
// "<mask>s" does not match.
bool SpecialMatcher::apply_rule(std::string_view text, size_t from, Run& spaces,
                                Match& match) const {
  const auto rule = std::ranges::lower_bound(rules_, match.id, {}, &AddedTokenRule::id);
  if (rule == rules_.end() || rule->id != match.id) return true;
  size_t end = match.begin + match.size;
  const char* const text_end = text.data() + text.size();
  if (rule->single_word) {
    if (match.begin > 0 && is_word(unicode::decode_last(text.substr(0, match.begin)).value))
      return false;
    if (end < text.size() && is_word(unicode::decode(text.data() + end, text_end).value))
      return false;
  }
  while (rule->strip_left && match.begin > from) {
    const unicode::CodePoint c = unicode::decode_last(text.substr(from, match.begin - from));
    if (!is_space(c.value)) break;
    match.begin -= c.size;
  }
  if (rule->strip_right) {
    // The next match may begin within this match's white space and take the rest of it. A byte that
    // continues a character does not begin white space, wherever the run is.
    const bool is_known =
        end >= spaces.begin && end < spaces.end && unicode::begins_character(text[end]);
    if (!is_known) {
      spaces = {end, end};
      while (spaces.end < text.size()) {
        const unicode::CodePoint c = unicode::decode(text.data() + spaces.end, text_end);
        if (!is_space(c.value)) break;
        spaces.end += c.size;
      }
    }
    end = spaces.end;
  }
  match.size = end - match.begin;
  return true;
}

}  // namespace limpid
