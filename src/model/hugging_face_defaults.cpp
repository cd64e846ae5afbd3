#include "model/hugging_face_defaults.h"

#include <fmt/format.h>

#include <cmath>
#include <optional>

#include "base/json_file.h"
#include "base/json_strict.h"
#include "checkpoint/byte_reader.h"
#include "limpid/error.hpp"

namespace limpid {
namespace {

constexpr uint64_t kLongestTemplate = uint64_t{16} << 20;

[[noreturn]] void fail(const Checkpoint& given, const std::string& key, const char* problem) {
  throw FormatError(given.path, FormatError::kNoOffset, key, problem);
}

void set_number(const Checkpoint& given, const char* name, const char* ours, bool whole,
                Metadata& canonical) {
  const std::string key = std::string("generation_config.") + name;
  const std::optional<double> value = given.metadata.number(key);
  if (!value) return;
  if (!std::isfinite(*value) || *value < 0) fail(given, key, "is no number of 0 or more");
  const std::string full = std::string("general.sampling.") + ours;
  if (!whole) return canonical.set(full, {double{static_cast<float>(*value)}, "f32"});
  const std::optional<int64_t> integer = given.metadata.integer(key);
  if (*integer > INT32_MAX) fail(given, key, "is too large");
  canonical.set(full, {*integer, "i32"});
}

void read_samplers(const Checkpoint& given, Metadata& canonical) {
  set_number(given, "temperature", "temp", false, canonical);
  set_number(given, "top_k", "top_k", true, canonical);
  set_number(given, "top_p", "top_p", false, canonical);
  set_number(given, "min_p", "min_p", false, canonical);
  set_number(given, "repetition_penalty", "penalty_repeat", false, canonical);
  // Written out as false, it means the likeliest token always; absent, it says nothing.
  if (!given.metadata.boolean("generation_config.do_sample").value_or(true))
    canonical.set("general.sampling.temp", {0.0, "f32"});
}

std::vector<int64_t> stop_ids(const Checkpoint& given) {
  for (const char* key : {"generation_config.eos_token_id", "config.eos_token_id"}) {
    const MetadataValue* found = given.metadata.find(key);
    if (found == nullptr) continue;
    std::vector<int64_t> ids;
    if (const auto* one = std::get_if<int64_t>(&found->value)) {
      ids = {*one};
    } else if (const auto* several = std::get_if<std::vector<int64_t>>(&found->value)) {
      ids = *several;
    } else {
      fail(given, key, "is neither a token id nor a list of them");
    }
    std::erase_if(ids, [](int64_t id) { return id == -1; });  // an old way to say "none"
    for (const int64_t id : ids) {
      if (id < 0 || id > INT32_MAX) fail(given, key, "holds what is no token id");
    }
    return ids;
  }
  return {};
}

std::string_view text_of(const MappedFile& file) {
  if (file.size() > kLongestTemplate)
    throw FormatError(file.path(), FormatError::kNoOffset, "file", "is too large");
  return {reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size()};
}

void set_template(std::string_view name, std::string_view source, Metadata& canonical) {
  std::string key = "tokenizer.chat_template";
  if (name != "default") key += "." + std::string(name);
  canonical.set(std::move(key), {std::string(source), "string"});
}

// A string, or a list of {"name": …, "template": …}.
void read_template_entry(const MappedFile& file, Metadata& canonical) {
  const JsonFile json(file.path(), text_of(file));
  refuse_duplicate_keys(json);
  const auto entry = json.root().find("chat_template");
  if (!entry) return;
  if (entry->is_string()) return set_template("default", entry->string(), canonical);
  for (const JsonPlace& item : entry->elements()) {
    const std::string_view name = item["name"].string();
    if (name.empty() || !is_clean_utf8(name)) item["name"].fail("is no name");
    set_template(name, item["template"].string(), canonical);
  }
}

// Newer files stand in for the older ones' entries; templates of other names stay.
void read_templates(const Checkpoint& given, Metadata& canonical) {
  for (const char* name : {"tokenizer_config.json", "chat_template.json"}) {
    const auto file = given.attachments.find(name);
    if (file != given.attachments.end()) read_template_entry(*file->second, canonical);
  }
  const auto file = given.attachments.find("chat_template.jinja");
  if (file == given.attachments.end()) return;
  const std::string_view source = text_of(*file->second);
  if (!is_clean_utf8(source))
    throw FormatError(file->second->path(), FormatError::kNoOffset, "file", "is not UTF-8");
  set_template("default", source, canonical);
}

}  // namespace

void read_hugging_face_defaults(const Checkpoint& given, Metadata& canonical) {
  read_samplers(given, canonical);
  std::vector<int64_t> ids = stop_ids(given);
  if (!ids.empty()) canonical.set(kStopTokenIdsKey, {std::move(ids), "array of u32"});
  read_templates(given, canonical);
}

}  // namespace limpid
