// The metadata of a checkpoint: a map from keys to values (GGUF key/values, config.json,
// params.json).
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <ranges>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace limpid {

// A value of one of the types below. Integers are widened to 64 bits. Arrays of numbers, strings
// and booleans are flat vectors; other arrays nest. A u64 that does not fit int64_t stays a
// uint64_t; Metadata::integer() refuses it.
struct MetadataValue {
  using Array = std::vector<MetadataValue>;
  using Storage =
      std::variant<bool, int64_t, uint64_t, double, std::string, std::vector<int64_t>,
                   std::vector<double>, std::vector<std::string>, std::vector<bool>, Array>;
  Storage value;
  std::string type_name;  // the file's name for the type: "u32", "array of string", …

  bool is_number() const {
    return std::holds_alternative<int64_t>(value) || std::holds_alternative<uint64_t>(value) ||
           std::holds_alternative<double>(value);
  }
};

// The type of `[]` in JSON.
inline constexpr std::string_view kEmptyArray = "empty array";

// The values by key. The typed getters spare each reader of a configuration the checks of types.
class Metadata {
 public:
  using Values = std::map<std::string, MetadataValue, std::less<>>;

  // Replaces the value of an existing key.
  void set(std::string key, MetadataValue value) {
    values_.insert_or_assign(std::move(key), std::move(value));
  }
  // Removes every key that begins with `prefix`.
  void erase_below(std::string_view prefix);
  // Returns null for an unknown key.
  const MetadataValue* find(std::string_view key) const;
  bool contains(std::string_view key) const { return find(key) != nullptr; }

  // The value, or nothing when the key is absent. Throws UnsupportedError, which names the key,
  // when the value has another type. Integer types convert to each other when the value fits, and
  // to double.
  std::optional<int64_t> integer(std::string_view key) const;
  std::optional<double> number(std::string_view key) const;
  std::optional<bool> boolean(std::string_view key) const;
  std::optional<std::string_view> string(std::string_view key) const;
  const std::vector<std::string>* strings(std::string_view key) const;
  const std::vector<int64_t>* integers(std::string_view key) const;
  const std::vector<double>* numbers(std::string_view key) const;

  const Values& all() const { return values_; }
  // The entries whose keys begin with `prefix`.
  std::ranges::subrange<Values::const_iterator> below(std::string_view prefix) const;

 private:
  Values values_;
};

// Sets keys below a prefix ("llama.") with the types that writers of GGUF use. A model then has the
// same values whether it was opened from its own layout or from a GGUF file. Keeps a reference to
// `metadata`.
class KeyWriter {
 public:
  KeyWriter(Metadata& metadata, std::string_view prefix) : metadata_(metadata), prefix_(prefix) {}
  void integer(std::string_view name, int64_t value) { set(name, {value, "u32"}); }
  // Rounds the value to f32.
  void number(std::string_view name, double value) {
    set(name, {double{static_cast<float>(value)}, "f32"});
  }
  void flag(std::string_view name, bool value) { set(name, {value, "bool"}); }
  void string(std::string_view name, std::string_view value) {
    set(name, {std::string(value), "string"});
  }
  void set(std::string_view name, MetadataValue value) {
    metadata_.set(prefix_ + std::string(name), std::move(value));
  }

 private:
  Metadata& metadata_;
  std::string prefix_;
};

// Sets `prefix` + key for every member of the JSON object in `bytes`, and of the objects inside it.
// With the prefix "config.", {"rope_scaling": {"factor": 8}} becomes "config.rope_scaling.factor" =
// 8.
//
// A member that is null is left out, as if absent; the array of strings prefix + "(null)" lists the
// keys of such members. An array whose elements have one type becomes an array. Any other array
// becomes an empty value with the type name "array", which says only that it was there.
//
// Throws FormatError, which names `path` and the place, when `bytes` are not JSON, are nested
// deeper than 64, repeat a key, have whole numbers beyond 64 bits, or are longer than 16 MiB.
void add_json(const std::string& path, std::string_view bytes, const std::string& prefix,
              Metadata& metadata);

}  // namespace limpid
