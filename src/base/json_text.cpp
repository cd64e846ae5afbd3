#include "base/json_text.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/printable.h"

namespace limpid {
namespace {

using Json = nlohmann::ordered_json;

// Builds a document from the parser's events. nlohmann's own builder looks a new name up among all
// earlier names of its object, one after the other: 3 MB of names take minutes. Here the names of
// an object are compared once, when it ends, sorted.
class DocumentBuilder final : public Json::json_sax_t {
 public:
  explicit DocumentBuilder(const std::string& name) : name_(name) {}

  Json take() { return std::move(document_); }

  bool null() override { return add(nullptr); }
  bool boolean(bool value) override { return add(value); }
  bool number_integer(int64_t value) override { return add(value); }
  bool number_unsigned(uint64_t value) override { return add(value); }
  bool number_float(double value, const std::string& /*text*/) override { return add(value); }
  bool string(std::string& value) override { return add(std::move(value)); }
  bool binary(Json::binary_t& value) override { return add(std::move(value)); }
  bool start_object(size_t /*unknown*/) override { return open(Json::object()); }
  bool key(std::string& value) override {
    open_.back().key = std::move(value);
    return true;
  }
  bool end_object() override {
    check_names(members(open_.back().value));
    return close();
  }
  bool start_array(size_t /*unknown*/) override { return open(Json::array()); }
  bool end_array() override { return close(); }

  bool parse_error(size_t byte, const std::string& /*token*/,
                   const nlohmann::detail::exception& error) override {
    LIMPID_CHECK(ArgumentError, dynamic_cast<const Json::out_of_range*>(&error) == nullptr,
                 "{}: a number in this JSON does not fit a double", name_);
    throw ArgumentError(fmt::format("{}: byte {}: this is not JSON", name_, byte));
  }

 private:
  using Members = Json::object_t::Container;
  // An array or an object that has not ended, and in an object the name of its next member.
  struct Open {
    Json value;
    std::string key{};
  };

  static Members& members(Json& object) { return object.get_ref<Json::object_t&>(); }

  bool open(Json container) {
    LIMPID_CHECK(ArgumentError, std::ssize(open_) < kMaxJsonDepth,
                 "{}: this JSON is nested deeper than {} levels", name_, kMaxJsonDepth);
    open_.push_back({std::move(container)});
    return true;
  }
  bool close() {
    Json value = std::move(open_.back().value);
    open_.pop_back();
    return add(std::move(value));
  }
  bool add(Json value) {
    if (open_.empty()) {
      document_ = std::move(value);
    } else if (Open& parent = open_.back(); parent.value.is_object()) {
      members(parent.value).emplace_back(std::move(parent.key), std::move(value));
    } else {
      parent.value.get_ref<Json::array_t&>().push_back(std::move(value));
    }
    return true;
  }

  void check_names(const Members& members) const {
    std::vector<std::string_view> names;
    names.reserve(members.size());
    for (const auto& [name, value] : members) names.emplace_back(name);
    std::sort(names.begin(), names.end());
    const auto twice = std::adjacent_find(names.begin(), names.end());
    LIMPID_CHECK(ArgumentError, twice == names.end(),
                 "{}: an object of this JSON has the name '{}' twice", name_, printable(*twice));
  }

  const std::string& name_;
  Json document_;
  std::vector<Open> open_;  // each within the one before
};

}  // namespace

nlohmann::ordered_json parse_json(std::string_view text, const std::string& name) {
  DocumentBuilder builder(name);
  Json::sax_parse(text, &builder);
  return builder.take();
}

std::string dump_json(const Json& json, int indent) {
  return json.dump(indent, ' ', false, Json::error_handler_t::replace);
}

}  // namespace limpid
