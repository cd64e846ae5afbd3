#include "jinja/lexer.h"

#include <algorithm>
#include <charconv>
#include <optional>

#include "base/text.h"
#include "base/utf8.h"
#include "jinja/unicode_text.h"

namespace limpid::jinja {
namespace {

bool is_ascii_digit(char c) { return c >= '0' && c <= '9'; }

// Walks once through the source. at_ is the first byte that is not yet a token.
class Lexer {
 public:
  explicit Lexer(std::string_view source) : source_(source) {}

  std::vector<Token> run() {
    while (at_ < source_.size()) text_until_tag();
    emit(TokenKind::kEnd, at_, "");
    return std::move(tokens_);
  }

 private:
  bool starts(std::string_view what, size_t at) const {
    return source_.substr(at, what.size()) == what;
  }
  [[noreturn]] void fail(size_t at, std::string message) const {
    throw SyntaxFault{at, std::move(message)};
  }
  void emit(TokenKind kind, size_t at, std::string text) {
    tokens_.push_back({kind, at, std::move(text)});
  }

  // The text before a tag is emitted only when the tag is known, because the tag's sign decides how
  // the text is trimmed. Everything up to the next `{%`, `{{` or `{#`, then the tag itself.
  void text_until_tag() {
    size_t open = at_;
    for (;; ++open) {
      open = source_.find('{', open);
      if (open == std::string_view::npos || open + 1 >= source_.size()) {
        emit_text(source_.substr(at_), at_);
        at_ = source_.size();
        return;
      }
      const char kind = source_[open + 1];
      if (kind == '%' || kind == '{' || kind == '#') break;
    }
    const char kind = source_[open + 1];
    size_t after = open + 2;
    const char sign = take_sign(after);
    emit_text(before_tag(source_.substr(at_, open - at_), sign, kind != '{'), at_);
    if (kind == '#') {
      comment(open, after);
    } else if (kind == '{') {
      emit(TokenKind::kVariableBegin, open, "{{");
      at_ = after;
      tag_tokens(TokenKind::kVariableEnd, "}}");
    } else if (!raw(open, after)) {
      emit(TokenKind::kBlockBegin, open, "{%");
      at_ = after;
      tag_tokens(TokenKind::kBlockEnd, "%}");
    }
    line_starting_ = at_ > 0 && source_[at_ - 1] == '\n';
  }

  void emit_text(std::string_view text, size_t at) {
    if (!text.empty()) emit(TokenKind::kData, at, std::string(text));
  }

  // Trims the text before a tag. A line begins at the start of the template, after a newline of
  // this text, or after a tag whose newline was dropped (line_starting_).
  std::string_view before_tag(std::string_view text, char sign, bool may_lstrip) const {
    if (sign == '-') return strip(text, Side::kRight);
    if (sign == '+' || !may_lstrip) return text;
    const size_t newline = text.rfind('\n');
    const size_t line = newline == std::string_view::npos ? 0 : newline + 1;
    if (line == 0 && !line_starting_) return text;
    const std::string_view indentation = text.substr(line);
    return strip(indentation, Side::kBoth).empty() ? text.substr(0, line) : text;
  }

  void skip_space() { at_ += strip_left_size(source_.substr(at_)); }
  static size_t strip_left_size(std::string_view text) {
    return text.size() - strip(text, Side::kLeft).size();
  }
  // The sign at `at`, which moves past it: '-' trims the text beside the tag, '+' keeps all of
  // it.
  char take_sign(size_t& at) const {
    const char c = at < source_.size() ? source_[at] : '\0';
    if (c != '-' && c != '+') return '\0';
    ++at;
    return c;
  }
  // Goes on after a tag that ends with `sign`: without one, a newline after the tag goes too.
  void after_tag(size_t at, char sign) {
    at_ = at;
    if (sign == '-') skip_space();
    if (sign == '\0' && starts("\n", at_)) ++at_;
  }

  void comment(size_t open, size_t content) {
    const size_t close = source_.find("#}", content);
    if (close == std::string_view::npos) fail(open, "missing end of comment tag");
    size_t sign_at = close > content ? close - 1 : close;
    after_tag(close + 2, take_sign(sign_at));
  }

  // Where the tag that begins at `at`, past `{%`, ends if its only word is `word`: past the
  // word, at the sign or at `%}`.
  std::optional<size_t> end_of_word(size_t at, std::string_view word) const {
    at += strip_left_size(source_.substr(at));
    if (!starts(word, at)) return std::nullopt;
    at += word.size();
    return at + strip_left_size(source_.substr(at));
  }

