#include "base/json_strict.h"

#include <fmt/format.h>

#include <unordered_set>

#include "limpid/error.hpp"

namespace limpid {
namespace {

// Walks through the document. `name_` is the path to the current place. JsonFile::kMaxDepth bounds
// the recursion.
class Checker {
 public:
  explicit Checker(const std::string& path) : path_(path) {}

  void check_object(simdjson::dom::object object) {
    std::unordered_set<std::string_view> keys;
    for (const auto& [key, value] : object) {
      const size_t length = enter(key);
      if (!keys.insert(key).second)
        throw FormatError(path_, FormatError::kNoOffset, name_, "occurs twice");
      check_element(value);
      name_.resize(length);
    }
  }

  void check_array(simdjson::dom::array array) {
    for (const simdjson::dom::element item : array) check_element(item);
  }

 private:
  void check_element(simdjson::dom::element element) {
    if (element.is_object()) check_object(element.get_object().value_unsafe());
    if (element.is_array()) check_array(element.get_array().value_unsafe());
  }

  // Appends the key to `name_`, in a form that suits a message. Returns the length to shrink to
  // afterwards.
  size_t enter(std::string_view key) {
    constexpr size_t kLongest = 60;
    const size_t length = name_.size();
    if (length != 0) name_ += '.';
    for (const char c : key.substr(0, kLongest)) name_ += static_cast<uint8_t>(c) < 32 ? '?' : c;
    return length;
  }

  const std::string& path_;
  std::string name_;
};

}  // namespace

void refuse_duplicate_keys(const JsonFile& file) {
  const JsonPlace root = file.root();
  Checker checker(root.file());
  if (root.is_object()) checker.check_object(root.object());
  if (root.is_array()) checker.check_array(root.array());
}

}  // namespace limpid
