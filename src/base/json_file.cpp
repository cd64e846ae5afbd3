#include "base/json_file.h"

#include <algorithm>
#include <unordered_set>

#include "base/check.h"
#include "base/foreign_file.h"
#include "base/parse_number.h"
#include "base/printable.h"

namespace limpid {
namespace {

std::string joined(const std::string& place, std::string_view key) {
  return place.empty() ? printable(key) : fmt::format("{}.{}", place, printable(key));
}

// Checks `element`, which is at `place`, and all below it. JsonFile::kMaxDepth bounds the
// recursion.
void check_keys(const std::string& path, const std::string& place, simdjson::dom::element element) {
  if (element.is_array()) {
    const simdjson::dom::array items = element.get_array().value_unsafe();
    for (const simdjson::dom::element item : items) check_keys(path, place, item);
  }
  if (!element.is_object()) return;
  const simdjson::dom::object members = element.get_object().value_unsafe();
  std::unordered_set<std::string_view> keys;
  for (const auto& [key, value] : members) {
    const std::string inner = joined(place, key);
    if (!keys.insert(key).second) throw_format_error(path, inner, "occurs twice");
    check_keys(path, inner, value);
  }
}

// The text with ".0" after each integer of more than 64 bits. JSON allows them, and transformers
// writes 10^30 for a length without a limit, but simdjson refuses integers of that size; with a
// fraction they are floating-point numbers.
std::string with_large_integers_as_floats(std::string_view json) {
  std::string text;
  for (size_t i = 0; i < json.size();) {
    const size_t begin = i++;
    const char first = json[begin];
    if (first == '"') {
      while (i < json.size() && json[i] != '"') i += json[i] == '\\' ? 2 : 1;
      i = std::min(i + 1, json.size());
    } else if (first == '-' || (first >= '0' && first <= '9')) {
      i = std::min(json.find_first_not_of("0123456789+-.eE", i), json.size());
    }
    const std::string_view token = json.substr(begin, i - begin);
    text += token;
    const bool is_integer = token.find_first_not_of("0123456789", first == '-') == token.npos;
    const bool fits = parse_number<int64_t>(token) || parse_number<uint64_t>(token);
    if (is_integer && token.size() > 1 && !fits) text += ".0";
  }
  return text;
}

}  // namespace

simdjson::dom::object JsonPlace::object() const {
  if (!element_.is_object()) fail("is not an object");
  return element_.get_object().value_unsafe();
}

simdjson::dom::array JsonPlace::array() const {
  if (!element_.is_array()) fail("is not an array");
  return element_.get_array().value_unsafe();
}

std::string_view JsonPlace::string() const {
  if (!element_.is_string()) fail("is not a string");
  return element_.get_string().value_unsafe();
}

bool JsonPlace::boolean() const {
  if (!element_.is_bool()) fail("is neither true nor false");
  return element_.get_bool().value_unsafe();
}

int64_t JsonPlace::integer() const {
  int64_t value = 0;
  if (element_.get_int64().get(value) != simdjson::SUCCESS) fail("is not a whole number");
  return value;
}

// Looks at all members, because a key may be there twice.
std::optional<JsonPlace> JsonPlace::find(std::string_view key) const {
  std::optional<JsonPlace> found;
  bool seen = false;
  for (const auto& [name, value] : object()) {
    if (name != key) continue;
    if (seen) JsonPlace(*file_, joined(name_, key), value).fail("occurs twice");
    seen = true;
    if (!value.is_null()) found.emplace(*file_, joined(name_, key), value);
  }
  return found;
}

JsonPlace JsonPlace::operator[](std::string_view key) const {
  const auto found = find(key);
  if (!found) throw_format_error(*file_, joined(name_, key), "is missing");
  return *found;
}

bool JsonPlace::boolean(std::string_view key, bool otherwise) const {
  const auto found = find(key);
  return found ? found->boolean() : otherwise;
}

std::string_view JsonPlace::string(std::string_view key, std::string_view otherwise) const {
  const auto found = find(key);
  return found ? found->string() : otherwise;
}

std::vector<JsonPlace> JsonPlace::elements() const {
  std::vector<JsonPlace> places;
  for (const simdjson::dom::element element : array())
    places.emplace_back(*file_, fmt::format("{}[{}]", name_, places.size()), element);
  return places;
}

void JsonPlace::allow_keys(std::initializer_list<std::string_view> known) const {
  for (const auto& [key, value] : object()) {
    if (std::ranges::find(known, key) == known.end())
      JsonPlace(*file_, joined(name_, key), value).unsupported("is an unknown option");
  }
}

// simdjson parses into a document owned by its parser, so the parser is kept as long as the file.
JsonFile::JsonFile(std::string path, std::string_view bytes)
    : path_(std::move(path)), parser_(std::make_unique<simdjson::dom::parser>()) {
  const auto check = [&](simdjson::error_code error) {
    if (error == simdjson::DEPTH_ERROR) {
      throw_format_error(path_, "file", "is nested deeper than {} levels", kMaxDepth);
    }
    if (error != simdjson::SUCCESS) {
      std::string_view why = simdjson::error_message(error);
      while (why.ends_with('.')) why.remove_suffix(1);
      const std::string foreign = describe_foreign(bytes);
      // Not for JSON on a command line, nor the header of a larger file.
      const char* advice = path_.ends_with(".json") ? "; is the download complete?" : "";
      throw_format_error(path_, "file", "{}",
                         foreign.empty() ? fmt::format("is not JSON: {}{}", why, advice)
                                         : fmt::format("is not JSON but {}", foreign));
    }
  };
  if (bytes.empty()) check(simdjson::EMPTY);
  check(parser_->allocate(bytes.size(), kMaxDepth));
  simdjson::error_code error = parser_->parse(bytes.data(), bytes.size()).get(root_);
  if (error == simdjson::NUMBER_ERROR)
    error = parser_->parse(with_large_integers_as_floats(bytes)).get(root_);
  check(error);
}

JsonPlace JsonFile::root() const { return {path_, "", root_}; }

void refuse_duplicate_keys(const JsonFile& file) {
  const JsonPlace root = file.root();
  check_keys(root.file(), "", root.element());
}

}  // namespace limpid