  // `{% raw %}`: true when it was one. `after`: just past `{%` and its sign.
  bool raw(size_t open, size_t after) {
    auto end = end_of_word(after, "raw");
    if (!end || !(starts("-%}", *end) || starts("%}", *end))) return false;
    const bool trims = take_sign(*end) == '-';
    at_ = *end + 2;
    if (trims) skip_space();
    line_starting_ = source_[at_ - 1] == '\n';
    const size_t begin = at_;
    for (size_t tag = source_.find("{%", begin); tag != std::string_view::npos;
         tag = source_.find("{%", tag + 1)) {
      size_t word = tag + 2;
      const char sign = take_sign(word);
      end = end_of_word(word, "endraw");
      if (!end) continue;
      const char end_sign = take_sign(*end);
      if (!starts("%}", *end)) continue;
      emit_text(before_tag(source_.substr(begin, tag - begin), sign, true), begin);
      after_tag(*end + 2, end_sign);
      return true;
    }
    fail(open, "missing end of raw directive");
  }

  // Tokens of an expression or a statement, up to `close`. Where the template ends first, the
  // parser names the tag that is open. Spaces separate tokens and are dropped. Each reader below
  // tries one kind of token at at_ and says whether it was there; operators come last and must
  // match.
  void tag_tokens(TokenKind end_kind, std::string_view close) {
    std::string open_brackets;
    while (at_ < source_.size() && !(open_brackets.empty() && end(end_kind, close))) {
      const size_t space = strip_left_size(source_.substr(at_));
      if (space > 0) {
        at_ += space;
      } else if (!number() && !name() && !string()) {
        operator_token(open_brackets);
      }
    }
  }

  // The end of the tag, if it is here. Brackets must be closed before: in {{ {'a': {}} }} the first
  // }} belongs to the dicts.
  bool end(TokenKind kind, std::string_view close) {
    const bool is_block = kind == TokenKind::kBlockEnd;
    size_t at = at_;
    const char sign = take_sign(at);
    if (!starts(close, at) || (sign == '+' && !is_block)) return false;
    emit(kind, at_, std::string(close));
    after_tag(at + close.size(), sign == '\0' && !is_block ? '+' : sign);  // }} keeps a newline
    return true;
  }

  // The end of the digits that begin at `at`, or `at` when there are none.
  size_t digits_end(size_t at) const {
    while (at < source_.size() && is_ascii_digit(source_[at])) ++at;
    return at;
  }

  // The end of an exponent (e3, E-5) at `at`, or `at` when there is none: 1e is the number 1 and
  // the name e.
  size_t exponent_end(size_t at) const {
    if (at >= source_.size() || (source_[at] != 'e' && source_[at] != 'E')) return at;
    size_t digits = at + 1;
    if (digits < source_.size() && (source_[digits] == '+' || source_[digits] == '-')) ++digits;
    const size_t end = digits_end(digits);
    return end > digits ? end : at;
  }

  // 12, 1.5, 1e3. After a dot only digits count: x.0.1 reads two items.
  bool number() {
    const size_t whole = digits_end(at_);
    if (whole == at_) return false;
    size_t end = whole;
    if (at_ == 0 || source_[at_ - 1] != '.') {
      const size_t fraction = starts(".", end) ? digits_end(end + 1) : end;
      if (fraction > end + 1) end = fraction;
      end = exponent_end(end);
    }
    const bool has_base = end == at_ + 1 && source_[at_] == '0' && end < source_.size() &&
                          std::string_view("xXoObB").find(source_[end]) != std::string_view::npos;
    if (has_base || starts("_", end)) {
      fail(at_, std::string("a number with a base or with '_'") + kNotSupported);
    }
    emit(end > whole ? TokenKind::kFloat : TokenKind::kInteger, at_,
         std::string(source_.substr(at_, end - at_)));
    at_ = end;
    return true;
  }

  // A name or a word such as `if`: which of the two the parser decides.
  bool name() {
    size_t next = at_;
    if (!is_identifier_start(next_code_point(source_, next))) return false;
    size_t end = next;
    while (end < source_.size()) {
      size_t probe = end;
      if (!is_identifier_part(next_code_point(source_, probe))) break;
      end = probe;
    }
    emit(TokenKind::kName, at_, std::string(source_.substr(at_, end - at_)));
    at_ = end;
    return true;
  }

