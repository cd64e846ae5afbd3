// Key -> value, as a checkpoint carries it (GGUF key/values, config.json, params.json).
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace limpid {

// Integers are widened to 64 bits (unsigned 64-bit values beyond int64 are FormatErrors of the
// reader where they matter as sizes); arrays of numbers and strings are flat; other arrays nest.
struct MetadataValue {
  using Array = std::vector<MetadataValue>;
  using Storage =
      std::variant<bool, int64_t, uint64_t, double, std::string, std::vector<int64_t>,
                   std::vector<double>, std::vector<std::string>, std::vector<bool>, Array>;
  Storage value;
  std::string type_name;  // as the file names it: "u32", "array of string", … (for `inspect`)
};

class Metadata {
 public:
  // In place of what the key had.
  void set(std::string key, MetadataValue value) {
    values_.insert_or_assign(std::move(key), std::move(value));
  }
  // Takes away every key that begins so.
  void erase_below(std::string_view prefix);
  const MetadataValue* find(std::string_view key) const;
  bool contains(std::string_view key) const { return find(key) != nullptr; }

  // The value when present. Present with another type: UnsupportedError naming the key. Integers
  // convert among each other when they fit, and to double.
  std::optional<int64_t> integer(std::string_view key) const;
  std::optional<double> number(std::string_view key) const;
  std::optional<bool> boolean(std::string_view key) const;
  std::optional<std::string_view> string(std::string_view key) const;
  const std::vector<std::string>* strings(std::string_view key) const;
  const std::vector<int64_t>* integers(std::string_view key) const;
  const std::vector<double>* numbers(std::string_view key) const;

  const std::map<std::string, MetadataValue, std::less<>>& all() const { return values_; }

 private:
  std::map<std::string, MetadataValue, std::less<>> values_;
};

}  // namespace limpid
