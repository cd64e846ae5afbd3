#include "jinja/json_values.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "jinja/builtins.h"
#include "jinja/interpreter.h"
#include "jinja/operators.h"
#include "jinja/unicode_text.h"

namespace limpid::jinja {
namespace {

constexpr int kMaxJsonDepth = 190;

Value from_json(Budget& budget, const nlohmann::ordered_json& json, int depth) {
  using Type = nlohmann::ordered_json::value_t;
  if (depth > kMaxJsonDepth) throw Fault("the messages are nested too deeply");
  switch (json.type()) {
    case Type::boolean:
      return Value(json.get<bool>());
    case Type::number_integer:
      return Value(json.get<int64_t>());
    case Type::number_unsigned:
      if (json.get<uint64_t>() > static_cast<uint64_t>(INT64_MAX)) {
        throw Fault("an integer in the messages needs more than 64 bits");
      }
      return Value(json.get<int64_t>());
    case Type::number_float:
      return Value(json.get<double>());
    case Type::string:
      return make_string(budget, TracedView(json.get_ref<const std::string&>(), Origin::kData));
    case Type::array: {
      std::vector<Value> items;
      items.reserve(json.size());
      for (const auto& item : json) items.push_back(from_json(budget, item, depth + 1));
      return make_list(budget, std::move(items));
    }
    case Type::object: {
      std::vector<std::pair<Value, Value>> entries;
      for (const auto& [key, value] : json.items()) {
        entries.emplace_back(make_string(budget, TracedView(key, Origin::kData)),
                             from_json(budget, value, depth + 1));
      }
      return make_dict(budget, std::move(entries));
    }
    default:
      return {};
  }
}

class JsonWriter {
 public:
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
    switch (value.kind()) {
      case Kind::kNone:
        own("null");
        return;
      case Kind::kBool:
        own(value.integer() ? "true" : "false");
        return;
      case Kind::kInt:
        own(std::to_string(value.integer()));
        return;
      case Kind::kFloat:
        own(number(value.real()));
        return;
      case Kind::kString:
        string(value.traced());
        return;
      case Kind::kList:
      case Kind::kTuple:
        list(value.as<SequenceObject>().items, level);
        return;
      case Kind::kDict:
        dict(value.as<DictObject>(), level);
        return;
      default:
        break;
    }
    throw Fault("object of type " + std::string(python_type_name(value)) +
                " is not JSON serializable");
  }

  static std::string number(double value) {
    if (std::isnan(value)) return "NaN";
    if (std::isinf(value)) return value < 0 ? "-Infinity" : "Infinity";
    return float_repr(value);
  }

  void newline(size_t level) {
    if (!style_.indent) return;
    budget_.spend_bytes(level * style_.indent->size());
    own("\n");
    for (size_t i = 0; i < level; ++i) append_checked(budget_, out_, *style_.indent);
  }

  void separate() {
    budget_.spend_bytes(style_.item_separator.size());
    append_checked(budget_, out_, style_.item_separator);
  }

  void list(const std::vector<Value>& items, size_t level) {
    own("[");
    for (size_t i = 0; i < items.size(); ++i) {
      if (i > 0) separate();
      newline(level + 1);
      put(items[i], level + 1);
    }
    if (!items.empty()) newline(level);
    own("]");
  }

  void dict(const DictObject& dict, size_t level) {
    std::vector<std::pair<Value, Value>> entries = dict.entries;
    if (style_.sort_keys) {
      std::stable_sort(entries.begin(), entries.end(), [&](const auto& a, const auto& b) {
        return compare(budget_, Comparison::kLt, a.first, b.first);
      });
    }
    own("{");
    bool first = true;
    for (const auto& [key, value] : entries) {
      if (!first) separate();
      first = false;
      newline(level + 1);
      if (key.is_string()) {
        string(key.traced());
      } else {
        string({key_text(key), Origin::kData});
      }
      budget_.spend_bytes(style_.key_separator.size());
      append_checked(budget_, out_, style_.key_separator);
      put(value, level + 1);
    }
    if (!entries.empty()) newline(level);
    own("}");
  }