  // A string in either quotation mark, decoded. Lines may break inside.
  bool string() {
    const char quote = source_[at_];
    if (quote != '\'' && quote != '"') return false;
    const size_t begin = at_++;
    std::string text;
    while (at_ < source_.size() && source_[at_] != quote) {
      if (source_[at_] == '\\') {
        escape(text);
      } else {
        text += source_[at_++];
      }
    }
    if (at_ >= source_.size()) fail(begin, "a string is not closed");
    ++at_;
    emit(TokenKind::kString, begin, std::move(text));
    return true;
  }

  // Decodes the escape at the backslash at_ as Python does. An unknown one stays as it is.
  void escape(std::string& out) {
    constexpr std::string_view kPlain = "\\'\"abfnrtv\n";
    constexpr std::string_view kMeaning = "\\'\"\a\b\f\n\r\t\v";
    const size_t begin = at_++;
    if (at_ >= source_.size()) fail(begin, "a string is not closed");
    const char c = source_[at_++];
    const size_t plain = kPlain.find(c);
    if (c == 'x' || c == 'u' || c == 'U') {
      unicode::append_utf8(hex_escape(begin, c == 'x' ? 2 : c == 'u' ? 4 : 8), out);
    } else if (plain != std::string_view::npos) {
      if (plain < kMeaning.size()) out += kMeaning[plain];  // a backslash joins two lines
    } else if (c == 'N' || is_ascii_digit(c) || static_cast<unsigned char>(c) >= 0x80) {
      fail(begin, fmt::format("the escape '\\{}' of a string{}",
                              static_cast<unsigned char>(c) < 0x80 ? std::string(1, c) : "…",
                              kNotSupported));
    } else {
      out += {'\\', c};
    }
  }

  // The digits of \xhh, \uhhhh or \Uhhhhhhhh; `begin` is where the escape begins.
  char32_t hex_escape(size_t begin, size_t n_digits) {
    const std::string_view digits = source_.substr(at_, n_digits);
    uint32_t value = 0;
    const char* end = digits.data() + digits.size();
    const auto result = std::from_chars(digits.data(), end, value, 16);
    if (digits.size() < n_digits || result.ec != std::errc() || result.ptr != end) {
      fail(begin, "a string has a truncated hexadecimal escape");
    }
    if (value > 0x10FFFF || (value >= 0xD800 && value < 0xE000)) {
      fail(begin, "a string has an escape that is not a Unicode character");
    }
    at_ += n_digits;
    return static_cast<char32_t>(value);
  }

  // The longest operator that begins here. Brackets are matched at once, so the parser need not.
  void operator_token(std::string& open_brackets) {
    constexpr std::string_view kOperators[] = {"//", "**", "==", "!=", ">=", "<=", "+", "-", "/",
                                               "*",  "%",  "~",  "[",  "]",  "(",  ")", "{", "}",
                                               ">",  "<",  "=",  ".",  ":",  "|",  ",", ";"};
    const auto* found =
        std::ranges::find_if(kOperators, [&](std::string_view op) { return starts(op, at_); });
    if (found == std::end(kOperators)) fail(at_, "unexpected character");
    const char c = (*found)[0];
    if (c == '(') open_brackets += ')';
    if (c == '[') open_brackets += ']';
    if (c == '{') open_brackets += '}';
    if (c == ')' || c == ']' || c == '}') {
      if (open_brackets.empty()) fail(at_, std::string("unexpected '") + c + "'");
      if (open_brackets.back() != c) {
        fail(at_, std::string("unexpected '") + c + "', expected '" + open_brackets.back() + "'");
      }
      open_brackets.pop_back();
    }
    emit(TokenKind::kOperator, at_, std::string(*found));
    at_ += found->size();
  }

  std::string_view source_;
  size_t at_ = 0;
  bool line_starting_ = true;
  std::vector<Token> tokens_;
};

}  // namespace

// A template may come from a file of Windows. What it prints does not depend on that.
std::string normalize_newlines(std::string_view source) {
  std::string out = replaced(replaced(source, "\r\n", "\n"), "\r", "\n");
  if (!out.empty() && out.back() == '\n') out.pop_back();
  return out;
}

std::vector<Token> tokenize(std::string_view source) { return Lexer(source).run(); }

}  // namespace limpid::jinja
