#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "jinja/builtins.h"
#include "jinja/operators.h"
#include "jinja/unicode_text.h"

namespace limpid::jinja {
namespace {

constexpr int kMaxJsonDepth = 190;

// Messages and tools are passed as JSON. Their text, keys included, is data: a user or a tool wrote
// it.
Value from_json(Budget& budget, const nlohmann::ordered_json& json, int depth) {
  if (depth > kMaxJsonDepth) fail("the messages are nested too deeply");
  if (json.is_boolean()) return Value(json.get<bool>());
  if (json.is_number_float()) return Value(json.get<double>());
  if (json.is_number_unsigned() && json.get<uint64_t>() > static_cast<uint64_t>(INT64_MAX)) {
    fail("an integer in the messages needs more than 64 bits");
  }
  if (json.is_number()) return Value(json.get<int64_t>());
  if (json.is_string()) {
    return make_string(budget, TracedView(json.get_ref<const std::string&>(), Origin::kData));
  }
  if (json.is_array()) {
    std::vector<Value> items;
    items.reserve(json.size());
    for (const auto& item : json) items.push_back(from_json(budget, item, depth + 1));
    return make_list(budget, std::move(items));
  }
  if (!json.is_object()) return {};
  std::vector<std::pair<Value, Value>> entries;
  for (const auto& [key, value] : json.items()) {
    entries.emplace_back(make_string(budget, TracedView(key, Origin::kData)),
                         from_json(budget, value, depth + 1));
  }
  return make_dict(budget, std::move(entries));
}

// json.dumps. Prompts with tools are JSON inside of text, and a model sees every blank of it, so
// separators, escapes and the order of keys follow Python to the byte: ", " and ": " on one line,
// "," before a line break with `indent`, \uXXXX only with `ensure_ascii`, keys as they came unless
// `sort_keys`.
class JsonWriter {
 public:
  // The arguments of tojson.
  struct Style {
    bool ascii_only = false;
    std::optional<TracedText> indent;
    TracedText item_separator, key_separator;
    bool sort_keys = false;
  };
  JsonWriter(Budget& budget, Style style) : budget_(budget), style_(std::move(style)) {}

  TracedText write(const Value& value) {
    put(value, 0);
    return std::move(out_);
  }

 private:
  void put(const Value& value, size_t level) {
    budget_.spend(1);
    budget_.check_room(out_.memory());
    if (value.is_string()) return string(value.traced());
    if (value.is(Kind::kDict)) return dict(value.as<DictObject>(), level);
    if (!value.is(Kind::kList) && !value.is(Kind::kTuple)) return own(scalar(value));
    enclosed("[", value.as<SequenceObject>().items, "]", level,
             [&](const Value& item) { put(item, level + 1); });
  }

  // A value that is one word, as a value or as a key.
  static std::string scalar(const Value& value) {
    if (value.is(Kind::kNone)) return "null";
    if (value.is(Kind::kBool)) return value.integer() ? "true" : "false";
    if (value.is(Kind::kInt)) return std::to_string(value.integer());
    if (value.is(Kind::kFloat)) return number(value.real());
    fail("object of type {} is not JSON serializable", python_type_name(value));
  }

  static std::string number(double value) {
    if (std::isnan(value)) return "NaN";
    if (std::isinf(value)) return value < 0 ? "-Infinity" : "Infinity";
    return float_repr(value);
  }

  // With an indent every item has a line of its own, after as many indents as there are brackets
  // open.
  void newline(size_t level) {
    if (!style_.indent) return;
    own("\n");
    for (size_t i = 0; i < level; ++i) append_checked(budget_, out_, *style_.indent);
  }

  // The items between brackets, of which `write` writes each.
  template <typename Items, typename Write>
  void enclosed(std::string_view open, const Items& items, std::string_view close, size_t level,
                Write write) {
    own(open);
    bool is_first = true;
    for (const auto& item : items) {
      if (!std::exchange(is_first, false)) append_checked(budget_, out_, style_.item_separator);
      newline(level + 1);
      write(item);
    }
    if (!items.empty()) newline(level);
    own(close);
  }

  // A key is always a string in JSON: 1 becomes "1" and none becomes "null".
  void dict(const DictObject& dict, size_t level) {
    std::vector<std::pair<Value, Value>> entries = dict.entries;
    if (style_.sort_keys) {
      std::stable_sort(entries.begin(), entries.end(), [&](const auto& a, const auto& b) {
        return compare(budget_, Comparison::kLt, a.first, b.first);
      });
    }
    enclosed("{", entries, "}", level, [&](const auto& entry) {
      const auto& [key, value] = entry;
      string(key.is_string() ? key.traced() : TracedView(scalar(key), Origin::kData));
      append_checked(budget_, out_, style_.key_separator);
      put(value, level + 1);
    });
  }

  // Writes one character of a string; `shown` is how the text writes `c`. Characters beyond the
  // basic plane become two surrogates when only ASCII is allowed: U+1F600 is \ud83d\ude00.
  void append_character(std::string& out, char32_t c, std::string_view shown) const {
    constexpr std::string_view kEscaped = "\"\\\n\r\t\f\b";
    constexpr std::string_view kLetters = "\"\\nrtfb";
    const size_t escape = c < 0x80 ? kEscaped.find(static_cast<char>(c)) : std::string_view::npos;
    if (escape != std::string_view::npos) {
      out += '\\';
      out += kLetters[escape];
    } else if (c < 0x20 || (style_.ascii_only && c > 0x7E && c < 0x10000)) {
      out += fmt::format("\\u{:04x}", uint32_t{c});
    } else if (style_.ascii_only && c >= 0x10000) {
      out += fmt::format("\\u{:04x}\\u{:04x}", 0xD800 + ((c - 0x10000) >> 10),
                         0xDC00 + ((c - 0x10000) & 0x3FF));
    } else {
      out += shown;
    }
  }

  // An escape has the origin of its character.
  void string(TracedView traced) {
    const std::string_view text = traced.bytes();
    budget_.spend_bytes(text.size());
    budget_.check_room(out_.memory() + 6 * traced.memory());
    own("\"");
    for_each_code_point(text, [&](char32_t c, std::string_view shown) {
      out_.append_with(traced.origin(shown),
                       [&](std::string& out) { append_character(out, c, shown); });
    });
    own("\"");
  }

  // Text that the writer itself adds: punctuation, numbers.
  void own(std::string_view text) { out_.append(text, Origin::kData); }

  Budget& budget_;
  const Style style_;
  TracedText out_;
};

}  // namespace

Value from_json(Budget& budget, const nlohmann::ordered_json& json) {
  return from_json(budget, json, 0);
}

// json.dumps with the arguments that transformers passes on.
Value filter_tojson(BuiltinCall& call) {
  JsonWriter::Style style;
  style.ascii_only = call.truth(0, false);
  style.sort_keys = call.truth(3, false);
  if (call.has_value(1)) style.indent = indentation(call, 1, 0);
  style.item_separator = {style.indent ? "," : ", ", Origin::kData};
  style.key_separator = {": ", Origin::kData};
  if (call.has_value(2)) {
    const auto parts = to_vector(call.budget, call[2]);
    if (parts.size() != 2 || !parts[0].is_string() || !parts[1].is_string()) {
      fail("the separators of tojson must be two strings");
    }
    style.item_separator = TracedText(parts[0].traced());
    style.key_separator = TracedText(parts[1].traced());
  }
  return make_string(call.budget, JsonWriter(call.budget, std::move(style)).write(call.self));
}

}  // namespace limpid::jinja
