#include "layouts/spec_reader.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/check.h"
#include "base/paths.h"
#include "base/text.h"

namespace limpid {
namespace {

// The prefixes of keys that are not in the file itself but in a JSON file: in config.json or
// params.json of a folder, or in what the user gave.
constexpr std::array<std::string_view, 4> kJsonFiles = {"config", "params", "given", "adapter"};

}  // namespace

// Examples: the key "config.n_embd" of the folder gpt2/ is "gpt2/config.json: n_embd" in a message,
// and "llama.block_count" of a GGUF file keeps its name.
SpecReader::SpecReader(const Checkpoint& checkpoint, std::string prefix)
    : checkpoint_(checkpoint), prefix_(std::move(prefix)), file_(checkpoint.path) {
  const std::string_view name = std::string_view(prefix_).substr(0, prefix_.find('.'));
  if (std::ranges::find(kJsonFiles, name) == kJsonFiles.end()) return;
  hidden_ = std::string(name) + ".";
  const std::string in_folder = fmt::format("{}/{}.json", file_, name);
  if (is_there(in_folder)) {
    file_ = in_folder;
  } else if (!file_.ends_with(".json")) {
    file_ = checkpoint.given_config;
  }
}

std::string SpecReader::shown(std::string_view name) const {
  return (prefix_ + "." + std::string(name)).substr(hidden_.size());
}

std::string SpecReader::key(std::string_view name) {
  std::string full = prefix_ + "." + std::string(name);
  asked_.insert(full);
  return full;
}

// Metadata names only the key of a value of another type; here the file takes the place of the
// prefix.
template <typename Value>
Value SpecReader::typed(std::string_view name, Value (Metadata::*get)(std::string_view) const) {
  const std::string full = key(name);
  try {
    return (checkpoint_.metadata.*get)(full);
  } catch (const UnsupportedError& error) {
    throw UnsupportedError(fmt::format("{}: {}", file_, replaced(error.what(), full, shown(name))));
  }
}

int64_t SpecReader::required_size(std::string_view name, int64_t largest) {
  const std::optional<int64_t> value = size(name, largest);
  if (!value) fail(name, "is missing; the model cannot be run without it");
  return *value;
}

std::optional<int64_t> SpecReader::integer(std::string_view name) {
  return typed(name, &Metadata::integer);
}

std::optional<int64_t> SpecReader::size(std::string_view name, int64_t largest) {
  const std::optional<int64_t> value = integer(name);
  if (value && (*value < 1 || *value > largest))
    fail(name, "is {}, expected 1 to {}", *value, largest);
  return value;
}

int64_t SpecReader::size_or(std::string_view name, int64_t fallback, int64_t largest) {
  return size(name, largest).value_or(fallback);
}

int64_t SpecReader::count_or(std::string_view name, int64_t fallback, int64_t largest) {
  const int64_t value = integer(name).value_or(fallback);
  if (value < 0 || value > largest) fail(name, "is {}, expected 0 to {}", value, largest);
  return value;
}

double SpecReader::required_positive(std::string_view name) {
  if (!contains(name)) fail(name, "is missing; the model cannot be run without it");
  return positive_or(name, 1);
}

double SpecReader::positive_or(std::string_view name, double fallback) {
  const double value = typed(name, &Metadata::number).value_or(fallback);
  if (!std::isfinite(value) || value <= 0) fail(name, "is {}, expected a number above 0", value);
  return value;
}

std::string SpecReader::string_or(std::string_view name, std::string_view fallback) {
  return std::string(typed(name, &Metadata::string).value_or(fallback));
}

bool SpecReader::flag_or(std::string_view name, bool fallback) {
  return typed(name, &Metadata::boolean).value_or(fallback);
}

const std::vector<std::string>* SpecReader::strings(std::string_view name) {
  return typed(name, &Metadata::strings);
}

bool SpecReader::contains(std::string_view name) const {
  return checkpoint_.metadata.contains(prefix_ + "." + std::string(name));
}

int64_t SpecReader::vocab_size() {
  const TensorView* embedding = checkpoint_.find("token_embd.weight");
  if (embedding == nullptr || embedding->shape.rank() != 2) {
    throw_format_error(
        checkpoint_.path, "token_embd.weight",
        "is missing or not a matrix; the file does not hold a runnable model (only a vocabulary?): "
        "name the file with the weights");
  }
  const int64_t n_rows = embedding->shape[0];
  const int64_t stated = size_or("vocab_size", n_rows, kLargestSize);
  if (stated != n_rows)
    fail("vocab_size", "is {}, but token_embd.weight has {} rows", stated, n_rows);
  return n_rows;
}

void SpecReader::ignore(std::string_view name) { key(name); }

void SpecReader::ignore_all_below(std::string_view name) {
  const std::string beginning = prefix_ + "." + std::string(name) + ".";
  for (const auto& [full, value] : checkpoint_.metadata.below(beginning)) asked_.insert(full);
}

void SpecReader::require_neutral(std::string_view name, double neutral) {
  const std::string full = key(name);
  const MetadataValue* found = checkpoint_.metadata.find(full);
  if (found == nullptr) return;
  const bool* flag = std::get_if<bool>(&found->value);
  const double value =
      flag != nullptr ? static_cast<double>(*flag) : typed(name, &Metadata::number).value();
  LIMPID_CHECK(UnsupportedError, value == neutral,
               "{}: {} is {}; Limpid runs only models where it is {}", file_, shown(name), value,
               neutral);
}

void SpecReader::require_plain_transformer(int64_t n_ctx_train) {
  for (const char* name :
       {"expert_count", "expert_used_count", "attention.clamp_kqv", "attention.max_alibi_bias",
        "attn_logit_softcapping", "final_logit_softcapping", "use_parallel_residual"}) {
    require_neutral(name, 0);
  }
  for (const char* name :
       {"attention.causal", "logit_scale", "embedding_scale", "residual_scale"}) {
    require_neutral(name, 1);
  }
  const int64_t window = size_or("attention.sliding_window", n_ctx_train, INT64_MAX);
  LIMPID_CHECK(UnsupportedError, window >= n_ctx_train,
               "the model attends within a sliding window of {} tokens (attention.sliding_window), "
               "which Limpid does not implement",
               window);
  ignore("tensor_data_layout");
  ignore("pooling_type");  // of embeddings: model_pooling reads it
  refuse_the_rest();
}

// The metadata of a checkpoint contain keys of several readers; only those with this reader's
// prefix are checked.
void SpecReader::refuse_the_rest() const {
  for (const auto& [name, value] : checkpoint_.metadata.below(prefix_ + ".")) {
    LIMPID_CHECK(UnsupportedError, asked_.contains(name),
                 "{}: unknown key {}, which may change the result", file_,
                 name.substr(hidden_.size()));
  }
}

}  // namespace limpid
