// text % values: printf-style formatting.
#include <cmath>

#include "jinja/number_format.h"
#include "jinja/operators.h"
#include "jinja/unicode_text.h"

namespace limpid::jinja {
namespace {

struct Directive {
  bool left = false, sign = false, space = false, zero = false, alternate = false;
  int64_t width = 0;
  int64_t precision = -1;
  char type = 's';
};

class PercentFormatter {
 public:
  PercentFormatter(Budget& budget, TracedView text, const Value& values)
      : budget_(budget), traced_(text), text_(text.bytes()), values_(values) {}

  TracedText run() {
    while (at_ < text_.size()) {
      const size_t percent = text_.find('%', at_);
      const size_t end = percent == std::string_view::npos ? text_.size() : percent;
      append_checked(budget_, out_, traced_.part(text_.substr(at_, end - at_)));
      at_ = end + 1;
      if (percent != std::string_view::npos) directive();
    }
    const bool unused =
        values_.is(Kind::kTuple)
            ? next_ < values_.as<SequenceObject>().items.size()
            : next_ == 0 && !used_name_ && !values_.is(Kind::kDict) && !values_.is(Kind::kList);
    if (unused) throw Fault("not all arguments converted during string formatting");
    return std::move(out_);
  }

 private:
  char peek() const {
    if (at_ >= text_.size()) throw Fault("incomplete format");
    return text_[at_];
  }
  int64_t number() {
    int64_t value = 0;
    while (at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9') {
      value = value * 10 + (text_[at_++] - '0');
      if (value > 1'000'000) throw Fault("a width or precision in a format is too large");
    }
    return value;
  }
  Value argument() {
    if (values_.is(Kind::kTuple)) {
      const auto& items = values_.as<SequenceObject>().items;
      if (next_ < items.size()) return items[next_++];
    } else if (next_++ == 0) {
      return values_;
    }
    throw Fault("not enough arguments for format string");
  }
  Value named_argument() {
    size_t end = at_;
    for (int depth = 1; depth > 0; ++end) {
      if (end >= text_.size()) throw Fault("incomplete format key");
      depth += text_[end] == '(' ? 1 : text_[end] == ')' ? -1 : 0;
    }
    const std::string key(text_.substr(at_, end - 1 - at_));
    at_ = end;
    if (!values_.is(Kind::kDict)) throw Fault("format requires a mapping");
    used_name_ = true;
    const Value* value = values_.as<DictObject>().find(key);
    if (value == nullptr) throw Fault("the format has no value for '" + key + "'");
    return *value;
  }

  void directive() {
    std::optional<Value> value;
    if (peek() == '(') {
      ++at_;
      value = named_argument();
    }
    Directive d;
    for (bool flag = true; flag;) {
      switch (peek()) {
        case '-':
          d.left = true;
          break;
        case '+':
          d.sign = true;
          break;
        case ' ':
          d.space = true;
          break;
        case '0':
          d.zero = true;
          break;
        case '#':
          d.alternate = true;
          break;
        default:
          flag = false;
      }
      if (flag) ++at_;
    }
    d.width = number();
    if (peek() == '.') {
      ++at_;
      d.precision = number();
    }
    while (peek() == 'l' || peek() == 'h' || peek() == 'L') ++at_;
    d.type = text_[at_++];
    if (d.type == '*') throw Fault("'*' in a format is not supported", Fault::Kind::kUnsupported);
    if (d.type == '%') {
      append_checked(budget_, out_, traced_.part(text_.substr(at_ - 1, 1)));
    } else {
      convert(d, value ? *value : argument());
    }
  }

