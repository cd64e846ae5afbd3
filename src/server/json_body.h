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
  JsonField(const Json& value, std::string name) : value_(&value), key_(std::move(name)) {}

  const Json& json() const { return *value_; }
  std::string name() const { return prefix_ ? *prefix_ + key_ : key_; }
  // Whether the value asks for nothing: null, false, 0, "", [], {}, or an object of nulls.
  bool is_empty() const;

  double number(double least, double most) const;
  // `expected` is everything that the field may be, for the message.
  int64_t integer(int64_t least, int64_t most, std::string_view expected = "a whole number") const;
  bool boolean() const;
  const std::string& string(std::string_view expected = "a string") const;
  std::vector<JsonField> elements(std::string_view expected = "an array") const;  // of an array
  std::vector<JsonField> members() const;                                         // of an object
  // The member `key` of an object; nothing when it is absent or null.
  std::optional<JsonField> find(std::string_view key) const;
  // The same, for a member that must be there.
  JsonField required(std::string_view key) const;
  // Throws for a member that has none of these names, unless it is null.
  void allow_only(std::initializer_list<std::string_view> names) const;
  // The same, but other members may be empty. A message and a part of its content have such, as
  // clients send back what an earlier answer had: {"annotations": [], "tool_calls": []}. One that
  // says something would change the answer.
  void refuse_others(std::initializer_list<std::string_view> names) const;
  // The value of the member `key`; `otherwise` or "" when it is absent or null.
  bool boolean(std::string_view key, bool otherwise) const;
  std::string string_or_empty(std::string_view key) const;
  // The last part of the name: "role" of "messages[0].role".
  std::string_view key() const { return key_; }

  // "n must be between 1 and 64, not 65": `expected` is "between 1 and 64".
  [[noreturn]] void must_be(std::string_view expected) const;
  [[noreturn]] void fail(const std::string& problem) const;

 private:
  // The name of an object or array with a thousand members is kept once, not in each of them: a
  // client chooses how long it is.
  using Prefix = std::shared_ptr<const std::string>;
  JsonField(const Json& value, Prefix prefix, std::string key)
      : value_(&value), prefix_(std::move(prefix)), key_(std::move(key)) {}
  Prefix prefix_of_members() const;

  const Json* value_;
  Prefix prefix_;    // what comes before the key: "messages[0]."; null: nothing
  std::string key_;  // "" for the whole body
};

// The text of a message's content, which is a string or a list of parts with a text, with `between`
// between the parts. Throws ApiError for any other content.
std::string content_text(const JsonField& content, std::string_view between = "\n");

// Whether a duration is 0. Throws ApiError for what is neither a number nor one of Go's durations:
// "5m", "1h30m", "-1s".
bool is_zero_duration(const JsonField& field);

// The body as JSON. Throws ApiError for an empty one, for text that is nested too deeply and for
// bytes that are not UTF-8.
Json parse_any_body(std::string_view body);
// The same, as an object. Throws ApiError for anything else.
Json parse_body(std::string_view body);

// The body of a request as one field, which owns the document.
class JsonBody : public JsonField {
 public:
  // Throws as parse_body does, and for a `model` that is not a string: any request may name its
  // model.
  explicit JsonBody(std::string_view text)
      : JsonBody(std::make_unique<const Json>(parse_body(text))) {
    string_or_empty("model");
  }

 private:
  explicit JsonBody(std::unique_ptr<const Json> document)
      : JsonField(*document, ""), document_(std::move(document)) {}

  std::unique_ptr<const Json> document_;
};

}  // namespace limpid
