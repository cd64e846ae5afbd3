// str() and repr().
#include <charconv>
#include <cmath>

#include "jinja/operators.h"
#include "jinja/unicode_text.h"

namespace limpid::jinja {
namespace {

constexpr int kMaxPrintDepth = 400;  // namespaces can hold each other

void append_hex(std::string& out, char kind, char32_t c, int digits) {
  constexpr char kDigits[] = "0123456789abcdef";
  out += '\\';
  out += kind;
  for (int shift = 4 * (digits - 1); shift >= 0; shift -= 4) out += kDigits[c >> shift & 0xF];
}

// Quotation marks and the like are the interpreter's own; an escape is whose the character is.
void append_string_repr(TracedText& out, TracedView text) {
  const std::string_view bytes = text.bytes();
  const bool double_quotes =
      bytes.find('\'') != std::string_view::npos && bytes.find('"') == std::string_view::npos;
  const char32_t quote = double_quotes ? '"' : '\'';
  const std::string_view quotes = double_quotes ? "\"" : "'";
  out.append(quotes, Origin::kData);
  for (size_t at = 0; at < bytes.size();) {
    const size_t begin = at;
    const char32_t c = next_code_point(bytes, at);
    const std::string_view shown = bytes.substr(begin, at - begin);
    out.append_with(text.origin(shown), [&](std::string& written) {
      if (c == quote || c == '\\') {
        written += '\\';
        written += static_cast<char>(c);
      } else if (c == '\n') {
        written += "\\n";
      } else if (c == '\r') {
        written += "\\r";
      } else if (c == '\t') {
        written += "\\t";
      } else if (is_printable(c)) {
        written += shown;
      } else if (c < 0x100) {
        append_hex(written, 'x', c, 2);
      } else if (c < 0x10000) {
        append_hex(written, 'u', c, 4);
      } else {
        append_hex(written, 'U', c, 8);
      }
    });
  }
  out.append(quotes, Origin::kData);
}

class Printer {
 public:
  Printer(Budget& budget, TracedText& out) : budget_(budget), out_(out) {}

  void print(const Value& value) {
    budget_.spend(1);
    budget_.check_room(out_.memory());
    if (++depth_ > kMaxPrintDepth) throw Fault("a value is nested too deeply to print");
    print_nested(value);
    --depth_;
  }

 private:
  void put(std::string_view own) { out_.append(own, Origin::kData); }
  void print_nested(const Value& value) {
    switch (value.kind()) {
      case Kind::kString: {
        budget_.spend_bytes(value.text().size());
        const bool markup = value.as<StringObject>().is_markup;
        if (markup) put("Markup(");
        append_string_repr(out_, value.traced());
        if (markup) put(")");
        return;
      }
      case Kind::kUndefined:
        put("Undefined");
        return;
      case Kind::kList:
        print_items("[", value.as<SequenceObject>().items, "]");
        return;
      case Kind::kTuple:
        print_tuple(value.as<SequenceObject>().items);
        return;
      case Kind::kDict:
        print_dict(value.as<DictObject>());
        return;
      case Kind::kDictView:
        put(python_type_name(value));
        put("(");
        print_items("[", dict_view_items(budget_, value), "]");
        put(")");
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

  void print_items(std::string_view open, const std::vector<Value>& items, std::string_view close) {
    put(open);
    for (size_t i = 0; i < items.size(); ++i) {
      if (i > 0) put(", ");
      print(items[i]);
    }
    put(close);
  }

  void print_tuple(const std::vector<Value>& items) {
    print_items("(", items, items.size() == 1 ? ",)" : ")");
  }

  void print_dict(const DictObject& dict) {
    put("{");
    bool first = true;
    for (const auto& [key, value] : dict.entries) {
      if (!first) put(", ");
      first = false;
      print(key);
      put(": ");
      print(value);
    }
    put("}");
  }

  void print_range(const RangeObject& range) {
    put("range(" + std::to_string(range.start) + ", " + std::to_string(range.stop));
    if (range.step != 1) put(", " + std::to_string(range.step));
    put(")");
  }

  void print_namespace(const NamespaceObject& space) {
    put("<Namespace {");
    bool first = true;
    for (const auto& [name, value] : space.attributes) {
      if (!first) put(", ");
      first = false;
      append_string_repr(out_, {name, Origin::kData});
      put(": ");
      print(value);
    }
    put("}>");
  }

  Budget& budget_;
  TracedText& out_;
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

void append_checked(Budget& budget, TracedText& out, TracedView part) {
  budget.check_room(out.memory() + part.memory() + sizeof(size_t));
  out.append(part);
}

void append_str(Budget& budget, TracedText& out, const Value& value) {
  const auto put = [&out](std::string_view own) { out.append(own, Origin::kData); };
  switch (value.kind()) {
    case Kind::kNone:
      put("None");
      return;
    case Kind::kUndefined:
      return;
    case Kind::kBool:
      put(value.integer() ? "True" : "False");
      return;
    case Kind::kInt:
      put(std::to_string(value.integer()));
      return;
    case Kind::kFloat:
      put(float_repr(value.real()));
      return;
    case Kind::kString:
      budget.spend_bytes(value.text().size());
      append_checked(budget, out, value.traced());
      return;
    case Kind::kLoop:
      put(loop_repr(budget, value));
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

TracedText to_str(Budget& budget, const Value& value) {
  TracedText out;
  append_str(budget, out, value);
  return out;
}

TracedText repr(Budget& budget, const Value& value) {
  TracedText out;
  Printer(budget, out).print(value);
  return out;
}

Value str_value(Budget& budget, const Value& value) {
  return value.is_string() ? value : make_string(budget, to_str(budget, value));
}

TracedText escape_html(TracedView text) {
  TracedText out;
  text.for_each_run([&out](std::string_view run, Origin origin) {
    out.append_with(origin, [run](std::string& written) {
      for (const char c : run) {
        switch (c) {
          case '&':
            written += "&amp;";
            break;
          case '<':
            written += "&lt;";
            break;
          case '>':
            written += "&gt;";
            break;
          case '"':
            written += "&#34;";
            break;
          case '\'':
            written += "&#39;";
            break;
          default:
            written += c;
        }
      }
    });
  });
  return out;
}

}  // namespace limpid::jinja