  static std::string key_text(const Value& key) {
    switch (key.kind()) {
      case Kind::kNone:
        return "null";
      case Kind::kBool:
        return key.integer() ? "true" : "false";
      case Kind::kInt:
        return std::to_string(key.integer());
      case Kind::kFloat:
        return number(key.real());
      default:
        break;
    }
    throw Fault("keys must be str, int, float, bool or None, not " +
                std::string(python_type_name(key)));
  }

  static void append_unit(std::string& out, char32_t unit) {
    constexpr char kDigits[] = "0123456789abcdef";
    out += "\\u";
    for (int shift = 12; shift >= 0; shift -= 4) out += kDigits[unit >> shift & 0xF];
  }

  // `shown` is how the text writes `c`.
  void append_character(std::string& out, char32_t c, std::string_view shown) const {
    constexpr std::string_view kEscaped = "\"\\\n\r\t\f\b";
    constexpr std::string_view kLetters = "\"\\nrtfb";
    const size_t escape = c < 0x80 ? kEscaped.find(static_cast<char>(c)) : std::string_view::npos;
    if (escape != std::string_view::npos) {
      out += '\\';
      out += kLetters[escape];
    } else if (c < 0x20 || (style_.ascii_only && c > 0x7F && c < 0x10000)) {
      append_unit(out, c);
    } else if (style_.ascii_only && c >= 0x10000) {
      append_unit(out, 0xD800 + ((c - 0x10000) >> 10));
      append_unit(out, 0xDC00 + ((c - 0x10000) & 0x3FF));
    } else {
      out += shown;
    }
  }

  // An escape is whose the character is.
  void string(TracedView traced) {
    const std::string_view text = traced.bytes();
    budget_.spend_bytes(text.size());
    budget_.check_room(out_.memory() + 6 * traced.memory());
    own("\"");
    for (size_t at = 0; at < text.size();) {
      const size_t begin = at;
      const char32_t c = next_code_point(text, at);
      const std::string_view shown = text.substr(begin, at - begin);
      out_.append_with(traced.origin(shown),
                       [&](std::string& out) { append_character(out, c, shown); });
    }
    own("\"");
  }

  // What the writer itself puts in: punctuation, numbers.
  void own(std::string_view text) { out_.append(text, Origin::kData); }

  Budget& budget_;
  const Style style_;
  TracedText out_;
};

TracedText required_text(const Value& value) {
  if (!value.is_string()) throw Fault("the separators of tojson must be strings");
  return TracedText(value.traced());
}

}  // namespace

Value from_json(Budget& budget, const nlohmann::ordered_json& json) {
  return from_json(budget, json, 0);
}

Value filter_tojson(Interpreter& interpreter, const Value& value, const Arguments& arguments) {
  const Parameters parameters(arguments, {"ensure_ascii", "indent", "separators", "sort_keys"});
  Budget& budget = interpreter.budget();
  JsonWriter::Style style;
  style.ascii_only = parameters.truth(0, false);
  style.sort_keys = parameters.truth(3, false);
  if (parameters.has(1) && !parameters[1].is(Kind::kNone)) {
    if (parameters[1].is_string()) {
      style.indent = TracedText(parameters[1].traced());
    } else {
      const int64_t width = std::max<int64_t>(parameters.integer(1, 0), 0);
      budget.check_room(static_cast<size_t>(width));
      style.indent.emplace(std::string(static_cast<size_t>(width), ' '), Origin::kData);
    }
  }
  style.item_separator = {style.indent ? "," : ", ", Origin::kData};
  style.key_separator = {": ", Origin::kData};
  if (parameters.has(2) && !parameters[2].is(Kind::kNone)) {
    const auto parts = to_vector(budget, parameters[2]);
    if (parts.size() != 2) throw Fault("tojson needs two separators");
    style.item_separator = required_text(parts[0]);
    style.key_separator = required_text(parts[1]);
  }
  return make_string(budget, JsonWriter(budget, std::move(style)).write(value));
}

}  // namespace limpid::jinja
