// Methods of str. They take their arguments by position, as in Python, and a string marked as safe
// stays so.
#include <algorithm>

#include "jinja/builtins.h"
#include "jinja/operators.h"
#include "jinja/unicode_text.h"

namespace limpid::jinja {
namespace {

template <Side side>
// strip, lstrip and rstrip: of white space, or of a set of characters.
Value stripped(BuiltinCall& call) {
  std::optional<std::string_view> characters;
  if (call.has_value(0)) characters = call.string(0);
  return call.part(strip(call.self.text(), side, characters));
}

// split() at runs of white space, split(separator) at each separator; at most `maxsplit` times.
Value method_split(BuiltinCall& call) {
  const std::string_view text = call.self.text();
  const int64_t limit = call.integer(1, -1);
  call.budget.check_room(text.size() * sizeof(std::string_view));
  if (call.has_value(0) && call.string(0).empty()) fail("empty separator");
  const auto pieces =
      call.has_value(0) ? split_text(text, call.string(0), limit) : split_space(text, limit);
  std::vector<Value> items;
  items.reserve(pieces.size());
  for (const auto piece : pieces) items.push_back(call.part(piece));
  return make_list(call.budget, std::move(items));
}

// The bytes of self[start:end]; nothing when the start lies after the end.
std::optional<std::string_view> window(const BuiltinCall& call) {
  const int64_t length = call.self.as<StringObject>().length;
  const auto bound = [&](size_t i, int64_t otherwise) {
    const int64_t index = call.integer(i, otherwise);
    return index < 0 ? std::max<int64_t>(index + length, 0) : index;
  };
  const int64_t start = bound(1, 0);
  const int64_t stop = std::min(bound(2, length), length);
  if (start > stop) return std::nullopt;
  const std::string_view text = call.self.text().substr(byte_offset(call.self.text(), start));
  return text.substr(0, byte_offset(text, stop - start));
}

// startswith and endswith: a string, or a tuple of which one has to match.
template <bool at_end>
Value affix(BuiltinCall& call) {
  const auto where = window(call);
  const auto matches = [&](const Value& candidate) {
    require_defined(candidate);
    if (!candidate.is_string()) fail("must be str, not {}", python_type_name(candidate));
    if (!where) return false;
    return at_end ? where->ends_with(candidate.text()) : where->starts_with(candidate.text());
  };
  if (!call[0].is(Kind::kTuple)) return Value(matches(call[0]));
  const auto& candidates = call[0].as<SequenceObject>().items;
  call.budget.spend(static_cast<int64_t>(candidates.size()));
  return Value(std::any_of(candidates.begin(), candidates.end(), matches));
}

// In a text that is marked as safe, what is put in is escaped; it might come from a user.
Value method_replace(BuiltinCall& call) {
  const std::string_view old = call.string(0);
  call.string(1);
  TracedText with(call[1].traced());
  if (call.self.as<StringObject>().is_markup) with = escape_html(with);
  return call.text(replace_text(call.budget, call.self.traced(), old, with, call.integer(2, -1)));
}

// Unlike the filter, the method takes only strings.
Value method_join(BuiltinCall& call) {
  require_defined(call[0]);
  TracedText out;
  bool is_first = true;
  for (const auto& item : to_vector(call.budget, call[0])) {
    if (!item.is_string()) {
      fail("sequence item: expected str instance, {} found", python_type_name(item));
    }
    if (!std::exchange(is_first, false)) append_checked(call.budget, out, call.self.traced());
    append_checked(call.budget, out, item.traced());
  }
  return call.text(std::move(out));
}

constexpr auto kByPosition = Builtin::Passing::kByPosition;
constexpr Builtin kTable[] = {
    {"capitalize", in_case<to_capitalized>},
    {"endswith", affix<true>, {"suffix", "start", "end"}, 1, kByPosition},
    {"format", method_format, {}, 0, Builtin::Passing::kAny},
    {"join", method_join, {"iterable"}, 1, kByPosition},
    {"lower", in_case<to_lower>},
    {"lstrip", stripped<Side::kLeft>, {"chars"}, 0, kByPosition},
    {"replace", method_replace, {"old", "new", "count"}, 2, kByPosition},
    {"rstrip", stripped<Side::kRight>, {"chars"}, 0, kByPosition},
    {"split", method_split, {"sep", "maxsplit"}},
    {"startswith", affix<false>, {"prefix", "start", "end"}, 1, kByPosition},
    {"strip", stripped<Side::kBoth>, {"chars"}, 0, kByPosition},
    {"title", in_case<to_title>},
    {"upper", in_case<to_upper>},
};

}  // namespace

const std::span<const Builtin> kStringMethods = kTable;

}  // namespace limpid::jinja
