// Filters that make text.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "tokenizer/jinja/builtins.h"
#include "tokenizer/jinja/interpreter.h"
#include "tokenizer/jinja/operators.h"
#include "tokenizer/jinja/unicode_text.h"

namespace limpid::jinja {
namespace {

// The operand as text (markupsafe.soft_str) and whether it stays marked as safe.
struct Operand {
  Operand(Interpreter& interpreter, const Value& self)
      : value(str_value(interpreter.budget(), self)),
        text(value.text()),
        is_markup(value.as<StringObject>().is_markup) {}
  const Value value;
  const std::string_view text;
  const bool is_markup;
};

template <std::string (*map)(std::string_view)>
Value mapped(Interpreter& interpreter, const Value& self, const Arguments& arguments) {
  const Parameters none(arguments, {});
  const Operand s(interpreter, self);
  interpreter.budget().check_room(4 * s.text.size());
  return make_string(interpreter.budget(), map(s.text), s.is_markup);
}

bool begins_word(char32_t c) {
  return c == '-' || c == '(' || c == '{' || c == '[' || c == '<' || is_space(c);
}

// The filter's own idea of a title: words begin behind white space, brackets and hyphens.
std::string title_of(std::string_view text) {
  std::string out;
  for (size_t at = 0; at < text.size();) {
    size_t end = at;
    const bool separators = [&] {
      size_t next = at;
      return begins_word(next_code_point(text, next));
    }();
    while (end < text.size()) {
      size_t next = end;
      if (begins_word(next_code_point(text, next)) != separators) break;
      end = next;
    }
    const std::string_view word = text.substr(at, end - at);
    size_t first = 0;
    next_code_point(word, first);
    out += to_upper(word.substr(0, first));
    out += to_lower(word.substr(first));
    at = end;
  }
  return out;
}

Value filter_string(Interpreter& interpreter, const Value& self, const Arguments& arguments) {
  const Parameters none(arguments, {});
  return Operand(interpreter, self).value;
}

Value filter_safe(Interpreter& interpreter, const Value& self, const Arguments& arguments) {
  const Parameters none(arguments, {});
  return make_string(interpreter.budget(), std::string(Operand(interpreter, self).text), true);
}

Value filter_forceescape(Interpreter& interpreter, const Value& self, const Arguments& arguments) {
  const Parameters none(arguments, {});
  const Operand s(interpreter, self);
  interpreter.budget().check_room(5 * s.text.size());
  return make_string(interpreter.budget(), escape_html(s.text), true);
}

Value filter_escape(Interpreter& interpreter, const Value& self, const Arguments& arguments) {
  const Operand s(interpreter, self);
  return s.is_markup ? s.value : filter_forceescape(interpreter, self, arguments);
}

Value filter_trim(Interpreter& interpreter, const Value& self, const Arguments& arguments) {
  const Parameters parameters(arguments, {"chars"});
  const Operand s(interpreter, self);
  std::optional<std::string_view> characters;
  if (parameters.has(0) && !parameters[0].is(Kind::kNone)) {
    if (!parameters[0].is_string()) throw Fault("strip arg must be None or str");
    characters = parameters[0].text();
  }
  return make_string(interpreter.budget(), std::string(strip(s.text, Side::kBoth, characters)),
                     s.is_markup);
}

Value filter_replace(Interpreter& interpreter, const Value& self, const Arguments& arguments) {
  const Parameters parameters(arguments, {"old", "new", "count"}, 2);
  Budget& budget = interpreter.budget();
  const int64_t count =
      parameters.has(2) && !parameters[2].is(Kind::kNone) ? parameters.integer(2, -1) : -1;
  return make_string(budget,
                     replace_text(budget, to_str(budget, self), to_str(budget, parameters[0]),
                                  to_str(budget, parameters[1]), count));
}

std::string indentation(Interpreter& interpreter, const Parameters& parameters) {
  if (parameters.has(0) && parameters[0].is_string()) return std::string(parameters[0].text());
  const int64_t width = std::max<int64_t>(parameters.integer(0, 4), 0);
  interpreter.budget().check_room(static_cast<size_t>(width));
  return std::string(static_cast<size_t>(width), ' ');
}

Value filter_indent(Interpreter& interpreter, const Value& self, const Arguments& arguments) {
  const Parameters parameters(arguments, {"width", "first", "blank"});
  require_defined(self);
  if (!self.is_string()) throw Fault("the indent filter needs a string");
  Budget& budget = interpreter.budget();
  const std::string indent = indentation(interpreter, parameters);
  const std::string text = std::string(self.text()) + "\n";
  const auto lines = split_lines(text, false);
  budget.check_room(text.size() + lines.size() * sizeof(std::string_view));
  budget.spend_bytes(text.size() + lines.size() * indent.size());
  std::string out = parameters.truth(1, false) ? indent : "";
  const bool blank = parameters.truth(2, false);
  for (size_t i = 0; i < lines.size(); ++i) {
    budget.check_room(out.size() + indent.size());
    if (i > 0) {
      out += '\n';
      if (blank || !lines[i].empty()) out += indent;
    }
    out += lines[i];
  }
  return make_string(budget, std::move(out), self.as<StringObject>().is_markup);
}

Value filter_center(Interpreter& interpreter, const Value& self, const Arguments& arguments) {
  const Parameters parameters(arguments, {"width"});
  const Operand s(interpreter, self);
  const int64_t length = s.value.as<StringObject>().length;
  const int64_t width = parameters.integer(0, 80);
  if (width <= length) return s.value;
  const int64_t pad = width - length;
  interpreter.budget().check_room(s.text.size() + static_cast<size_t>(pad));
  const int64_t left = pad / 2 + (pad & width & 1);  // as CPython divides an odd margin
  return make_string(interpreter.budget(),
                     std::string(static_cast<size_t>(left), ' ') + std::string(s.text) +
                         std::string(static_cast<size_t>(pad - left), ' '),
                     s.is_markup);
}

Value filter_truncate(Interpreter& interpreter, const Value& self, const Arguments& arguments) {
  const Parameters parameters(arguments, {"length", "killwords", "end", "leeway"});
  require_defined(self);
  if (!self.is_string()) throw Fault("the truncate filter needs a string");
  Budget& budget = interpreter.budget();
  const std::string end = parameters.has(2) ? to_str(budget, parameters[2]) : "...";
  const int64_t length = parameters.integer(0, 255);
  const int64_t leeway =
      parameters.has(3) && !parameters[3].is(Kind::kNone) ? parameters.integer(3, 5) : 5;
  const int64_t end_length = count_code_points(end);
  if (length < end_length) throw Fault("truncate: length is shorter than the end mark");
  if (leeway < 0) throw Fault("truncate: leeway is negative");
  if (self.as<StringObject>().length - leeway <= length) return self;
  std::string_view kept = self.text().substr(0, byte_offset(self.text(), length - end_length));
  if (!parameters.truth(1, false)) {
    const size_t space = find_last_text(kept, " ");
    if (space != std::string_view::npos) kept = kept.substr(0, space);
  }
  return make_string(budget, std::string(kept) + end);
}

Value filter_wordcount(Interpreter& interpreter, const Value& self, const Arguments& arguments) {
  const Parameters none(arguments, {});
  const Operand s(interpreter, self);
  interpreter.budget().spend_bytes(s.text.size());
  int64_t words = 0;
  bool in_word = false;
  for (size_t at = 0; at < s.text.size();) {
    const char32_t c = next_code_point(s.text, at);
    const bool part = c == '_' || is_alphabetic(c) || is_numeric(c);
    words += part && !in_word;
    in_word = part;
  }
  return Value(words);
}

Value filter_format(Interpreter& interpreter, const Value& self, const Arguments& arguments) {
  Budget& budget = interpreter.budget();
  const Operand s(interpreter, self);
  if (!arguments.named.empty() && !arguments.positional.empty()) {
    throw Fault("format takes positional or keyword arguments, not both");
  }
  if (arguments.named.empty()) {
    return make_string(budget,
                       format_percent(budget, s.text, make_tuple(budget, arguments.positional)));
  }
  std::vector<std::pair<Value, Value>> entries;
  for (const auto& [name, value] : arguments.named) {
    entries.emplace_back(make_string(budget, name), value);
  }
  return make_string(budget, format_percent(budget, s.text, make_dict(budget, std::move(entries))));
}

Value filter_striptags(Interpreter& interpreter, const Value& self, const Arguments& arguments) {
  const Parameters none(arguments, {});
  Budget& budget = interpreter.budget();
  std::string text = to_str(budget, self);
  std::string kept;
  for (size_t at = 0; at < text.size();) {
    // Comments first, then tags; what is not closed stays.
    const bool comment = text.compare(at, 4, "<!--") == 0;
    if (text[at] == '<') {
      const size_t close = comment ? text.find("-->", at) : text.find('>', at + 1);
      if (close != std::string::npos) {
        at = close + (comment ? 3 : 1);
        continue;
      }
      kept.append(text, at);
      break;
    }
    kept += text[at++];
  }
  std::string out;
  for (const auto word : split_space(kept, -1)) {
    if (!out.empty()) out += ' ';
    out += word;
  }
  if (out.find('&') != std::string::npos) {
    throw Fault("striptags with character references is not supported", Fault::Kind::kUnsupported);
  }
  return make_string(budget, std::move(out));
}

std::string quote_url(std::string_view text, bool for_query) {
  std::string out;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (std::isalnum(byte) || c == '_' || c == '.' || c == '-' || c == '~' ||
        (c == '/' && !for_query)) {
      out += c;
    } else if (c == ' ' && for_query) {
      out += '+';
    } else {
      out += fmt::format("%{:02X}", byte);
    }
  }
  return out;
}

Value filter_urlencode(Interpreter& interpreter, const Value& self, const Arguments& arguments) {
  const Parameters none(arguments, {});
  Budget& budget = interpreter.budget();
  if (self.is_string() || !is_iterable(self)) {
    const std::string text = to_str(budget, self);
    budget.check_room(3 * text.size());
    return make_string(budget, quote_url(text, false));
  }
  std::string out;
  const Value pairs = self.is(Kind::kDict)
                          ? Value(Kind::kDictView, std::make_shared<DictViewObject>(
                                                       &budget, self, DictViewObject::Part::kItems))
                          : self;
  for (const auto& pair : to_vector(budget, pairs)) {
    const auto parts = to_vector(budget, pair);
    if (parts.size() != 2) throw Fault("urlencode needs pairs");
    if (!out.empty()) out += '&';
    out +=
        quote_url(to_str(budget, parts[0]), true) + "=" + quote_url(to_str(budget, parts[1]), true);
    budget.check_room(out.size());
  }
  return make_string(budget, std::move(out));
}

Value filter_xmlattr(Interpreter& interpreter, const Value& self, const Arguments& arguments) {
  const Parameters parameters(arguments, {"autospace"});
  if (!self.is(Kind::kDict)) throw Fault("xmlattr needs a mapping");
  Budget& budget = interpreter.budget();
  std::string out;
  for (const auto& [key, value] : self.as<DictObject>().entries) {
    if (value.is(Kind::kNone) || value.is_undefined()) continue;
    if (!key.is_string() || key.text().find_first_of(" \t\n\r\f\v/>=") != std::string_view::npos) {
      throw Fault("invalid character in attribute name");
    }
    const std::string text = to_str(budget, value);
    const bool safe = value.is_string() && value.as<StringObject>().is_markup;
    if (!out.empty() || parameters.truth(0, true)) out += ' ';
    out += escape_html(key.text()) + "=\"" + (safe ? text : escape_html(text)) + "\"";
    budget.check_room(out.size());
  }
  return make_string(budget, std::move(out));
}

Value filter_filesizeformat(Interpreter& interpreter, const Value& self,
                            const Arguments& arguments) {
  const Parameters parameters(arguments, {"binary"});
  const Value number = interpreter.call_filter("float", self, {});
  const double bytes = number.real();
  const bool binary = parameters.truth(0, false);
  const double base = binary ? 1024 : 1000;
  std::string text;
  if (bytes == 1) {
    text = "1 Byte";
  } else if (bytes < base) {
    text = fmt::format("{} Bytes", static_cast<int64_t>(bytes));
  } else {
    constexpr std::string_view kPrefixes = "kMGTPEZY";
    double unit = base;
    size_t i = 0;
    do {
      unit *= base;
    } while (bytes >= unit && ++i < kPrefixes.size() - 1);
    const char prefix = binary && i == 0 ? 'K' : kPrefixes[i];
    text = fmt::format("{:.1f} {}{}", base * bytes / unit, prefix, binary ? "iB" : "B");
  }
  return make_string(interpreter.budget(), std::move(text));
}

Value unsupported(Interpreter&, const Value&, const Arguments&) {
  throw Fault("the filters pprint, random, urlize and wordwrap are not supported",
              Fault::Kind::kUnsupported);
}

constexpr NamedBuiltin kFilters[] = {
    {"capitalize", mapped<to_capitalized>},
    {"center", filter_center},
    {"e", filter_escape},
    {"escape", filter_escape},
    {"filesizeformat", filter_filesizeformat},
    {"forceescape", filter_forceescape},
    {"format", filter_format},
    {"indent", filter_indent},
    {"lower", mapped<to_lower>},
    {"pprint", unsupported},
    {"random", unsupported},
    {"replace", filter_replace},
    {"safe", filter_safe},
    {"string", filter_string},
    {"striptags", filter_striptags},
    {"title", mapped<title_of>},
    {"tojson", filter_tojson},
    {"trim", filter_trim},
    {"truncate", filter_truncate},
    {"upper", mapped<to_upper>},
    {"urlencode", filter_urlencode},
    {"urlize", unsupported},
    {"wordcount", filter_wordcount},
    {"wordwrap", unsupported},
    {"xmlattr", filter_xmlattr},
};

}  // namespace

const NamedBuiltin* find_text_filter(std::string_view name) { return find_builtin(kFilters, name); }

const NamedBuiltin* find_filter(std::string_view name) {
  for (const auto find :
       {find_text_filter, find_sequence_filter, find_selecting_filter, find_number_filter}) {
    if (const auto* filter = find(name)) return filter;
  }
  return nullptr;
}

}  // namespace limpid::jinja
