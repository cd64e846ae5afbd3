#include "checkpoint/metadata.h"

#include <utility>

#include "base/check.h"

namespace limpid {
namespace {

// "config.rope_theta is string, expected a number".
[[noreturn]] void wrong_type(std::string_view key, const MetadataValue& value,
                             std::string_view expected) {
  throw UnsupportedError(fmt::format("{} is {}, expected {}", key, value.type_name, expected));
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

}  // namespace

void Metadata::erase_below(std::string_view prefix) {
  std::erase_if(values_, [&](const auto& entry) {
    return entry.first.compare(0, prefix.size(), prefix) == 0;
  });
}

const MetadataValue* Metadata::find(std::string_view key) const {
  const auto it = values_.find(key);
  return it == values_.end() ? nullptr : &it->second;
}

std::optional<int64_t> Metadata::integer(std::string_view key) const {
  const MetadataValue* found = find(key);
  if (found == nullptr) return std::nullopt;
  if (const auto* value = std::get_if<int64_t>(&found->value)) return *value;
  if (const auto* value = std::get_if<uint64_t>(&found->value);
      value && std::in_range<int64_t>(*value)) {
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

}  // namespace limpid
