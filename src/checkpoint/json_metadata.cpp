#include "checkpoint/json_metadata.h"

#include <fmt/format.h>

#include "base/json_file.h"
#include "base/json_strict.h"
#include "limpid/error.hpp"

namespace limpid {
namespace {

using simdjson::dom::element;

// Each of these tells whether an element belongs to a kind of array.
bool is_integer(element value) { return value.is_int64(); }
bool is_number(element value) { return value.is_int64() || value.is_uint64() || value.is_double(); }
bool is_string(element value) { return value.is_string(); }
bool is_bool(element value) { return value.is_bool(); }

// Converts each element with `read`, which knows its type.
template <typename T, typename Read>
std::vector<T> collect(simdjson::dom::array array, Read read) {
  std::vector<T> values;
  for (const element item : array) values.push_back(read(item));
  return values;
}

// The narrowest type that holds all elements: [1, 2] is an array of integers, [1, 2.5] of numbers.
MetadataValue array_value(simdjson::dom::array array) {
  const auto all = [&](bool (*is)(element)) {
    for (const element item : array) {
      if (!is(item)) return false;
    }
    return true;
  };
  if (array.size() == 0) return {MetadataValue::Array{}, "array"};
  if (all(is_integer)) {
    return {collect<int64_t>(array, [](element e) { return e.get_int64().value_unsafe(); }),
            "array of integer"};
  }
  if (all(is_number)) {
    return {collect<double>(array, [](element e) { return e.get_double().value_unsafe(); }),
            "array of number"};
  }
  if (all(is_string)) {
    return {collect<std::string>(
                array, [](element e) { return std::string(e.get_string().value_unsafe()); }),
            "array of string"};
  }
  if (all(is_bool)) {
    return {collect<bool>(array, [](element e) { return e.get_bool().value_unsafe(); }),
            "array of boolean"};
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

void add_json(const std::string& path, std::string_view bytes, const std::string& prefix,
              Metadata& metadata) {
  if (bytes.size() > kLongestConfig) {
    throw FormatError(path, FormatError::kNoOffset, "file",
                      fmt::format("has {} bytes, at most {}", bytes.size(), kLongestConfig));
  }
  const JsonFile json(path, bytes);
  refuse_duplicate_keys(json);
  std::vector<std::string> nulls;
  add_object(json.root().object(), prefix, metadata, nulls);
  for (std::string& key : nulls) key.erase(0, prefix.size());
  if (!nulls.empty()) metadata.set(prefix + "(null)", {std::move(nulls), "array of string"});
}

}  // namespace limpid
