#include "checkpoint/json_metadata.h"

#include <fmt/format.h>

#include "base/json_file.h"
#include "base/json_strict.h"
#include "limpid/error.hpp"

namespace limpid {
namespace {

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
  if (array.size() > 0 &&
      (collect<int64_t>(array, "array of integer", value) ||
       collect<double>(array, "array of number", value) ||
       collect<std::string_view, std::string>(array, "array of string", value) ||
       collect<bool>(array, "array of boolean", value))) {
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
