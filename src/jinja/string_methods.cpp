// Methods of str.
#include <algorithm>

#include "jinja/builtins.h"
#include "jinja/interpreter.h"
#include "jinja/operators.h"
#include "jinja/unicode_text.h"

namespace limpid::jinja {
namespace {

Value text_like(Interpreter& interpreter, const Value& self, TracedText text) {
  return make_string(interpreter.budget(), std::move(text), self.as<StringObject>().is_markup);
}

// `cut` shows a part of the text of `self`.
Value part_of(Interpreter& interpreter, const Value& self, std::string_view cut) {
  return make_string(interpreter.budget(), self.traced().part(cut),
                     self.as<StringObject>().is_markup);
}

// Methods take their arguments by position only; `names` is what messages call them.
void require_positional(const Arguments& arguments) {
  if (!arguments.named.empty()) throw Fault("the method takes no keyword arguments");
}

std::string_view text_argument(const Value& value) {
  require_defined(value);
  if (!value.is_string()) {
    throw Fault("must be str, not " + std::string(python_type_name(value)));
  }
  return value.text();
}

template <TracedText (*map)(TracedView)>
Value mapped(Interpreter& interpreter, const Value& self, const Arguments& arguments) {
  const Parameters none(arguments, {});
  interpreter.budget().check_room(4 * self.traced().memory());
  return text_like(interpreter, self, map(self.traced()));
}

template <Side side>
Value stripped(Interpreter& interpreter, const Value& self, const Arguments& arguments) {
  require_positional(arguments);
  const Parameters parameters(arguments, {"chars"});
  std::optional<std::string_view> characters;
  if (parameters.has(0) && !parameters[0].is(Kind::kNone))
    characters = text_argument(parameters[0]);
  return part_of(interpreter, self, strip(self.text(), side, characters));
}

Value pieces_to_list(Interpreter& interpreter, const Value& self,
                     const std::vector<std::string_view>& pieces) {
  std::vector<Value> items;
  items.reserve(pieces.size());
  for (const auto piece : pieces) items.push_back(part_of(interpreter, self, piece));
  return make_list(interpreter.budget(), std::move(items));
}

template <bool from_right>
Value split(Interpreter& interpreter, const Value& self, const Arguments& arguments) {
  const Parameters parameters(arguments, {"sep", "maxsplit"});
  const int64_t limit = parameters.integer(1, -1);
  const std::string_view text = self.text();
  interpreter.budget().check_room(text.size() * sizeof(std::string_view));
  if (!parameters.has(0) || parameters[0].is(Kind::kNone)) {
    return pieces_to_list(interpreter, self,
                          from_right ? split_space_right(text, limit) : split_space(text, limit));
  }
  const std::string_view separator = text_argument(parameters[0]);
  if (separator.empty()) throw Fault("empty separator");
  return pieces_to_list(
      interpreter, self,
      from_right ? split_text_right(text, separator, limit) : split_text(text, separator, limit));
}

Value method_splitlines(Interpreter& interpreter, const Value& self, const Arguments& arguments) {
  const Parameters parameters(arguments, {"keepends"});
  interpreter.budget().check_room(self.text().size() * sizeof(std::string_view));
  return pieces_to_list(interpreter, self, split_lines(self.text(), parameters.truth(0, false)));
}

template <bool from_right>
Value partition(Interpreter& interpreter, const Value& self, const Arguments& arguments) {
  require_positional(arguments);
  const Parameters parameters(arguments, {"sep"}, 1);
  const std::string_view separator = text_argument(parameters[0]);
  if (separator.empty()) throw Fault("empty separator");
  const std::string_view text = self.text();
  const size_t hit = from_right ? find_last_text(text, separator) : find_text(text, separator);
  std::string_view parts[] = {text, text.substr(0, 0), text.substr(0, 0)};
  if (hit != std::string_view::npos) {
    parts[0] = text.substr(0, hit);
    parts[1] = text.substr(hit, separator.size());
    parts[2] = text.substr(hit + separator.size());
  } else if (from_right) {
    std::swap(parts[0], parts[2]);
  }
  std::vector<Value> items;
  for (const auto part : parts) items.push_back(part_of(interpreter, self, part));
  return make_tuple(interpreter.budget(), std::move(items));
}

// The bytes of self[start:end], with where they begin; nothing when start lies behind the end.
struct Window {
  std::string_view text;
  size_t begin;
};
std::optional<Window> window(const Value& self, const Parameters& parameters, size_t first) {
  const auto& string = self.as<StringObject>();
  const auto bound = [&](size_t i, int64_t otherwise) {
    if (!parameters.has(i) || parameters[i].is(Kind::kNone)) return otherwise;
    const int64_t index = parameters.integer(i, 0);
    return index < 0 ? std::max<int64_t>(index + string.length, 0) : index;
  };
  const int64_t start = bound(first, 0);
  const int64_t stop = std::min(bound(first + 1, string.length), string.length);
  if (start > stop) return std::nullopt;
  const std::string_view text = self.text();
  const size_t begin = byte_offset(text, start);
  return Window{text.substr(begin, byte_offset(text.substr(begin), stop - start)), begin};
}

template <bool at_end>
Value affix(Interpreter& interpreter, const Value& self, const Arguments& arguments) {
  require_positional(arguments);
  const Parameters parameters(arguments, {"prefix", "start", "end"}, 1);
  const auto where = window(self, parameters, 1);
  const auto matches = [&](const Value& candidate) {
    const std::string_view part = text_argument(candidate);
    if (!where || part.size() > where->text.size()) return false;
    return where->text.substr(at_end ? where->text.size() - part.size() : 0, part.size()) == part;
  };
  if (!parameters[0].is(Kind::kTuple)) return Value(matches(parameters[0]));
  const auto& candidates = parameters[0].as<SequenceObject>().items;
  interpreter.budget().spend(static_cast<int64_t>(candidates.size()));
  return Value(std::any_of(candidates.begin(), candidates.end(), matches));
}

template <bool from_right, bool must_find>
Value find_in(Interpreter&, const Value& self, const Arguments& arguments) {
  require_positional(arguments);
  const Parameters parameters(arguments, {"sub", "start", "end"}, 1);
  const std::string_view part = text_argument(parameters[0]);
  const auto where = window(self, parameters, 1);
  const size_t hit = !where       ? std::string_view::npos
                     : from_right ? find_last_text(where->text, part)
                                  : find_text(where->text, part);
  if (hit == std::string_view::npos) {
    if (must_find) throw Fault("substring not found");
    return Value(int64_t{-1});
  }
  return Value(count_code_points(self.text().substr(0, where->begin + hit)));
}

Value method_count(Interpreter&, const Value& self, const Arguments& arguments) {
  require_positional(arguments);
  const Parameters parameters(arguments, {"sub", "start", "end"}, 1);
  const std::string_view part = text_argument(parameters[0]);
  const auto where = window(self, parameters, 1);
  if (!where) return Value(int64_t{0});
  if (part.empty()) return Value(count_code_points(where->text) + 1);
  int64_t count = 0;
  for (size_t at = find_text(where->text, part); at != std::string_view::npos;
       at = find_text(where->text, part, at + part.size())) {
    ++count;
  }
  return Value(count);
}

Value method_replace(Interpreter& interpreter, const Value& self, const Arguments& arguments) {
  require_positional(arguments);
  const Parameters parameters(arguments, {"old", "new", "count"}, 2);
  text_argument(parameters[1]);
  TracedText with(parameters[1].traced());
  if (self.as<StringObject>().is_markup) with = escape_html(with);
  return text_like(interpreter, self,
                   replace_text(interpreter.budget(), self.traced(), text_argument(parameters[0]),
                                with, parameters.integer(2, -1)));
}

Value method_join(Interpreter& interpreter, const Value& self, const Arguments& arguments) {
  require_positional(arguments);
  const Parameters parameters(arguments, {"iterable"}, 1);
  Budget& budget = interpreter.budget();
  require_defined(parameters[0]);
  TracedText out;
  bool first = true;
  const auto iterator = iterate(budget, parameters[0]);
  for (Value item; iterator->next(item);) {
    if (!item.is_string()) {
      throw Fault("sequence item: expected str instance, " + std::string(python_type_name(item)) +
                  " found");
    }
    budget.spend_bytes(item.text().size() + self.text().size());
    if (!first) append_checked(budget, out, self.traced());
    first = false;
    append_checked(budget, out, item.traced());
  }
  return text_like(interpreter, self, std::move(out));
}

template <bool at_end>
Value remove_affix(Interpreter& interpreter, const Value& self, const Arguments& arguments) {
  require_positional(arguments);
  const Parameters parameters(arguments, {"affix"}, 1);
  const std::string_view part = text_argument(parameters[0]);
  std::string_view text = self.text();
  if (at_end && text.ends_with(part)) text.remove_suffix(part.size());
  if (!at_end && text.starts_with(part)) text.remove_prefix(part.size());
  return part_of(interpreter, self, text);
}

template <bool (*check)(char32_t)>
Value all_of(Interpreter&, const Value& self, const Arguments& arguments) {
  const Parameters none(arguments, {});
  const std::string_view text = self.text();
  for (size_t at = 0; at < text.size();) {
    if (!check(next_code_point(text, at))) return Value(false);
  }
  return Value(!text.empty());
}

template <bool lower>
Value all_cased(Interpreter& interpreter, const Value& self, const Arguments& arguments) {
  const Parameters none(arguments, {});
  return Value(interpreter.call_test(lower ? "lower" : "upper", self, {}));
}

Value method_istitle(Interpreter&, const Value& self, const Arguments& arguments) {
  const Parameters none(arguments, {});
  const std::string_view text = self.text();
  bool in_word = false;
  bool any = false;
  for (size_t at = 0; at < text.size();) {
    const char32_t c = next_code_point(text, at);
    if (!is_cased(c)) {
      in_word = false;
      continue;
    }
    if (is_lowercase(c) != in_word) return Value(false);
    in_word = any = true;
  }
  return Value(any);
}

Value method_isascii(Interpreter&, const Value& self, const Arguments& arguments) {
  const Parameters none(arguments, {});
  return Value(self.as<StringObject>().length == static_cast<int64_t>(self.text().size()));
}

Value method_isidentifier(Interpreter& interpreter, const Value& self, const Arguments& arguments) {
  size_t at = 0;
  const bool starts = !self.text().empty() && is_identifier_start(next_code_point(self.text(), at));
  return Value(starts && is_true(all_of<is_identifier_part>(interpreter, self, arguments)));
}

bool is_alphanumeric(char32_t c) { return is_alphabetic(c) || is_numeric(c); }

enum class Align : uint8_t { kLeft, kRight, kCenter };
template <Align align>
Value padded(Interpreter& interpreter, const Value& self, const Arguments& arguments) {
  require_positional(arguments);
  const Parameters parameters(arguments, {"width", "fillchar"}, 1);
  if (parameters.has(1)) text_argument(parameters[1]);
  const TracedView fill =
      parameters.has(1) ? parameters[1].traced() : TracedView(" ", Origin::kData);
  if (count_code_points(fill.bytes()) != 1)
    throw Fault("the fill character must be exactly one character long");
  const int64_t width = parameters.integer(0, 0);
  const int64_t length = self.as<StringObject>().length;
  if (width <= length) return self;
  const int64_t pad = width - length;
  if (pad > INT64_MAX / 8) throw Fault("the template needs more memory than the limit allows");
  interpreter.budget().check_room(self.traced().memory() + 2 * sizeof(size_t) +
                                  static_cast<size_t>(pad) * fill.memory());
  const int64_t left = align == Align::kLeft    ? 0
                       : align == Align::kRight ? pad
                                                : pad / 2 + (pad & width & 1);
  TracedText out;
  for (int64_t i = 0; i < left; ++i) out.append(fill);
  out.append(self.traced());
  for (int64_t i = left; i < pad; ++i) out.append(fill);
  return text_like(interpreter, self, std::move(out));
}

Value method_zfill(Interpreter& interpreter, const Value& self, const Arguments& arguments) {
  require_positional(arguments);
  const Parameters parameters(arguments, {"width"}, 1);
  const int64_t pad = parameters.integer(0, 0) - self.as<StringObject>().length;
  if (pad <= 0) return self;
  interpreter.budget().check_room(self.traced().memory() + 2 * sizeof(size_t) +
                                  static_cast<size_t>(pad));
  const std::string_view text = self.text();
  const size_t sign = !text.empty() && (text[0] == '+' || text[0] == '-') ? 1 : 0;
  TracedText out(self.traced().part(text.substr(0, sign)));
  out.append(std::string(static_cast<size_t>(pad), '0'), Origin::kData);
  out.append(self.traced().part(text.substr(sign)));
  return text_like(interpreter, self, std::move(out));
}

Value unsupported(Interpreter&, const Value&, const Arguments&) {
  throw Fault("this method of str is not supported in a chat template", Fault::Kind::kUnsupported);
}

constexpr NamedBuiltin kMethods[] = {
    {"capitalize", mapped<to_capitalized>},
    {"casefold", unsupported},
    {"center", padded<Align::kCenter>},
    {"count", method_count},
    {"encode", unsupported},
    {"endswith", affix<true>},
    {"expandtabs", unsupported},
    {"find", find_in<false, false>},
    {"format", method_format},
    {"format_map", unsupported},
    {"index", find_in<false, true>},
    {"isalnum", all_of<is_alphanumeric>},
    {"isalpha", all_of<is_alphabetic>},
    {"isascii", method_isascii},
    {"isdecimal", all_of<is_decimal>},
    {"isdigit", all_of<is_digit>},
    {"isidentifier", method_isidentifier},
    {"islower", all_cased<true>},
    {"isnumeric", all_of<is_numeric>},
    {"isprintable", unsupported},
    {"isspace", all_of<is_space>},
    {"istitle", method_istitle},
    {"isupper", all_cased<false>},
    {"join", method_join},
    {"ljust", padded<Align::kLeft>},
    {"lower", mapped<to_lower>},
    {"lstrip", stripped<Side::kLeft>},
    {"maketrans", unsupported},
    {"partition", partition<false>},
    {"removeprefix", remove_affix<false>},
    {"removesuffix", remove_affix<true>},
    {"replace", method_replace},
    {"rfind", find_in<true, false>},
    {"rindex", find_in<true, true>},
    {"rjust", padded<Align::kRight>},
    {"rpartition", partition<true>},
    {"rsplit", split<true>},
    {"rstrip", stripped<Side::kRight>},
    {"split", split<false>},
    {"splitlines", method_splitlines},
    {"startswith", affix<false>},
    {"strip", stripped<Side::kBoth>},
    {"swapcase", mapped<to_swapped_case>},
    {"title", mapped<to_title>},
    {"translate", unsupported},
    {"upper", mapped<to_upper>},
    {"zfill", method_zfill},
};

}  // namespace

const NamedBuiltin* find_string_method(std::string_view name) {
  return find_builtin(kMethods, name);
}

TracedText replace_text(Budget& budget, TracedView text, std::string_view old, TracedView with,
                        int64_t count) {
  const std::string_view bytes = text.bytes();
  TracedText out;
  const auto keep = [&](std::string_view cut) { append_checked(budget, out, text.part(cut)); };
  size_t begin = 0;
  if (old.empty()) {  // between all code points, and at both ends
    while (count != 0) {
      append_checked(budget, out, with);
      if (count > 0) --count;
      if (begin >= bytes.size()) break;
      const size_t start = begin;
      next_code_point(bytes, begin);
      keep(bytes.substr(start, begin - start));
    }
    keep(bytes.substr(begin));
    return out;
  }
  while (count != 0) {
    const size_t hit = find_text(bytes, old, begin);
    if (hit == std::string_view::npos) break;
    keep(bytes.substr(begin, hit - begin));
    append_checked(budget, out, with);
    begin = hit + old.size();
    if (count > 0) --count;
  }
  keep(bytes.substr(begin));
  return out;
}

}  // namespace limpid::jinja
