// str() and repr().
#include <charconv>
#include <cmath>

#include "tokenizer/jinja/operators.h"
#include "tokenizer/jinja/unicode_text.h"

namespace limpid::jinja {
namespace {

constexpr int kMaxPrintDepth = 400;  // namespaces can hold each other

void append_hex(std::string& out, char kind, char32_t c, int digits) {
  constexpr char kDigits[] = "0123456789abcdef";
  out += '\\';
  out += kind;
  for (int shift = 4 * (digits - 1); shift >= 0; shift -= 4) out += kDigits[c >> shift & 0xF];
}

void append_string_repr(std::string& out, std::string_view text) {
  const bool double_quotes =
      text.find('\'') != std::string_view::npos && text.find('"') == std::string_view::npos;
  const char32_t quote = double_quotes ? '"' : '\'';
  out += static_cast<char>(quote);
  for (size_t at = 0; at < text.size();) {
    const size_t begin = at;
    const char32_t c = next_code_point(text, at);
    if (c == quote || c == '\\') {
      out += '\\';
      out += static_cast<char>(c);
    } else if (c == '\n') {
      out += "\\n";
    } else if (c == '\r') {
      out += "\\r";
    } else if (c == '\t') {
      out += "\\t";
    } else if (is_printable(c)) {
      out += text.substr(begin, at - begin);
    } else if (c < 0x100) {
      append_hex(out, 'x', c, 2);
    } else if (c < 0x10000) {
      append_hex(out, 'u', c, 4);
    } else {
      append_hex(out, 'U', c, 8);
    }
  }
  out += static_cast<char>(quote);
}

class Printer {
 public:
  Printer(Budget& budget, std::string& out) : budget_(budget), out_(out) {}

  void print(const Value& value) {
    budget_.spend(1);
    budget_.check_room(out_.size());
    if (++depth_ > kMaxPrintDepth) throw Fault("a value is nested too deeply to print");
    print_nested(value);
    --depth_;
  }

 private:
  void print_nested(const Value& value) {
    switch (value.kind()) {
      case Kind::kString: {
        budget_.spend_bytes(value.text().size());
        const bool markup = value.as<StringObject>().is_markup;
        if (markup) out_ += "Markup(";
        append_string_repr(out_, value.text());
        if (markup) out_ += ')';
        return;
      }
      case Kind::kUndefined:
        out_ += "Undefined";
        return;
      case Kind::kList:
        print_items('[', value.as<SequenceObject>().items, ']');
        return;
      case Kind::kTuple:
        print_tuple(value.as<SequenceObject>().items);
        return;
      case Kind::kDict:
        print_dict(value.as<DictObject>());
        return;
      case Kind::kDictView:
        out_ += python_type_name(value);
        out_ += '(';
        print_items('[', dict_view_items(budget_, value), ']');
        out_ += ')';
        return;
      case Kind::kRange:
        print_range(value.as<RangeObject>());
        return;
      case Kind::kNamespace:
        print_namespace(value.as<NamespaceObject>());
        return;
      default:
        append_str(budget_, out_, value);
    }
  }

  void print_items(char open, const std::vector<Value>& items, char close) {
    out_ += open;
    for (size_t i = 0; i < items.size(); ++i) {
      if (i > 0) out_ += ", ";
      print(items[i]);
    }
    if (close != 0) out_ += close;
  }

  void print_tuple(const std::vector<Value>& items) {
    print_items('(', items, 0);
    out_ += items.size() == 1 ? ",)" : ")";
  }

  void print_dict(const DictObject& dict) {
    out_ += '{';
    bool first = true;
    for (const auto& [key, value] : dict.entries) {
      if (!first) out_ += ", ";
      first = false;
      print(key);
      out_ += ": ";
      print(value);
    }
    out_ += '}';
  }

  void print_range(const RangeObject& range) {
    out_ += "range(" + std::to_string(range.start) + ", " + std::to_string(range.stop);
    if (range.step != 1) out_ += ", " + std::to_string(range.step);
    out_ += ')';
  }

  void print_namespace(const NamespaceObject& space) {
    out_ += "<Namespace {";
    bool first = true;
    for (const auto& [name, value] : space.attributes) {
      if (!first) out_ += ", ";
      first = false;
      append_string_repr(out_, name);
      out_ += ": ";
      print(value);
    }
    out_ += "}>";
  }

  Budget& budget_;
  std::string& out_;
  int depth_ = 0;
};

}  // namespace

std::string float_repr(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  char digits[40];
  const auto [end, error] =
      std::to_chars(digits, digits + sizeof(digits), value, std::chars_format::scientific);
  (void)error;  // 40 bytes hold every shortest form
  std::string text(digits, end);
  const size_t e = text.find('e');
  const int exponent = std::stoi(text.substr(e + 1));
  if (exponent < -4 || exponent >= 16) return text;
  const bool negative = text[0] == '-';
  std::string mantissa = text.substr(negative ? 1 : 0, e - (negative ? 1 : 0));
  if (mantissa.size() > 1) mantissa.erase(1, 1);  // the point
  std::string out = negative ? "-" : "";
  if (exponent < 0) {
    out += "0." + std::string(static_cast<size_t>(-exponent - 1), '0') + mantissa;
    return out;
  }
  const auto whole = static_cast<size_t>(exponent) + 1;
  if (mantissa.size() < whole) mantissa.append(whole - mantissa.size(), '0');
  const std::string fraction = mantissa.substr(whole);
  return out + mantissa.substr(0, whole) + "." + (fraction.empty() ? "0" : fraction);
}

void append_str(Budget& budget, std::string& out, const Value& value) {
  switch (value.kind()) {
    case Kind::kNone:
      out += "None";
      return;
    case Kind::kUndefined:
      return;
    case Kind::kBool:
      out += value.integer() ? "True" : "False";
      return;
    case Kind::kInt:
      out += std::to_string(value.integer());
      return;
    case Kind::kFloat:
      out += float_repr(value.real());
      return;
    case Kind::kString:
      budget.spend_bytes(value.text().size());
      budget.check_room(out.size() + value.text().size());
      out += value.text();
      return;
    case Kind::kLoop:
      out += loop_repr(budget, value);
      return;
    case Kind::kIterator:
    case Kind::kFunction:
    case Kind::kMacro:
    case Kind::kCycler:
    case Kind::kJoiner:
      // Python prints an address here; a template that needs it has no defined output.
      throw Fault("the template prints a " + std::string(python_type_name(value)) +
                  "; use the list filter or call it");
    default:
      Printer(budget, out).print(value);
  }
}

std::string to_str(Budget& budget, const Value& value) {
  std::string out;
  append_str(budget, out, value);
  return out;
}

std::string repr(Budget& budget, const Value& value) {
  std::string out;
  Printer(budget, out).print(value);
  return out;
}

Value str_value(Budget& budget, const Value& value) {
  return value.is_string() ? value : make_string(budget, to_str(budget, value));
}

std::string escape_html(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (const char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&#34;";
        break;
      case '\'':
        out += "&#39;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

}  // namespace limpid::jinja
