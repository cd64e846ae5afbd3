// Filters that make text.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "jinja/builtins.h"
#include "jinja/interpreter.h"
#include "jinja/operators.h"
#include "jinja/unicode_text.h"

namespace limpid::jinja {
namespace {

// The operand as text (markupsafe.soft_str) and whether it stays marked as safe.
struct Operand {
  Operand(Interpreter& interpreter, const Value& self)
      : value(str_value(interpreter.budget(), self)),
        text(value.traced()),
        is_markup(value.as<StringObject>().is_markup) {}
  const Value value;
  const TracedView text;
  const bool is_markup;
};

template <TracedText (*map)(TracedView)>
Value mapped(Interpreter& interpreter, const Value& self, const Arguments& arguments) {
  const Parameters none(arguments, {});
  const Operand s(interpreter, self);
  interpreter.budget().check_room(4 * s.text.memory());
  return make_string(interpreter.budget(), map(s.text), s.is_markup);
}

bool begins_word(char32_t c) {
  return c == '-' || c == '(' || c == '{' || c == '[' || c == '<' || is_space(c);
}

// The filter's own idea of a title: words begin behind white space, brackets and hyphens.
TracedText title_of(TracedView traced) {
  const std::string_view text = traced.bytes();
  TracedText out;
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
    out.append(to_upper(traced.part(word.substr(0, first))));
    out.append(to_lower(traced.part(word.substr(first))));
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
  return make_string(interpreter.budget(), Operand(interpreter, self).text, true);
}

Value filter_forceescape(Interpreter& interpreter, const Value& self, const Arguments& arguments) {
  const Parameters none(arguments, {});
  const Operand s(interpreter, self);
  interpreter.budget().check_room(5 * s.text.memory());
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
  return make_string(interpreter.budget(),
                     s.text.part(strip(s.text.bytes(), Side::kBoth, characters)), s.is_markup);
}

Value filter_replace(Interpreter& interpreter, const Value& self, const Arguments& arguments) {
  const Parameters parameters(arguments, {"old", "new", "count"}, 2);
  Budget& budget = interpreter.budget();
  const int64_t count =
      parameters.has(2) && !parameters[2].is(Kind::kNone) ? parameters.integer(2, -1) : -1;
  const TracedText text = to_str(budget, self);
  const TracedText old = to_str(budget, parameters[0]);
  const TracedText with = to_str(budget, parameters[1]);
  return make_string(budget, replace_text(budget, text, old.bytes(), with, count));
}

TracedText indentation(Interpreter& interpreter, const Parameters& parameters) {
  if (parameters.has(0) && parameters[0].is_string()) return TracedText(parameters[0].traced());
  const int64_t width = std::max<int64_t>(parameters.integer(0, 4), 0);
  interpreter.budget().check_room(static_cast<size_t>(width));
  return {std::string(static_cast<size_t>(width), ' '), Origin::kData};
}

Value filter_indent(Interpreter& interpreter, const Value& self, const Arguments& arguments) {
  const Parameters parameters(arguments, {"width", "first", "blank"});
  require_defined(self);
  if (!self.is_string()) throw Fault("the indent filter needs a string");
  Budget& budget = interpreter.budget();
  const TracedText indent = indentation(interpreter, parameters);
  TracedText text(self.traced());
  text.append("\n", Origin::kData);
  const auto lines = split_lines(text.bytes(), false);
  budget.check_room(text.size() + lines.size() * sizeof(std::string_view));
  budget.spend_bytes(text.size() + lines.size() * indent.size());
  TracedText out = parameters.truth(1, false) ? indent : TracedText();
  const bool blank = parameters.truth(2, false);
  for (size_t i = 0; i < lines.size(); ++i) {
    if (i > 0) {
      out.append("\n", Origin::kData);
      if (blank || !lines[i].empty()) append_checked(budget, out, indent);
    }
    append_checked(budget, out, TracedView(text).part(lines[i]));
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
  interpreter.budget().check_room(s.text.memory() + 2 * sizeof(size_t) + static_cast<size_t>(pad));
  const int64_t left = pad / 2 + (pad & width & 1);  // as CPython divides an odd margin
  TracedText out(std::string(static_cast<size_t>(left), ' '), Origin::kData);
  out.append(s.text);
  out.append(std::string(static_cast<size_t>(pad - left), ' '), Origin::kData);
  return make_string(interpreter.budget(), std::move(out), s.is_markup);
}

Value filter_truncate(Interpreter& interpreter, const Value& self, const Arguments& arguments) {
  const Parameters parameters(arguments, {"length", "killwords", "end", "leeway"});
  require_defined(self);
  if (!self.is_string()) throw Fault("the truncate filter needs a string");
  Budget& budget = interpreter.budget();
  const TracedText end =
      parameters.has(2) ? to_str(budget, parameters[2]) : TracedText("...", Origin::kData);
  const int64_t length = parameters.integer(0, 255);
  const int64_t leeway =
      parameters.has(3) && !parameters[3].is(Kind::kNone) ? parameters.integer(3, 5) : 5;
  const int64_t end_length = count_code_points(end.bytes());
  if (length < end_length) throw Fault("truncate: length is shorter than the end mark");
  if (leeway < 0) throw Fault("truncate: leeway is negative");
  if (self.as<StringObject>().length - leeway <= length) return self;
  std::string_view kept = self.text().substr(0, byte_offset(self.text(), length - end_length));
  if (!parameters.truth(1, false)) {
    const size_t space = find_last_text(kept, " ");
    if (space != std::string_view::npos) kept = kept.substr(0, space);
  }
  TracedText out(self.traced().part(kept));
  append_checked(budget, out, end);
  return make_string(budget, std::move(out));
}

Value filter_wordcount(Interpreter& interpreter, const Value& self, const Arguments& arguments) {
  const Parameters none(arguments, {});
  const Operand s(interpreter, self);
  int64_t words = 0;
  bool in_word = false;
  for (size_t at = 0; at < s.text.size();) {
    const char32_t c = next_code_point(s.text.bytes(), at);
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
    entries.emplace_back(make_string(budget, TracedView(name, Origin::kData)), value);
  }
  return make_string(budget, format_percent(budget, s.text, make_dict(budget, std::move(entries))));
}

Value filter_striptags(Interpreter& interpreter, const Value& self, const Arguments& arguments) {
  const Parameters none(arguments, {});
  Budget& budget = interpreter.budget();
  const TracedText traced = to_str(budget, self);
  const std::string& text = traced.bytes();
  TracedText kept;
  for (size_t at = 0; at < text.size();) {
    // Comments first, then tags; what is not closed stays.
    const bool comment = text.compare(at, 4, "<!--") == 0;
    if (text[at] == '<') {
      const size_t close = comment ? text.find("-->", at) : text.find('>', at + 1);
      if (close != std::string::npos) {
        at = close + (comment ? 3 : 1);
        continue;
      }
      kept.append(TracedView(traced).part(std::string_view(text).substr(at)));
      break;
    }
    kept.append(TracedView(traced).part(std::string_view(text).substr(at++, 1)));
  }
  TracedText out;
  for (const auto word : split_space(kept.bytes(), -1)) {
    if (!out.empty()) out.append(" ", Origin::kData);
    out.append(TracedView(kept).part(word));
  }
  if (out.bytes().find('&') != std::string::npos) {
    throw Fault("striptags with character references is not supported", Fault::Kind::kUnsupported);
  }
  return make_string(budget, std::move(out));
}

void append_quoted_url(Budget& budget, TracedText& out, TracedView text, bool for_query) {
  budget.check_room(out.memory() + 3 * text.memory() + sizeof(size_t));
  text.for_each_run([&](std::string_view run, Origin origin) {
    out.append_with(origin, [&](std::string& written) {
      for (const char c : run) {
        const auto byte = static_cast<unsigned char>(c);
        if (std::isalnum(byte) || c == '_' || c == '.' || c == '-' || c == '~' ||
            (c == '/' && !for_query)) {
          written += c;
        } else if (c == ' ' && for_query) {
          written += '+';
        } else {
          written += fmt::format("%{:02X}", byte);
        }
      }
    });
  });
}

Value filter_urlencode(Interpreter& interpreter, const Value& self, const Arguments& arguments) {
  const Parameters none(arguments, {});
  Budget& budget = interpreter.budget();
  TracedText out;
  if (self.is_string() || !is_iterable(self)) {
    append_quoted_url(budget, out, to_str(budget, self), false);
    return make_string(budget, std::move(out));
  }
  const Value pairs = self.is(Kind::kDict)
                          ? Value(Kind::kDictView, std::make_shared<DictViewObject>(
                                                       &budget, self, DictViewObject::Part::kItems))
                          : self;
  for (const auto& pair : to_vector(budget, pairs)) {
    const auto parts = to_vector(budget, pair);
    if (parts.size() != 2) throw Fault("urlencode needs pairs");
    if (!out.empty()) out.append("&", Origin::kData);
    append_quoted_url(budget, out, to_str(budget, parts[0]), true);
    out.append("=", Origin::kData);
    append_quoted_url(budget, out, to_str(budget, parts[1]), true);
  }
  return make_string(budget, std::move(out));
}

Value filter_xmlattr(Interpreter& interpreter, const Value& self, const Arguments& arguments) {
  const Parameters parameters(arguments, {"autospace"});
  if (!self.is(Kind::kDict)) throw Fault("xmlattr needs a mapping");
  Budget& budget = interpreter.budget();
  TracedText out;
  for (const auto& [key, value] : self.as<DictObject>().entries) {
    if (value.is(Kind::kNone) || value.is_undefined()) continue;
    if (!key.is_string() || key.text().find_first_of(" \t\n\r\f\v/>=") != std::string_view::npos) {
      throw Fault("invalid character in attribute name");
    }
    const TracedText text = to_str(budget, value);
    const bool safe = value.is_string() && value.as<StringObject>().is_markup;
    if (!out.empty() || parameters.truth(0, true)) out.append(" ", Origin::kData);
    append_checked(budget, out, escape_html(key.traced()));
    out.append("=\"", Origin::kData);
    append_checked(budget, out, safe ? text : escape_html(text));
    out.append("\"", Origin::kData);
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
  return make_string(interpreter.budget(), TracedText(std::move(text), Origin::kData));
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
