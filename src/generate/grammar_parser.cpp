#include <algorithm>
#include <charconv>
#include <map>
#include <optional>
#include <string>

#include "base/check.h"
#include "generate/grammar.h"
#include "tokenizer/unicode.h"

namespace limpid {
namespace {

constexpr size_t kMostText = 256 << 10;
constexpr size_t kMostSymbols = 1 << 18;
constexpr uint32_t kMostRepeats = 2000;
constexpr int kMostDepth = 100;  // of parentheses
constexpr uint32_t kLastCodePoint = 0x10FFFF;

using Symbols = std::vector<Grammar::Symbol>;

struct CharRange {
  uint32_t first = 0, last = 0;
};

struct Repetition {
  uint32_t least = 1, most = 1;
  bool is_unbounded = false;
};

class GrammarParser {
 public:
  explicit GrammarParser(std::string_view text) : text_(text) {}

  Grammar parse() {
    LIMPID_CHECK(ArgumentError, text_.size() <= kMostText,
                 "[grammar] the grammar has {} bytes, may have {}", text_.size(), kMostText);
    for (skip_space(true); at_ < text_.size(); skip_space(true)) parse_rule();
    for (const auto& [name, rule] : names_) {
      if (grammar_.rules[rule.index].empty()) fail_in(rule, "unknown rule '" + name + "'");
    }
    const auto root = names_.find("root");
    LIMPID_CHECK(ArgumentError, root != names_.end(), "[grammar] the rule 'root' is missing");
    grammar_.root = root->second.index;
    refuse_left_recursion();
    return std::move(grammar_);
  }

 private:
  // A rule with a name, and where the text defines it, or else where it mentions it first.
  struct NamedRule {
    uint32_t index = 0;
    size_t at = 0;
    std::string within;  // the rule that this place belongs to
  };

  [[noreturn]] void fail(const std::string& problem) const {
    const auto line =
        1 + std::count(text_.begin(), text_.begin() + static_cast<ptrdiff_t>(at_), '\n');
    const std::string rule = within_.empty() ? "" : fmt::format(", rule '{}'", within_);
    throw ArgumentError(fmt::format("[grammar] line {}{}: {}", line, rule, problem));
  }
  [[noreturn]] void fail_open(size_t opened) {
    at_ = opened;
    fail(fmt::format("the '{}' is not closed", peek()));
  }
  [[noreturn]] void fail_in(const NamedRule& rule, const std::string& problem) {
    at_ = rule.at;
    within_ = rule.within;
    fail(problem);
  }

  // Every circle goes through a rule with a name: the parts of a rule, which have none, refer to
  // one another in one direction only.
  void refuse_left_recursion() {
    std::vector<uint32_t> circle = left_recursion(grammar_);
    std::ranges::sort(circle);
    for (const auto& [name, rule] : names_) {
      if (std::ranges::binary_search(circle, rule.index))
        fail_in(rule, "the rule can begin with itself");
    }
  }

  // ---- characters of the text -------------------------------------------------------------------

  char peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  bool take(std::string_view expected) {
    if (!text_.substr(at_).starts_with(expected)) return false;
    at_ += expected.size();
    return true;
  }

  void skip_space(bool over_lines) {
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (c == '#') {
        at_ = std::min(text_.find('\n', at_), text_.size());
      } else if (c == ' ' || c == '\t' || (over_lines && (c == '\n' || c == '\r'))) {
        ++at_;
      } else {
        return;
      }
    }
  }

  static bool is_name(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '_';
  }
  std::string parse_name() {
    const size_t from = at_;
    while (is_name(peek())) ++at_;
    if (at_ == from) fail("the name of a rule is expected");
    return std::string(text_.substr(from, at_ - from));
  }

