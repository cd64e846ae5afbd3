// Reads JSON files. Every error names the file and the place in it ("model.merges[3]").
#pragma once

#include <fmt/format.h>
#include <simdjson.h>

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"

namespace limpid {

// A place in a JSON file: an element and the path to it ("model.merges"). Valid as long as its
// JsonFile. The path makes an error message possible wherever an element turns out to be wrong.
class JsonPlace {
 public:
  JsonPlace(const std::string& file, std::string name, simdjson::dom::element element)
      : file_(&file), name_(std::move(name)), element_(element) {}

  simdjson::dom::element element() const { return element_; }
  bool is_null() const { return element_.is_null(); }
  bool is_object() const { return element_.is_object(); }
  bool is_string() const { return element_.is_string(); }

  // The element as this type; FormatError if it has another type.
  simdjson::dom::object object() const;
  simdjson::dom::array array() const;
  std::string_view string() const;
  bool boolean() const;
  int64_t integer() const;

  // The member `key`; nothing when it is absent or null. FormatError if the place is not an object
  // or has the key twice.
  std::optional<JsonPlace> find(std::string_view key) const;
  // As find(), but FormatError when the member is absent or null.
  JsonPlace operator[](std::string_view key) const;
  // The member's value, or `otherwise` when it is absent or null.
  bool boolean(std::string_view key, bool otherwise) const;
  std::string_view string(std::string_view key, std::string_view otherwise) const;
  // The elements of an array, each as a place.
  std::vector<JsonPlace> elements() const;

  // Throws UnsupportedError for a key that is not in `known`, and names it.
  void allow_keys(std::initializer_list<std::string_view> known) const;

  const std::string& name() const { return name_; }
  const std::string& file() const { return *file_; }
  // Throws FormatError, or UnsupportedError; both name the file and the place.
  template <typename... Args>
  [[noreturn]] void fail(fmt::format_string<Args...> problem, Args&&... args) const {
    throw_format_error(*file_, name_.empty() ? "file" : name_, problem,
                       std::forward<Args>(args)...);
  }
  template <typename... Args>
  [[noreturn]] void unsupported(fmt::format_string<Args...> problem, Args&&... args) const {
    throw UnsupportedError(fmt::format("{}: {}: {}", *file_, name_,
                                       fmt::format(problem, std::forward<Args>(args)...)));
  }

 private:
  const std::string* file_;
  std::string name_;
  simdjson::dom::element element_;
};

// A parsed file. Strings are UTF-8; lone surrogates, control characters and other errors are
// refused.
class JsonFile {
 public:
  static constexpr size_t kMaxDepth = 64;  // levels of arrays and objects

  // `path` is for messages. Throws FormatError for text that is not JSON or is nested deeper than
  // kMaxDepth.
  JsonFile(std::string path, std::string_view bytes);

  JsonPlace root() const;  // its name is ""

 private:
  std::string path_;
  std::unique_ptr<simdjson::dom::parser> parser_;
  simdjson::dom::element root_;
};

// Throws FormatError, which names the place, for the first key that occurs twice in one object,
// anywhere in `file`. Parsers differ in which of the two values they use, so two programs could
// read two different files.
void refuse_duplicate_keys(const JsonFile& file);

}  // namespace limpid
