// The JSON of a request, read with errors that name the field.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "server/errors.h"

namespace limpid {

// A value in the body, and its name there: "messages[0].content". Valid as long as the body. Every
// reading method throws an ApiError with status 400 and the name as its param.
class JsonField {
 public:
  JsonField(const Json& value, std::string name, size_t key_at = 0)
      : value_(&value), name_(std::move(name)), key_at_(key_at) {}

  const Json& json() const { return *value_; }
  const std::string& name() const { return name_; }
  // Whether the value asks for nothing: null, false, 0, "", [], {}, or an object of nulls.
  bool is_empty() const;

  double number(double least, double most) const;
  int64_t integer(int64_t least, int64_t most) const;
  bool boolean() const;
  const std::string& string() const;
  std::vector<JsonField> elements() const;  // of an array
  std::vector<JsonField> members() const;   // of an object
  // The member `key` of an object; nothing when it is absent or null.
  std::optional<JsonField> find(std::string_view key) const;
  // The same, for a member that must be there.
  JsonField required(std::string_view key) const;
  // Throws for a member that has none of these names, unless it is null.
  void allow_only(std::initializer_list<std::string_view> names) const;
  // The value of the member `key`; `otherwise` or "" when it is absent or null.
  bool boolean(std::string_view key, bool otherwise) const;
  std::string string_or_empty(std::string_view key) const;
  // The last part of the name: "role" of "messages[0].role".
  std::string_view key() const { return std::string_view(name_).substr(key_at_); }

  [[noreturn]] void fail(const std::string& problem) const;

 private:
  JsonField member(const std::string& key, const Json& value) const;

  const Json* value_;
  std::string name_;  // "" for the whole body
  size_t key_at_;     // where the last part begins
};

// The body as a JSON object. Throws ApiError for anything else, for text that is nested too deeply
// and for bytes that are not UTF-8.
Json parse_body(std::string_view body);

// The body of a request as one field, which owns the document.
class JsonBody : public JsonField {
 public:
  // Throws as parse_body does.
  explicit JsonBody(std::string_view text)
      : JsonBody(std::make_unique<const Json>(parse_body(text))) {}

 private:
  explicit JsonBody(std::unique_ptr<const Json> document)
      : JsonField(*document, ""), document_(std::move(document)) {}

  std::unique_ptr<const Json> document_;
};

}  // namespace limpid