  uint32_t parse_hex(size_t n_digits) {
    uint32_t value = 0;
    const std::string_view digits = text_.substr(at_, n_digits);
    const char* const end = digits.data() + digits.size();
    const bool is_hex = std::from_chars(digits.data(), end, value, 16).ptr == end;
    if (digits.size() < n_digits || !is_hex) fail("a hexadecimal digit is expected");
    if (value > kLastCodePoint) fail("beyond the last character, U+10FFFF");
    at_ += n_digits;
    return value;
  }

  // One character of the literal or class that begins at `opened`, with its escape.
  uint32_t parse_char(size_t opened) {
    const bool is_escaped = take("\\");
    if (at_ >= text_.size()) fail_open(opened);
    if (is_escaped && take("x")) return parse_hex(2);
    if (is_escaped && take("u")) return parse_hex(4);
    if (is_escaped && take("U")) return parse_hex(8);
    const unicode::CodePoint c = unicode::decode(text_.data() + at_, text_.data() + text_.size());
    if (c.value >= unicode::kInvalidByte) fail("the text is not UTF-8");
    const std::string_view written = text_.substr(at_, c.size);
    constexpr std::string_view kLetters = "nrt\\\"[]-^";
    constexpr std::string_view kMeanings = "\n\r\t\\\"[]-^";
    const size_t known = kLetters.find(written);
    if (is_escaped && known == kLetters.npos) fail(fmt::format("unknown escape '\\{}'", written));
    at_ += c.size;
    return is_escaped ? static_cast<uint32_t>(kMeanings[known]) : c.value;
  }

  uint32_t parse_number() {
    uint32_t value = 0;
    if (peek() < '0' || peek() > '9') fail("a number is expected");
    for (; peek() >= '0' && peek() <= '9'; ++at_) {
      value = value * 10 + static_cast<uint32_t>(peek() - '0');
      if (value > kMostRepeats) fail(fmt::format("more than {} repeats", kMostRepeats));
    }
    return value;
  }

  // ---- rules ------------------------------------------------------------------------------------

  uint32_t rule_of(const std::string& name) {
    const auto next = static_cast<uint32_t>(grammar_.rules.size());
    const auto [entry, is_new] = names_.try_emplace(name, NamedRule{next, at_, within_});
    if (is_new) grammar_.rules.emplace_back();
    return entry->second.index;
  }

  void add_alternative(uint32_t rule, const Symbols& symbols) {
    if (grammar_.symbols.size() + symbols.size() >= kMostSymbols) fail("the grammar is too large");
    grammar_.rules[rule].push_back(static_cast<uint32_t>(grammar_.symbols.size()));
    grammar_.symbols.insert(grammar_.symbols.end(), symbols.begin(), symbols.end());
    grammar_.symbols.emplace_back();
  }

  Grammar::Symbol new_rule(const std::vector<Symbols>& alternatives) {
    const auto rule = static_cast<uint32_t>(grammar_.rules.size());
    grammar_.rules.emplace_back();
    for (const Symbols& symbols : alternatives) add_alternative(rule, symbols);
    return {Grammar::Kind::kRule, rule};
  }

  void parse_rule() {
    within_.clear();
    const size_t from = at_;
    const std::string name = parse_name();
    within_ = name;
    skip_space(false);
    if (!take("::=")) fail("'::=' is expected after the name of a rule");
    const uint32_t rule = rule_of(name);
    if (!grammar_.rules[rule].empty()) fail("there are two rules '" + name + "'");
    names_[name] = {rule, from, name};
    skip_space(true);
    for (const Symbols& symbols : parse_alternatives(false)) add_alternative(rule, symbols);
    if (peek() != '\n' && peek() != '\r' && at_ < text_.size())
      fail(fmt::format("unexpected '{}'", peek()));
  }

  std::vector<Symbols> parse_alternatives(bool is_nested) {
    std::vector<Symbols> alternatives{parse_sequence(is_nested)};
    while (take("|")) {
      skip_space(true);
      alternatives.push_back(parse_sequence(is_nested));
    }
    return alternatives;
  }

