#include "tokenizer/regex_translation.h"

#include <fmt/format.h>

#include <cctype>
#include <charconv>
#include <optional>

#include "limpid/error.hpp"
#include "tokenizer/code_point_set.h"
#include "tokenizer/regex_categories.h"

namespace limpid {
namespace {

using unicode::CodePointSet;
using unicode::Properties;

const CodePointSet& spaces() {
  static const CodePointSet set(unicode::kSpace);
  return set;
}

// A character class: general categories, and further characters.
struct Class {
  Properties categories = 0;
  CodePointSet characters;
  bool negated = false;
  void add(const Class& nested) {
    if (nested.negated) {
      CodePointSet all(nested.categories);
      all.add(nested.characters);
      characters.add(all.complement());
    } else {
      categories |= nested.categories;
      characters.add(nested.characters);
    }
  }
};

// Reads the expression from left to right and appends the translation to out_. It recognises only
// the syntax that pre-tokenizers use, and refuses everything else by name: an expression that is
// translated wrongly would give wrong tokens without an error.
class Translator {
 public:
  explicit Translator(std::string_view pattern)
      : pattern_(pattern), p_(pattern.data()), end_(p_ + pattern.size()) {}

  std::string translate() {
    while (p_ < end_) translate_one();
    if (depth_ > 0) fail("an unterminated group");
    return std::move(out_);
  }

 private:
  static constexpr size_t kMostOutput = size_t{4} << 20;
  static constexpr int kMostDepth = 64;
  static constexpr int kMostTurned = 64;

  [[noreturn]] void fail(const std::string& what) const {
    throw UnsupportedError(
        fmt::format("the regular expression '{}' has {} at byte {}; it is not supported",
                    pattern_.substr(0, 200), what, p_ - pattern_.data()));
  }
  bool starts(std::string_view what) const {
    return std::string_view(p_, static_cast<size_t>(end_ - p_)).substr(0, what.size()) == what;
  }
  char peek() const { return p_ < end_ ? *p_ : '\0'; }

  // Translates one atom, group or anchor, with its quantifiers.
  void translate_one() {
    if (out_.size() > kMostOutput) fail("too many classes");
    const size_t atom = out_.size();
    switch (*p_) {
      case '(':
        open_group();
        return;
      case ')':
        if (depth_ == 0) fail("')' without '('");
        ++p_;
        out_ += ')';
        quantifiers(group_starts_[static_cast<size_t>(--depth_)]);
        return;
      case '|':
        ++p_;
        out_ += '|';
        return;
      case '^':
        ++p_;
        out_ += R"((?:\A|(?<=\n)(?!\z)))";
        return;
      case '$':
        ++p_;
        out_ += R"((?=\n|\z))";
        return;
      case '*':
      case '+':
      case '?':
        fail("a quantifier with nothing to repeat");
      case '.':
        ++p_;
        out_ += R"([^\n])";
        break;
      case '[':
        emit_class(bracket(0));
        break;
      case '\\':
        if (const auto escaped = escaped_class()) {
          emit_class(*escaped);
        } else {
          emit(escaped_character());
        }
        break;
      case '{':
        fail("'{'");
      default:
        emit(next_character());
    }
    quantifiers(atom);
  }

  // Groups without capturing, look-aheads, look-behinds, atomic groups and (?i:…) are the same in
  // both languages. A capturing group becomes a group without capturing.
  void open_group() {
    if (depth_ == kMostDepth) fail("too many nested groups");
    for (const std::string_view kind : {"(?:", "(?=", "(?!", "(?<=", "(?<!", "(?>", "(?i:"}) {
      if (!starts(kind)) continue;
      p_ += kind.size();
      if (kind == "(?i:") check_ignore_case();
      push_group(kind);
      return;
    }
    if (starts("(?")) fail(fmt::format("the group '{}'", std::string(p_, std::min(p_ + 4, end_))));
    ++p_;
    push_group("(?:");  // captures are not needed
  }
  // In a case-insensitive group Oniguruma also folds several characters to one, e.g. "ss" to
  // U+00DF; PCRE2 folds single characters only. The letters of contractions do not form such pairs.
  void check_ignore_case() const {
    const std::string_view rest(p_, static_cast<size_t>(end_ - p_));
    const std::string_view group = rest.substr(0, rest.find(')'));
    if (group.find_first_not_of("'|[]delmrstv") != std::string_view::npos ||
        group.find("ss") != std::string_view::npos || group.find("st") != std::string_view::npos)
      fail("a case-insensitive group that is not a contraction");
  }
  void push_group(std::string_view kind) {
    group_starts_[static_cast<size_t>(depth_++)] = out_.size();
    out_ += kind;
  }

