#include "server/json_body.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/json_text.h"
#include "base/parse_number.h"
#include "base/text.h"

namespace limpid {

// The name is the path within the body, as clients write it: "messages[0].content".
void JsonField::fail(const std::string& problem) const {
  const std::string blamed = name();
  throw ApiError(400, (blamed.empty() ? "the request" : blamed) + " " + problem, blamed);
}

void JsonField::must_be(std::string_view expected) const {
  const std::string value =
      value_->is_string() ? "'" + value_->get_ref<const std::string&>() + "'" : dump_json(*value_);
  fail(fmt::format("must be {}, not {}", expected, value));
}

bool JsonField::is_empty() const {
  const Json& value = *value_;
  if (value.is_object()) return std::ranges::all_of(value, &Json::is_null);
  if (value.is_string()) return value.get_ref<const std::string&>().empty();
  return value.is_null() || value == false || value == 0 || (value.is_array() && value.empty());
}

double JsonField::number(double least, double most) const {
  if (!value_->is_number()) fail("must be a number");
  const auto number = value_->get<double>();
  if (!(number >= least && number <= most)) must_be(fmt::format("between {} and {}", least, most));
  return number;
}

// JavaScript knows no integers, so 5.0 is one too. A double holds every integer up to 2^53 exactly,
// but not every larger one, so a number that was written as an integer is read as one.
int64_t JsonField::integer(int64_t least, int64_t most, std::string_view expected) const {
  const double number = value_->is_number() ? value_->get<double>() : 0.5;
  if (number != std::floor(number)) fail(fmt::format("must be {}", expected));
  const bool fits = value_->is_number_unsigned()  ? value_->get<uint64_t>() <= INT64_MAX
                    : value_->is_number_integer() ? true
                                                  : number >= -0x1p63 && number < 0x1p63;
  const int64_t integer = fits ? value_->get<int64_t>() : 0;
  if (!fits || integer < least || integer > most)
    must_be(fmt::format("between {} and {}", least, most));
  return integer;
}

bool JsonField::boolean() const {
  if (!value_->is_boolean()) fail("must be true or false");
  return value_->get<bool>();
}

const std::string& JsonField::string(std::string_view expected) const {
  if (!value_->is_string()) fail(fmt::format("must be {}", expected));
  return value_->get_ref<const std::string&>();
}

std::vector<JsonField> JsonField::elements(std::string_view expected) const {
  if (!value_->is_array()) fail(fmt::format("must be {}", expected));
  const auto prefix = std::make_shared<const std::string>(name());
  std::vector<JsonField> fields;
  for (size_t i = 0; i < value_->size(); ++i)
    fields.push_back({(*value_)[i], prefix, fmt::format("[{}]", i)});
  return fields;
}

JsonField::Prefix JsonField::prefix_of_members() const {
  const std::string own = name();
  return own.empty() ? nullptr : std::make_shared<const std::string>(own + ".");
}

std::vector<JsonField> JsonField::members() const {
  if (!value_->is_object()) fail("must be an object");
  std::vector<JsonField> fields;
  const Prefix prefix = prefix_of_members();
  for (const auto& [key, value] : value_->items()) fields.push_back({value, prefix, key});
  return fields;
}

std::optional<JsonField> JsonField::find(std::string_view key) const {
  if (!value_->is_object()) fail("must be an object");
  const auto found = value_->find(std::string(key));
  if (found == value_->end() || found->is_null()) return std::nullopt;
  return JsonField(*found, prefix_of_members(), found.key());
}

JsonField JsonField::required(std::string_view key) const {
  if (auto field = find(key)) return *field;
  const Prefix prefix = prefix_of_members();
  const std::string missing = (prefix ? *prefix : "") + std::string(key);
  throw ApiError(400, missing + " is missing", missing);
}

void JsonField::allow_only(std::initializer_list<std::string_view> names) const {
  for (const JsonField& field : members()) {
    if (!field.json().is_null() && std::ranges::find(names, field.key()) == names.end())
      field.fail("is not a known field");
  }
}

void JsonField::refuse_others(std::initializer_list<std::string_view> names) const {
  for (const JsonField& member : members()) {
    if (std::ranges::find(names, member.key()) == names.end() && !member.is_empty())
      member.fail("is not supported");
  }
}

bool JsonField::boolean(std::string_view key, bool otherwise) const {
  const auto field = find(key);
  return field ? field->boolean() : otherwise;
}

std::string JsonField::string_or_empty(std::string_view key) const {
  const auto field = find(key);
  return field ? field->string() : "";
}

std::string content_text(const JsonField& content, std::string_view between) {
  if (content.json().is_string()) return content.string();
  std::string text;
  for (const JsonField& part : content.elements("a string or an array")) {
    const auto type = part.find("type");
    const bool is_text = type && (type->string() == "text" || type->string() == "input_text" ||
                                  type->string() == "output_text");
    if (!is_text) (type ? *type : part).fail("is not supported: content can only be text");
    part.refuse_others({"type", "text", "annotations", "logprobs", "cache_control"});
    const auto piece = part.find("text");
    if (!piece) part.fail("needs a text");
    if (!text.empty()) text += between;
    text += piece->string();
  }
  return text;
}

// A number in quotes has no unit, and counts as seconds.
bool is_zero_duration(const JsonField& field) {
  if (field.json().is_number()) return field.json() == 0;
  constexpr std::string_view kUnits[] = {"ns", "us", "µs", "ms", "s", "m", "h"};  // "ms" before "m"
  std::string_view rest = field.string("a string or a number");
  if (const auto seconds = parse_number<double>(rest)) return *seconds == 0;
  const bool is_zero = rest.find_first_of("123456789") == rest.npos;
  if (rest.starts_with('-')) rest.remove_prefix(1);
  bool fits = !rest.empty();
  while (fits && !rest.empty()) {
    const size_t n_digits = std::min(rest.find_first_not_of("0123456789."), rest.size());
    rest.remove_prefix(n_digits);
    const auto* const unit =
        std::ranges::find_if(kUnits, [&](std::string_view name) { return rest.starts_with(name); });
    fits = n_digits > 0 && unit != std::end(kUnits);
    if (fits) rest.remove_prefix(unit->size());
  }
  if (!fits) field.must_be("a duration such as \"5m\" or a number of seconds");
  return is_zero;
}

Json parse_any_body(std::string_view body) {
  if (trimmed(body).empty()) throw ApiError(400, "the body is empty, and must be JSON");
  try {
    return parse_json(body, "body");
  } catch (const ArgumentError& error) {
    throw ApiError(400, error.what());
  }
}

Json parse_body(std::string_view body) {
  Json json = parse_any_body(body);
  if (!json.is_object()) throw ApiError(400, "the body must be a JSON object");
  return json;
}

}  // namespace limpid