  Symbols parse_sequence(bool is_nested) {
    Symbols symbols;
    while (true) {
      std::optional<Symbols> item = parse_item();
      if (!item) return symbols;
      skip_space(is_nested);
      // A repetition may be repeated: x{2}? is (x x)?
      while (const std::optional<Repetition> repetition = parse_repetition()) {
        item = repeated(*item, *repetition);
        skip_space(is_nested);
      }
      symbols.insert(symbols.end(), item->begin(), item->end());
      if (symbols.size() > kMostSymbols) fail("the grammar is too large");
    }
  }

  // Nothing where no item begins.
  std::optional<Symbols> parse_item() {
    const size_t opened = at_;
    if (take("\"")) {
      Symbols symbols;
      while (!take("\"")) append_char(parse_char(opened), symbols);
      return symbols;
    }
    if (take("[")) return Symbols{parse_class(opened)};
    if (take(".")) return Symbols{class_of({{0, kLastCodePoint}})};
    if (is_name(peek())) return Symbols{{Grammar::Kind::kRule, rule_of(parse_name())}};
    if (!take("(")) return std::nullopt;
    if (++depth_ > kMostDepth) fail("parentheses are nested too deeply");
    skip_space(true);
    const Grammar::Symbol group = new_rule(parse_alternatives(true));
    --depth_;
    if (at_ == text_.size() || peek() == ':') fail_open(opened);  // the end, or the next rule
    if (!take(")")) fail("')' is expected");
    return Symbols{group};
  }

  // Nothing where no repetition begins.
  std::optional<Repetition> parse_repetition() {
    if (take("*")) return Repetition{0, 1, true};
    if (take("+")) return Repetition{1, 1, true};
    if (take("?")) return Repetition{0, 1, false};
    if (take("{")) return parse_bounds();
    return std::nullopt;
  }

  // x{2,4} is x x (x (x)?)?, and x{2,} is x x rest, with rest ::= x rest | nothing.
  Symbols repeated(const Symbols& item, const Repetition& repetition) {
    const auto [least, most, is_unbounded] = repetition;
    Symbols symbols;
    if (item.empty()) return symbols;
    if ((item.size() + 2) * std::max(least, most) > kMostSymbols) fail("the grammar is too large");
    for (uint32_t i = 0; i < least; ++i) symbols.insert(symbols.end(), item.begin(), item.end());
    if (is_unbounded) {
      const auto rule = static_cast<uint32_t>(grammar_.rules.size());
      Symbols again = item;
      again.push_back({Grammar::Kind::kRule, rule});
      symbols.push_back(new_rule({again, {}}));
    } else {
      std::optional<Grammar::Symbol> rest;
      for (uint32_t i = least; i < most; ++i) {
        Symbols one = item;
        if (rest) one.push_back(*rest);
        rest = new_rule({one, {}});
      }
      if (rest) symbols.push_back(*rest);
    }
    return symbols;
  }

  Repetition parse_bounds() {
    Repetition bounds;
    skip_space(false);
    bounds.least = bounds.most = parse_number();
    skip_space(false);
    if (take(",")) {
      skip_space(false);
      bounds.is_unbounded = peek() == '}';
      if (!bounds.is_unbounded) bounds.most = parse_number();
      skip_space(false);
    }
    if (!take("}")) fail("'}' is expected");
    if (bounds.most < bounds.least)
      fail("the second number of a repetition is less than the first");
    return bounds;
  }

  // ---- classes ----------------------------------------------------------------------------------

  Grammar::Symbol parse_class(size_t opened) {
    const bool is_negated = take("^");
    std::vector<CharRange> ranges;
    while (!take("]")) {
      const uint32_t first = parse_char(opened);
      uint32_t last = first;
      if (peek() == '-' && at_ + 1 < text_.size() && text_[at_ + 1] != ']') {
        ++at_;
        last = parse_char(opened);
      }
      if (last < first) fail("a range of characters ends before it begins");
      ranges.push_back({first, last});
    }
    return class_of(is_negated ? complement(std::move(ranges)) : ranges);
  }