  // Translates the quantifiers after an atom that began at out_[atom]. Each quantifier encloses the
  // atom in a group of its own: in Oniguruma, "x{1,3}+" repeats x{1,3} one or more times, while
  // PCRE2 would read "+" as possessive. So "x{1,3}+" becomes "(?:(?:x{1,3})+)".
  void quantifiers(size_t atom) {
    while (p_ < end_) {
      std::string repeat;
      const bool is_interval = *p_ == '{';
      if (is_interval) {
        repeat = interval();
      } else if (*p_ == '*' || *p_ == '+' || *p_ == '?') {
        repeat = *p_++;
      } else {
        return;
      }
      if (!is_interval && (peek() == '?' || peek() == '+')) {
        repeat += *p_++;
      } else if (peek() == '?') {
        fail("a '?' after an interval");
      }
      out_.insert(atom, "(?:");
      out_ += repeat + ")";
    }
  }

  // {n}, {n,}, {n,m}, {,m}
  std::string interval() {
    const char* close = p_;
    while (close < end_ && *close != '}') ++close;
    const std::string_view inner(p_ + 1, static_cast<size_t>(close - p_ - 1));
    const size_t comma = inner.find(',');
    const std::string_view low = inner.substr(0, comma);
    const auto is_number = [](std::string_view digits) {
      int value = 0;
      const auto [stop, error] =
          std::from_chars(digits.data(), digits.data() + digits.size(), value);
      return error == std::errc() && stop == digits.data() + digits.size() && value >= 0 &&
             value <= 1000;
    };
    const std::string_view high = comma == std::string_view::npos ? low : inner.substr(comma + 1);
    const bool valid = close < end_ && (low.empty() ? !high.empty() : is_number(low)) &&
                       (high.empty() ? !low.empty() : is_number(high));
    if (!valid) fail("'{' that is not an interval up to 1000");
    p_ = close + 1;
    if (comma == std::string_view::npos) return fmt::format("{{{}}}", low);
    return fmt::format("{{{},{}}}", low.empty() ? "0" : low, high);
  }

  char32_t next_character() {
    const unicode::CodePoint c = unicode::decode(p_, end_);
    if (c.value >= unicode::kInvalidByte) fail("a byte that is not UTF-8");
    p_ += c.size;
    return c.value;
  }

  // Returns the class if \s, \d, \p{…} or one of their negations is at p_.
  std::optional<Class> escaped_class() {
    if (end_ - p_ < 2) fail("'\\' at its end");
    Class found;
    switch (p_[1]) {
      case 's':
      case 'S':
        found.characters = spaces();
        found.negated = p_[1] == 'S';
        p_ += 2;
        return found;
      case 'd':
      case 'D':
        found.categories = unicode::bit(unicode::kNd);
        found.negated = p_[1] == 'D';
        p_ += 2;
        return found;
      case 'p':
      case 'P':
        break;
      default:
        return std::nullopt;
    }
    const char* name = p_ + 2;
    const char* close = name;
    while (close < end_ && *close != '}') ++close;
    if (name >= end_ || *name != '{' || close == end_) fail("'\\p' without {name}");
    ++name;
    found.negated = p_[1] == 'P';
    if (*name == '^') {
      found.negated = !found.negated;
      ++name;
    }
    const auto properties = unicode::category_named({name, static_cast<size_t>(close - name)});
    if (!properties) fail(fmt::format("the property '{}'", std::string(name, close)));
    found.categories = *properties;
    p_ = close + 1;
    return found;
  }

  // Reads an escape that denotes one character: \n, \u00E9, \x{e9}, or an escaped punctuation mark.
  char32_t escaped_character() {
    if (end_ - p_ < 2) fail("'\\' at its end");
    const char kind = p_[1];
    switch (kind) {
      case 'n':
        return skip_two('\n');
      case 'r':
        return skip_two('\r');
      case 't':
        return skip_two('\t');
      case 'f':
        return skip_two('\f');
      case 'v':
        return skip_two('\v');
      case 'u':
        return hexadecimal(2, 4, 4);
      case 'x':
        if (end_ - p_ > 2 && p_[2] == '{') {
          const char32_t value = hexadecimal(3, 1, 6);
          if (peek() != '}') fail("'\\x{' without '}'");
          ++p_;
          return value;
        }
        return hexadecimal(2, 1, 2);
      default:
        if (static_cast<uint8_t>(kind) >= 0x80 || std::isalnum(static_cast<uint8_t>(kind)) != 0)
          fail(fmt::format("'\\{}'", static_cast<uint8_t>(kind) < 0x80 ? kind : '?'));
        return skip_two(static_cast<char32_t>(kind));
    }
  }
  char32_t skip_two(char32_t value) {
    p_ += 2;
    return value;
  }
  // Reads `least` to `most` hexadecimal digits that begin `from` bytes after p_.
  char32_t hexadecimal(int from, int least, int most) {
    const char* first = p_ + from;
    uint32_t value = 0;
    const char* last =
        first + std::min<std::ptrdiff_t>(most, std::max<std::ptrdiff_t>(end_ - first, 0));
    const auto [stop, error] = std::from_chars(first, last, value, 16);
    if (error != std::errc() || stop - first < least || value > 0x10FFFF ||
        (value >= 0xD800 && value < 0xE000) || (from == 2 && most == 2 && value > 0x7F))
      fail("a number that is not a character");
    p_ = stop;
    return value;
  }

