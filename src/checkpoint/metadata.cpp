#include "checkpoint/metadata.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/json_file.h"

namespace limpid {
namespace {

constexpr uint64_t kLongestConfig = uint64_t{16} << 20;  // bytes of a configuration file

// "config.rope_theta is of type string, expected a number".
[[noreturn]] void wrong_type(std::string_view key, const MetadataValue& value,
                             std::string_view expected) {
  throw UnsupportedError(
      fmt::format("{} is of type {}, expected {}", key, value.type_name, expected));
}

// The value if it has exactly this type; null when the key is absent.
template <typename T>
const T* find_as(const Metadata& metadata, std::string_view key, std::string_view expected) {
  const MetadataValue* found = metadata.find(key);
  if (found == nullptr) return nullptr;
  const T* value = std::get_if<T>(&found->value);
  if (value == nullptr) wrong_type(key, *found, expected);
  return value;
}

using simdjson::dom::element;

// Makes `value` an array of the elements if all of them have the type Json.
template <typename Json, typename T = Json>
bool collect(simdjson::dom::array array, const char* type_name, MetadataValue& value) {
  std::vector<T> items;
  for (const element item : array) {
    Json found;
    if (item.get<Json>().get(found) != simdjson::SUCCESS) return false;
    items.emplace_back(found);
  }
  value = {std::move(items), type_name};
  return true;
}

// The narrowest type that holds all elements: [1, 2] is an array of integers, [1, 2.5] of numbers.
MetadataValue array_value(simdjson::dom::array array) {
  MetadataValue value;
  if (array.size() == 0) return {MetadataValue::Array{}, std::string(kEmptyArray)};
  if (collect<int64_t>(array, "array of integer", value) ||
      collect<double>(array, "array of number", value) ||
      collect<std::string_view, std::string>(array, "array of string", value) ||
      collect<bool>(array, "array of boolean", value)) {
    return value;
  }
  return {MetadataValue::Array{}, "array"};
}

// Adds the members of `object` one by one, and collects the full keys of null members in `nulls`.
void add_object(simdjson::dom::object object, const std::string& prefix, Metadata& metadata,
                std::vector<std::string>& nulls) {
  for (const auto& [name, value] : object) {
    const std::string key = prefix + std::string(name);
    switch (value.type()) {
      case simdjson::dom::element_type::OBJECT:
        add_object(value.get_object().value_unsafe(), key + ".", metadata, nulls);
        break;
      case simdjson::dom::element_type::ARRAY:
        metadata.set(key, array_value(value.get_array().value_unsafe()));
        break;
      case simdjson::dom::element_type::STRING:
        metadata.set(key, {std::string(value.get_string().value_unsafe()), "string"});
        break;
      case simdjson::dom::element_type::INT64:
        metadata.set(key, {value.get_int64().value_unsafe(), "integer"});
        break;
      case simdjson::dom::element_type::UINT64:
        metadata.set(key, {value.get_uint64().value_unsafe(), "integer"});
        break;
      case simdjson::dom::element_type::DOUBLE:
        metadata.set(key, {value.get_double().value_unsafe(), "number"});
        break;
      case simdjson::dom::element_type::BOOL:
        metadata.set(key, {value.get_bool().value_unsafe(), "boolean"});
        break;
      case simdjson::dom::element_type::NULL_VALUE:
        nulls.push_back(key);
        break;
    }
  }
}

}  // namespace

void Metadata::erase_below(std::string_view prefix) {
  std::erase_if(values_, [&](const auto& entry) { return entry.first.starts_with(prefix); });
}

std::ranges::subrange<Metadata::Values::const_iterator> Metadata::below(
    std::string_view prefix) const {
  const auto begin = values_.lower_bound(prefix);
  return {begin, std::find_if_not(begin, values_.end(), [&](const auto& entry) {
            return entry.first.starts_with(prefix);
          })};
}

const MetadataValue* Metadata::find(std::string_view key) const {
  const auto it = values_.find(key);
  return it == values_.end() ? nullptr : &it->second;
}

std::optional<int64_t> Metadata::integer(std::string_view key) const {
  const MetadataValue* found = find(key);
  if (found == nullptr) return std::nullopt;
  if (const auto* value = std::get_if<int64_t>(&found->value)) return *value;
  if (const auto* value = std::get_if<uint64_t>(&found->value)) {
    LIMPID_CHECK(UnsupportedError, std::in_range<int64_t>(*value), "{} is {}, beyond 63 bits", key,
                 *value);
    return static_cast<int64_t>(*value);
  }
  wrong_type(key, *found, "an integer");
}

std::optional<double> Metadata::number(std::string_view key) const {
  const MetadataValue* found = find(key);
  if (found == nullptr) return std::nullopt;
  if (const auto* value = std::get_if<double>(&found->value)) return *value;
  if (const auto* value = std::get_if<int64_t>(&found->value)) return static_cast<double>(*value);
  if (const auto* value = std::get_if<uint64_t>(&found->value)) return static_cast<double>(*value);
  wrong_type(key, *found, "a number");
}

std::optional<bool> Metadata::boolean(std::string_view key) const {
  const bool* value = find_as<bool>(*this, key, "a boolean");
  return value ? std::optional(*value) : std::nullopt;
}

std::optional<std::string_view> Metadata::string(std::string_view key) const {
  const std::string* value = find_as<std::string>(*this, key, "a string");
  return value ? std::optional<std::string_view>(*value) : std::nullopt;
}

const std::vector<std::string>* Metadata::strings(std::string_view key) const {
  return find_as<std::vector<std::string>>(*this, key, "an array of strings");
}

const std::vector<int64_t>* Metadata::integers(std::string_view key) const {
  return find_as<std::vector<int64_t>>(*this, key, "an array of integers");
}

const std::vector<double>* Metadata::numbers(std::string_view key) const {
  return find_as<std::vector<double>>(*this, key, "an array of numbers");
}

void add_json(const std::string& path, std::string_view bytes, const std::string& prefix,
              Metadata& metadata) {
  if (bytes.size() > kLongestConfig) {
    throw_format_error(path, "file", "has {} bytes, at most {}", bytes.size(), kLongestConfig);
  }
  const JsonFile json(path, bytes);
  refuse_duplicate_keys(json);
  std::vector<std::string> nulls;
  add_object(json.root().object(), prefix, metadata, nulls);
  for (std::string& key : nulls) key.erase(0, prefix.size());
  if (!nulls.empty()) metadata.set(prefix + "(null)", {std::move(nulls), "array of string"});
}

}  // namespace limpid