  static std::vector<CharRange> complement(std::vector<CharRange> ranges) {
    std::ranges::sort(ranges, {}, &CharRange::first);
    std::vector<CharRange> others;
    uint32_t next = 0;
    for (const CharRange& range : ranges) {
      if (range.first > next) others.push_back({next, range.first - 1});
      next = std::max(next, range.last + 1);
    }
    if (next <= kLastCodePoint) others.push_back({next, kLastCodePoint});
    return others;
  }

  // A rule whose alternatives are sequences of byte ranges.
  Grammar::Symbol class_of(const std::vector<CharRange>& ranges) {
    const uint32_t rule = new_rule({}).index;
    for (const CharRange& range : ranges) add_bytes(range.first, range.last, rule);
    if (grammar_.rules[rule].empty()) fail("a class of characters is empty");
    return {Grammar::Kind::kRule, rule};
  }

  // UTF-8 writes a range as one sequence of byte ranges only if its characters have one length and
  // differ in their last bytes alone, over the whole range of these. So a range is cut until its
  // parts are such: é to ÿ is [C3][A9-BF], and a to é is [61-7F], [C2][80-BF], [C3][80-A9].
  void add_bytes(uint32_t first, uint32_t last, uint32_t rule) {
    for (const uint32_t most : {0x7FU, 0x7FFU, 0xD7FFU, 0xDFFFU, 0xFFFFU}) {
      if (first <= most && last > most) {
        add_bytes(first, most, rule);
        return add_bytes(most + 1, last, rule);
      }
    }
    if (first >= 0xD800 && last <= 0xDFFF) return;  // surrogates are not characters
    for (const uint32_t low : {0x3FU, 0xFFFU, 0x3FFFFU}) {
      if (first <= 0x7F || (first & ~low) == (last & ~low)) continue;
      if ((first & low) != 0) {
        add_bytes(first, first | low, rule);
        return add_bytes((first | low) + 1, last, rule);
      }
      if ((last & low) != low) {
        add_bytes(first, (last & ~low) - 1, rule);
        return add_bytes(last & ~low, last, rule);
      }
    }
    const std::string begin = utf8_of(first);
    const std::string end = utf8_of(last);
    Symbols symbols;
    for (size_t i = 0; i < begin.size(); ++i)
      symbols.push_back(byte_range(static_cast<uint8_t>(begin[i]), static_cast<uint8_t>(end[i])));
    add_alternative(rule, symbols);
  }

  static std::string utf8_of(uint32_t code) {
    std::string bytes;
    unicode::append_utf8(code, bytes);
    return bytes;
  }

  void append_char(uint32_t code, Symbols& symbols) {
    if (code >= 0xD800 && code <= 0xDFFF) {
      fail(fmt::format(
          "U+{:04X} is half of a character: write the whole one, as \\U and eight digits", code));
    }
    for (const char c : utf8_of(code)) {
      const auto byte = static_cast<uint8_t>(c);
      symbols.push_back(byte_range(byte, byte));
    }
  }

  Grammar::Symbol byte_range(uint8_t first, uint8_t last) {
    const auto next = static_cast<uint32_t>(grammar_.byte_sets.size());
    const auto [entry, is_new] = ranges_.try_emplace({first, last}, next);
    if (is_new) {
      Grammar::ByteSet& set = grammar_.byte_sets.emplace_back();
      for (size_t byte = first; byte <= last; ++byte) set.set(byte);
    }
    return {Grammar::Kind::kBytes, entry->second};
  }

  std::string_view text_;
  size_t at_ = 0;
  int depth_ = 0;
  Grammar grammar_;
  std::map<std::string, NamedRule> names_;
  std::string within_;  // the rule that is parsed
  std::map<std::pair<uint8_t, uint8_t>, uint32_t> ranges_;
};

}  // namespace

Grammar parse_grammar(std::string_view text) { return GrammarParser(text).parse(); }

}  // namespace limpid