  void add_to(Class& set, const Class& other) {
    // Complementing a class visits every code point.
    if (other.negated && ++n_turned_ > kMostTurned) fail("too many nested negated classes");
    set.add(other);
  }

  // Reads a bracketed class. p_ is at its '['.
  Class bracket(int depth) {
    if (depth > kMostDepth) fail("too many nested classes");
    ++p_;
    Class set;
    if (peek() == '^') {
      set.negated = true;
      ++p_;
    }
    for (bool first = true;; first = false) {
      if (p_ == end_) fail("an unterminated class");
      if (*p_ == ']' && !first) break;
      if (*p_ == ']') fail("an empty class");
      if (starts("[:")) fail("a POSIX bracket");
      if (starts("&&")) fail("an intersection");
      if (*p_ == '[') {
        add_to(set, bracket(depth + 1));
        continue;
      }
      if (*p_ == '\\') {
        if (const auto escaped = escaped_class()) {
          add_to(set, *escaped);
          continue;
        }
      }
      const char32_t low = *p_ == '\\' ? escaped_character() : next_character();
      char32_t high = low;
      if (peek() == '-' && end_ - p_ > 1 && p_[1] != ']') {
        ++p_;
        if (*p_ == '[' || *p_ == '-') fail("a range without an end");
        if (*p_ == '\\') {
          const char* before = p_;
          if (escaped_class()) {
            p_ = before;
            fail("a range that ends with a class");
          }
        }
        high = *p_ == '\\' ? escaped_character() : next_character();
        if (high < low) fail("a reversed range");
      }
      set.characters.add(low, high);
    }
    ++p_;
    return set;
  }

  // Every literal character is written as \x{…}, so that none of them has a meaning in PCRE2's
  // syntax.
  void emit(char32_t c) { out_ += fmt::format("\\x{{{:x}}}", static_cast<uint32_t>(c)); }
  void emit_ranges(const CodePointSet& set) {
    for (const auto& [first, last] : set.ranges()) {
      emit(first);
      if (last == first) continue;
      out_ += '-';
      emit(last);
    }
  }
  // Writes PCRE2's categories, corrected to ours.
  void emit_class(const Class& set) {
    CategoryDifference difference;
    if (set.categories != 0) difference = compare_categories(set.categories);
    const bool corrects = !difference.extra.ranges().empty();
    if (corrects) {
      out_ += set.negated ? "(?:[" : "(?:(?![";
      emit_ranges(difference.extra);
      out_ += set.negated ? "]|" : "])";
    }
    if (set.categories == 0 && set.characters.ranges().empty()) {
      out_ += set.negated ? "[\\x{0}-\\x{10ffff}]" : "(?!)";
    } else {
      out_ += set.negated ? "[^" : "[";
      for (int c = 0; c <= unicode::kCo; ++c) {
        const auto category = static_cast<unicode::Category>(c);
        if ((set.categories & unicode::bit(category)) != 0)
          out_ += fmt::format("\\p{{{}}}", category_name(category));
      }
      emit_ranges(difference.missing);
      emit_ranges(set.characters);
      out_ += ']';
    }
    if (corrects) out_ += ')';
  }

  std::string_view pattern_;
  const char* p_;
  const char* end_;
  std::string out_;
  int depth_ = 0;
  int n_turned_ = 0;
  size_t group_starts_[kMostDepth] = {};
};

}  // namespace

std::string translate_regex(std::string_view pattern) {
  if (pattern.size() > 16384)
    throw UnsupportedError("a regular expression of more than 16,384 bytes is not supported");
  return Translator(pattern).translate();
}

}  // namespace limpid
