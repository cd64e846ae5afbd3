// JSON from files, read with bounds: whatever is wrong names the file and the place in it.
#pragma once

#include <simdjson.h>

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace limpid {

// A place in a JSON file: an element and the path to it, "model.merges". Valid as long as its
// JsonFile.
class JsonPlace {
 public:
  JsonPlace(const std::string& file, std::string name, simdjson::dom::element element)
      : file_(&file), name_(std::move(name)), element_(element) {}

  bool is_null() const { return element_.is_null(); }
  bool is_object() const { return element_.is_object(); }
  bool is_array() const { return element_.is_array(); }
  bool is_string() const { return element_.is_string(); }

  // What it is; FormatError if it is anything else.
  simdjson::dom::object object() const;
  simdjson::dom::array array() const;
  std::string_view string() const;
  bool boolean() const;
  int64_t integer() const;

  // The member of that key; absent, also when it is null. FormatError if this is no object or the
  // key is there twice.
  std::optional<JsonPlace> find(std::string_view key) const;
  // The same where it must be there: FormatError otherwise.
  JsonPlace operator[](std::string_view key) const;
  // The member, or `otherwise`.
  bool boolean(std::string_view key, bool otherwise) const;
  std::string_view string(std::string_view key, std::string_view otherwise) const;
  // The elements of an array, each as a place.
  std::vector<JsonPlace> elements() const;

  // UnsupportedError that names any key outside `known`.
  void allow_keys(std::initializer_list<std::string_view> known) const;

  const std::string& name() const { return name_; }
  const std::string& file() const { return *file_; }
  // Throws FormatError, or UnsupportedError, that names file and place.
  [[noreturn]] void fail(const std::string& problem) const;
  [[noreturn]] void unsupported(const std::string& problem) const;

 private:
  std::string member_name(std::string_view key) const;

  const std::string* file_;
  std::string name_;
  simdjson::dom::element element_;
};

// A parsed file. Strings are UTF-8; lone surrogates, control characters and the like are refused.
class JsonFile {
 public:
  static constexpr size_t kMaxDepth = 64;  // arrays and objects within each other

  // `path` is for messages. Throws FormatError for what is not JSON or deeper than kMaxDepth.
  JsonFile(std::string path, std::string_view bytes);

  JsonPlace root() const;  // named ""

 private:
  std::string path_;
  std::unique_ptr<simdjson::dom::parser> parser_;
  simdjson::dom::element root_;
};

}  // namespace limpid