  void convert(const Directive& d, const Value& value) {
    switch (d.type) {
      case 's':
      case 'r':
      case 'a': {
        if (d.type == 'a') throw Fault("%a is not supported", Fault::Kind::kUnsupported);
        const TracedText text = d.type == 's' ? to_str(budget_, value) : repr(budget_, value);
        std::string_view kept = text.bytes();
        if (d.precision >= 0) kept = kept.substr(0, byte_offset(kept, d.precision));
        return pad(d, "", TracedView(text).part(kept), false);
      }
      case 'c':
        return character(d, value);
      case 'd':
      case 'i':
      case 'u':
      case 'x':
      case 'X':
      case 'o':
        return integer(d, value);
      case 'e':
      case 'E':
      case 'f':
      case 'F':
      case 'g':
      case 'G':
        return real(d, value);
      default:
        throw Fault(std::string("unsupported format character '") + d.type + "'");
    }
  }

  void character(const Directive& d, const Value& value) {
    if (value.is_string() && value.as<StringObject>().length == 1) {
      pad(d, "", value.traced(), false);
    } else if (value.is_integral() && value.integer() >= 0 && value.integer() < 0x110000) {
      std::string text;
      append_code_point(text, static_cast<char32_t>(value.integer()));
      pad(d, "", {text, Origin::kData}, false);
    } else {
      throw Fault("%c requires int or char");
    }
  }

  void integer(const Directive& d, const Value& value) {
    require_defined(value);
    if (!value.is_number())
      throw Fault("a number is required for %d, not " + std::string(python_type_name(value)));
    const bool decimal = d.type == 'd' || d.type == 'i' || d.type == 'u';
    if (value.is(Kind::kFloat) &&
        (!decimal || std::abs(value.real()) >= 0x1p63 || std::isnan(value.real()))) {
      throw Fault("an integer is required by the format");
    }
    const int64_t whole =
        value.is(Kind::kFloat) ? static_cast<int64_t>(value.real()) : value.integer();
    std::string digits = integer_digits(magnitude_of(whole), d.type);
    if (d.precision > static_cast<int64_t>(digits.size())) {
      digits.insert(0, static_cast<size_t>(d.precision) - digits.size(), '0');
    }
    std::string prefix = sign_of(d, whole < 0);
    if (d.alternate && !decimal) prefix += std::string("0") + d.type;
    pad(d, prefix, {digits, Origin::kData}, true);
  }

  void real(const Directive& d, const Value& value) {
    require_defined(value);
    if (!value.is_number())
      throw Fault("must be real number, not " + std::string(python_type_name(value)));
    const double number = value.real();
    budget_.spend(std::max<int64_t>(d.precision, 0));  // a digit costs more than a byte
    const int precision = d.precision < 0 ? 6 : static_cast<int>(d.precision);
    const std::string digits = float_digits(number, d.type, precision, d.alternate);
    pad(d, sign_of(d, std::signbit(number) && !std::isnan(number)), {digits, Origin::kData}, true);
  }

  static std::string sign_of(const Directive& d, bool negative) {
    return negative ? "-" : d.sign ? "+" : d.space ? " " : "";
  }

  void pad(const Directive& d, std::string_view prefix, TracedView text, bool number) {
    const int64_t length = static_cast<int64_t>(prefix.size()) + count_code_points(text.bytes());
    const auto missing = static_cast<size_t>(std::max<int64_t>(d.width - length, 0));
    budget_.check_room(out_.memory() + text.memory() + missing + 4 * sizeof(size_t));
    budget_.spend_bytes(text.size() + missing);
    const bool zeros = number && d.zero && !d.left;
    const auto put = [&](std::string_view own) { out_.append(own, Origin::kData); };
    if (!d.left && !zeros) put(std::string(missing, ' '));
    put(prefix);
    if (zeros) put(std::string(missing, '0'));
    out_.append(text);
    if (d.left) put(std::string(missing, ' '));
  }

  Budget& budget_;
  const TracedView traced_;
  const std::string_view text_;  // of traced_
  const Value& values_;
  TracedText out_;
  size_t at_ = 0;
  size_t next_ = 0;
  bool used_name_ = false;
};

}  // namespace

TracedText format_percent(Budget& budget, TracedView text, const Value& values) {
  return PercentFormatter(budget, text, values).run();
}

}  // namespace limpid::jinja
