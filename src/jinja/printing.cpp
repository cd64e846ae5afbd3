// str() and repr(): how values become text. Every byte has an origin, the template or data
// (traced_text.h), because only text of the template may spell control tokens.
#include <charconv>
#include <cmath>

#include "jinja/operators.h"
#include "jinja/unicode_text.h"

namespace limpid::jinja {
namespace {

// The form of one character in repr(); `shown` is its form in the text itself. As in Python, what
// cannot be seen is escaped (a newline as \n, a no-break space as \xa0), and é stays é.
void append_character_repr(std::string& out, char32_t c, std::string_view shown, char32_t quote) {
  constexpr std::string_view kEscaped = "\n\r\t\\";
  constexpr std::string_view kLetters = "nrt\\";
  const size_t escape = c < 0x80 ? kEscaped.find(static_cast<char>(c)) : std::string_view::npos;
  if (escape != std::string_view::npos) {
    out += {'\\', kLetters[escape]};
  } else if (c == quote) {
    out += {'\\', static_cast<char>(c)};
  } else if (is_printable(c)) {
    out += shown;
  } else {
    const int n_digits = c < 0x100 ? 2 : c < 0x10000 ? 4 : 8;
    const char letter = n_digits == 2 ? 'x' : n_digits == 4 ? 'u' : 'U';
    out += fmt::format("\\{}{:0{}x}", letter, uint32_t{c}, n_digits);
  }
}

// The quotation marks count as data; an escape has the origin of its character.
void append_string_repr(TracedText& out, TracedView text) {
  const std::string_view bytes = text.bytes();
  const bool double_quotes =
      bytes.find('\'') != std::string_view::npos && bytes.find('"') == std::string_view::npos;
  const std::string_view quote = double_quotes ? "\"" : "'";
  out.append(quote, Origin::kData);
  for_each_code_point(bytes, [&](char32_t c, std::string_view shown) {
    out.append_with(text.origin(shown), [&](std::string& written) {
      append_character_repr(written, c, shown, static_cast<char32_t>(quote[0]));
    });
  });
  out.append(quote, Origin::kData);
}

// Writes values as Python's repr() does: {{ message }} prints a dict, and models were trained on
// such prompts, so quotation marks, blanks and escapes have to be Python's. Strings keep the
// origins of their bytes; everything that the printer adds counts as data.
class Printer {
 public:
  Printer(Budget& budget, TracedText& out) : budget_(budget), out_(out) {}

  // repr(). The recursion is bounded: values have a largest depth.
  void print(const Value& value) {
    budget_.spend(1);
    budget_.check_room(out_.memory());
    if (value.is_undefined()) return put("Undefined");
    if (value.is_string()) return print_string(value);
    if (value.is(Kind::kDict)) return print_dict(value.as<DictObject>());
    if (value.is(Kind::kList)) return print_items("[", value, "]");
    if (value.is(Kind::kTuple)) return print_items("(", value, *length_of(value) == 1 ? ",)" : ")");
    if (!value.is(Kind::kDictView)) return append_str(budget_, out_, value);
    put(python_type_name(value));
    print_items("([", value, "])");
  }

 private:
  void put(std::string_view own) { out_.append(own, Origin::kData); }

  void print_string(const Value& value) {
    budget_.spend_bytes(value.text().size());
    const bool is_markup = value.as<StringObject>().is_markup;
    if (is_markup) put("Markup(");
    append_string_repr(out_, value.traced());
    if (is_markup) put(")");
  }

  void print_items(std::string_view open, const Value& sequence, std::string_view close) {
    put(open);
    std::string_view separator;
    for (const auto& item : sequence.as<SequenceObject>().items) {
      put(std::exchange(separator, ", "));
      print(item);
    }
    put(close);
  }

  void print_dict(const DictObject& dict) {
    put("{");
    std::string_view separator;
    for (const auto& [key, value] : dict.entries) {
      put(std::exchange(separator, ", "));
      print(key);
      put(": ");
      print(value);
    }
    put("}");
  }

  Budget& budget_;
  TracedText& out_;
};

// range(0, 3), or range(0, 9, 3).
std::string range_repr(const RangeObject& range) {
  const std::string step = range.step == 1 ? "" : fmt::format(", {}", range.step);
  return fmt::format("range({}, {}{})", range.start, range.stop, step);
}

}  // namespace

// The shortest digits that read back as the same number, written as Python writes them.
std::string float_repr(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  const double magnitude = std::abs(value);
  const bool plain = magnitude == 0 || (magnitude >= 1e-4 && magnitude < 1e16);
  char digits[40];  // holds every shortest form
  const auto end = std::to_chars(digits, digits + sizeof(digits), value,
                                 plain ? std::chars_format::fixed : std::chars_format::scientific)
                       .ptr;
  std::string text(digits, end);
  if (plain && text.find('.') == std::string::npos) text += ".0";
  return text;
}

void append_checked(Budget& budget, TracedText& out, TracedView part) {
  // `part` may also add one change of the origin (traced_text.h).
  budget.check_room(out.memory() + part.memory() + sizeof(size_t));
  budget.spend_bytes(part.size());
  out.append(part);
}

// str() of a string is the string, and of an undefined value nothing. For everything else it is
// repr().
void append_str(Budget& budget, TracedText& out, const Value& value) {
  const auto put = [&out](std::string_view own) { out.append(own, Origin::kData); };
  if (value.is_undefined()) return;
  if (value.is_string()) return append_checked(budget, out, value.traced());
  if (value.is(Kind::kNone)) return put("None");
  if (value.is(Kind::kBool)) return put(value.integer() ? "True" : "False");
  if (value.is(Kind::kInt)) return put(std::to_string(value.integer()));
  if (value.is(Kind::kFloat)) return put(float_repr(value.real()));
  if (value.is(Kind::kRange)) return put(range_repr(value.as<RangeObject>()));
  if (value.is_sequence() || value.is(Kind::kDict)) return Printer(budget, out).print(value);
  // Python prints an address for most of the others, so their output is not defined.
  refuse("printing a {}", python_type_name(value));
}

// The text of a value as a new text; append_str writes to an existing one.
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

// The five characters that markupsafe escapes, with its entities.
TracedText escape_html(Budget& budget, TracedView text) {
  budget.check_room(5 * text.memory());  // the longest entity has five bytes
  constexpr std::string_view kCharacters = "&<>\"'";
  constexpr std::string_view kEntities[] = {"&amp;", "&lt;", "&gt;", "&#34;", "&#39;"};
  TracedText out;
  text.for_each_run([&](std::string_view run, Origin origin) {
    out.append_with(origin, [&](std::string& written) {
      for (const char c : run) {
        const size_t entity = kCharacters.find(c);
        if (entity == std::string_view::npos) {
          written += c;
        } else {
          written += kEntities[entity];
        }
      }
    });
  });
  return out;
}

}  // namespace limpid::jinja
