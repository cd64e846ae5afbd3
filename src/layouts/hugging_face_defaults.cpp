#include "layouts/hugging_face_defaults.h"

#include <fmt/format.h>

#include <cmath>
#include <optional>

#include "layouts/chat_templates.h"
#include "limpid/error.hpp"

namespace limpid {
namespace {

[[noreturn]] void fail(const Checkpoint& given, const std::string& key, const char* problem) {
  throw FormatError(given.path, FormatError::kNoOffset, key, problem);
}

// Copies a number to general.sampling.NAME. `whole`: the key is an integer in GGUF.
void set_number(const Checkpoint& given, const char* name, const char* ours, bool whole,
                Metadata& canonical) {
  const std::string key = std::string("generation_config.") + name;
  const std::optional<double> value = given.metadata.number(key);
  if (!value) return;
  if (!std::isfinite(*value) || *value < 0) fail(given, key, "is not a number of at least 0");
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
  // An explicit `do_sample: false` asks for greedy decoding (temperature 0). An absent key says
  // nothing.
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
    std::erase_if(ids, [](int64_t id) { return id == -1; });  // older files write -1 for "none"
    for (const int64_t id : ids) {
      if (id < 0 || id > INT32_MAX) fail(given, key, "contains an invalid token id");
    }
    return ids;
  }
  return {};
}

}  // namespace

void read_hugging_face_defaults(const Checkpoint& given, Metadata& canonical) {
  read_samplers(given, canonical);
  std::vector<int64_t> ids = stop_ids(given);
  if (!ids.empty()) canonical.set(kStopTokenIdsKey, {std::move(ids), "array of u32"});
  set_chat_templates(given.attachments, canonical);
}

}  // namespace limpid
