#include "layouts/hugging_face.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <ranges>

#include "base/check.h"
#include "base/paths.h"
#include "base/printable.h"
#include "layouts/chat_templates.h"
#include "layouts/gpt2.h"
#include "layouts/hugging_face_llama.h"
#include "layouts/spec_reader.h"
#include "layouts/tied_head.h"

namespace limpid {
namespace {

// Finds the model class by `architectures` of config.json, or by `model_type` if there are none.
// The two must agree.
const ModelClass& class_of(const Checkpoint& given, SpecReader& config) {
  const std::vector<std::string>* classes = config.strings("architectures");
  const std::string type = config.string_or("model_type", "");
  for (const ModelClass& known : model_classes()) {
    const bool by_class =
        classes != nullptr && classes->size() == 1 && classes->front() == known.class_name;
    if (!by_class && (classes != nullptr || type != known.model_type)) continue;
    if (!type.empty() && type != known.model_type) {
      config.refuse("model_type", "is `{}`, and the class {} belongs to `{}`", printable(type),
                    known.class_name, known.model_type);
    }
    return known;
  }
  const std::string found =
      classes == nullptr ? type : fmt::format("{}", fmt::join(*classes, ", "));
  throw UnsupportedError(fmt::format(
      "{}: the model is a `{}`, which is not supported; choose one of these: {}", given.path,
      printable(found),
      fmt::join(model_classes() | std::views::transform(&ModelClass::class_name), ", ")));
}

// Keys of config.json that do not change what the model computes: they describe the file, the
// training, or the defaults of generation that generation_config.json now holds.
constexpr std::array kBookkeeping = {
    "(null)", "_name_or_path", "transformers_version", "torch_dtype", "dtype", "use_cache",
    "initializer_range", "attention_dropout", "hidden_dropout", "resid_pdrop", "embd_pdrop",
    "attn_pdrop", "pretraining_tp", "bos_token_id", "eos_token_id", "pad_token_id", "sep_token_id",
    "unk_token_id", "decoder_start_token_id", "is_decoder", "is_llama_config", "return_dict",
    "use_return_dict", "output_attentions", "output_hidden_states", "output_scores",
    "return_dict_in_generate", "torchscript", "tf_legacy_loss", "use_bfloat16",
    "chunk_size_feed_forward", "problem_type", "finetuning_task", "prefix", "tokenizer_class",
    "num_labels", "_num_labels", "output_past", "n_special", "predict_special_tokens",
    "_attn_implementation", "attn_implementation", "_attn_implementation_autoset",
    "_flash_attn_2_enabled", "unsloth_version", "unsloth_fixed", "model_max_length",
    "max_sequence_length", "gradient_checkpointing", "vocab_file", "license", "label_smoothing",
    // defaults of generation
    "max_length", "min_length", "max_new_tokens", "do_sample", "early_stopping", "num_beams",
    "num_beam_groups", "diversity_penalty", "temperature", "top_k", "top_p", "typical_p",
    "repetition_penalty", "length_penalty", "no_repeat_ngram_size", "encoder_no_repeat_ngram_size",
    "bad_words_ids", "num_return_sequences", "forced_bos_token_id", "forced_eos_token_id",
    "remove_invalid_values", "exponential_decay_length_penalty", "suppress_tokens",
    "begin_suppress_tokens"};
constexpr std::array kBookkeepingObjects = {
    "id2label",         "label2id", "auto_map", "task_specific_params", "transformers.js_config",
    "generation_config"};

void read_bookkeeping(SpecReader& config) {
  for (const char* name : kBookkeeping) config.ignore(name);
  for (const char* name : kBookkeepingObjects) config.ignore_all_below(name);
  for (const char* name : {"is_encoder_decoder", "add_cross_attention", "tie_encoder_decoder",
                           "cross_attention_hidden_size"}) {
    config.require_neutral(name, 0);
  }
}

// Quantised safetensors (GPTQ, AWQ, …) keep packed integers under the usual tensor names. Reading
// them as plain matrices would give nonsense, so the configuration is checked first.
void refuse_quantized(const Checkpoint& given, const SpecReader& config) {
  for (const char* name : {"quantization_config", "compression_config"}) {
    const std::string below = fmt::format("config.{}.", name);
    if (given.metadata.below(below).empty()) continue;
    const MetadataValue* found = given.metadata.find(below + "quant_method");
    const auto* method = found == nullptr ? nullptr : std::get_if<std::string>(&found->value);
    config.refuse(name,
                  "says that the weights are quantised{}; only F32, F16 and BF16 are read from "
                  "safetensors: use the unquantised model or a GGUF file",
                  method == nullptr ? "" : fmt::format(" ({})", printable(*method)));
  }
}

// Three checks together catch everything that could make the output wrong without an error:
// SpecReader refuses an unknown key, translate_names refuses an unknown tensor, and check_presence
// refuses a tensor that contradicts the configuration.
void check_presence(const Checkpoint& canonical, const NameTable& names, const std::string& tensor,
                    bool expected, std::string_view why) {
  if ((canonical.find(tensor) != nullptr) == expected) return;
  throw_format_error(canonical.path, their_name(names, tensor).value_or(tensor), "{}, but {}",
                     expected ? "is missing" : "is present", why);
}

constexpr std::string_view kGenerationFile = "generation_config.json";
constexpr std::string_view kGenerationPrefix = "generation_config.";

// The path of the file that has a key of `generation_config.` or `config.`.
std::string file_of(const Checkpoint& given, std::string_view key) {
  return fmt::format("{}/{}.json", given.path, key.substr(0, key.find('.')));
}

// Copies a number to general.sampling.NAME. `whole`: the key is an integer in GGUF; JSON may write
// it as 40.0.
void set_number(const Checkpoint& given, const char* name, const char* ours, bool whole,
                Metadata& canonical) {
  const std::string key = fmt::format("{}{}", kGenerationPrefix, name);
  const MetadataValue* found = given.metadata.find(key);
  if (found == nullptr) return;
  const double value = found->is_number() ? *given.metadata.number(key) : -1;
  if (!std::isfinite(value) || value < 0)
    throw_format_error(file_of(given, key), name, "is not a number of at least 0; correct it");
  const std::string full = std::string("general.sampling.") + ours;
  if (!whole) return canonical.set(full, {double{static_cast<float>(value)}, "f32"});
  if (value != std::floor(value) || value > INT32_MAX) {
    throw_format_error(file_of(given, key), name,
                       "is {}, expected a whole number of at most {}; correct it", value,
                       INT32_MAX);
  }
  canonical.set(full, {static_cast<int64_t>(value), "i32"});
}

void read_samplers(const Checkpoint& given, Metadata& canonical) {
  set_number(given, "temperature", "temp", false, canonical);
  set_number(given, "top_k", "top_k", true, canonical);
  set_number(given, "top_p", "top_p", false, canonical);
  set_number(given, "min_p", "min_p", false, canonical);
  set_number(given, "repetition_penalty", "penalty_repeat", false, canonical);
  // An explicit `do_sample: false` asks for greedy decoding (temperature 0). An absent key says
  // nothing.
  const std::string key = fmt::format("{}do_sample", kGenerationPrefix);
  const MetadataValue* do_sample = given.metadata.find(key);
  if (do_sample == nullptr) return;
  const bool* samples = std::get_if<bool>(&do_sample->value);
  if (samples == nullptr)
    throw_format_error(file_of(given, key), "do_sample", "is neither true nor false; correct it");
  if (!*samples) canonical.set("general.sampling.temp", {0.0, "f32"});
}

std::vector<int64_t> stop_ids(const Checkpoint& given) {
  for (const char* key : {"generation_config.eos_token_id", "config.eos_token_id"}) {
    const MetadataValue* found = given.metadata.find(key);
    if (found == nullptr || found->type_name == kEmptyArray) continue;
    std::vector<int64_t> ids;
    if (const auto* one = std::get_if<int64_t>(&found->value)) {
      ids = {*one};
    } else if (const auto* several = std::get_if<std::vector<int64_t>>(&found->value)) {
      ids = *several;
    } else {
      throw_format_error(file_of(given, key), "eos_token_id",
                         "is neither a token id nor a list of them");
    }
    std::erase_if(ids, [](int64_t id) { return id == -1; });  // older files write -1 for "none"
    for (const int64_t id : ids) {
      if (id < 0 || id > INT32_MAX)
        throw_format_error(file_of(given, key), "eos_token_id", "contains an invalid token id");
    }
    return ids;
  }
  return {};
}

// sentence-transformers says in 1_Pooling/config.json how the hidden states become one embedding:
// by a name, or in older files by a flag for each way. GGUF has a number.
void read_pooling(const Checkpoint& given, std::string_view architecture, Metadata& canonical) {
  const std::string key = "pooling.pooling_mode";
  std::string mode(given.metadata.string(key).value_or(""));
  bool is_there = !mode.empty();
  for (const auto& [flag, value] : given.metadata.below(key + "_")) {
    is_there = true;
    if (given.metadata.boolean(flag).value())
      mode += (mode.empty() ? "" : " and ") + flag.substr(key.size() + 1);
  }
  if (!is_there) return;
  constexpr std::array<std::pair<std::string_view, int64_t>, 5> kModes = {
      {{"mean", 1}, {"mean_tokens", 1}, {"cls", 2}, {"cls_token", 2}, {"lasttoken", 3}}};
  const auto* found = std::ranges::find(kModes, mode, &std::pair<std::string_view, int64_t>::first);
  LIMPID_CHECK(UnsupportedError, found != kModes.end(),
               "{}/1_Pooling/config.json: pooling by `{}`; Limpid supports mean, cls and lasttoken",
               given.path, printable(mode));
  canonical.set(fmt::format("{}.pooling_type", architecture), {found->second, "u32"});
}

// Reads generation_config.json, and config.json for values that the first file does not state, into
// GGUF's keys general.sampling.* and into kStopTokenIdsKey.
void read_generation_keys(const Checkpoint& given, Metadata& canonical) {
  read_samplers(given, canonical);
  std::vector<int64_t> ids = stop_ids(given);
  if (!ids.empty()) canonical.set(kStopTokenIdsKey, {std::move(ids), "array of u32"});
}

}  // namespace

const NameTable& hugging_face_names(const ModelClass& model_class) {
  return model_class.family == Family::kGpt2 ? kGpt2Conv1dNames : kHuggingFaceLlamaNames;
}

HuggingFaceConfig read_hugging_face_config(const Checkpoint& given) {
  SpecReader reader(given, "config");
  HuggingFaceConfig config;
  config.model_class = &class_of(given, reader);
  refuse_quantized(given, reader);
  const ModelClass& model_class = *config.model_class;
  config.canonical.set("general.architecture", {std::string(model_class.architecture), "string"});
  config.parts = model_class.family == Family::kGpt2
                     ? read_hugging_face_gpt2(reader, model_class, config.canonical)
                     : read_hugging_face_llama(reader, model_class, config.canonical);
  read_bookkeeping(reader);
  reader.refuse_the_rest();
  if (const MetadataValue* range = given.metadata.find("config.initializer_range"))
    config.canonical.set(kInitializerRangeKey, *range);
  return config;
}

// The attachment's own path is not used in messages: a cache of downloads may call it by its hash.
void read_generation_config(const Checkpoint& given, Metadata& canonical) {
  const auto file = given.attachments.find(kGenerationFile);
  if (file == given.attachments.end()) return;
  Checkpoint stated;
  stated.path = is_folder(given.path) ? given.path : folder_of(given.path).string();
  add_json(fmt::format("{}/{}", stated.path, kGenerationFile), text_of(*file->second),
           std::string(kGenerationPrefix), stated.metadata);
  read_generation_keys(stated, canonical);
}

// GPT-2 always has biases, which one tensor shows. For the Llama family, every optional tensor of
// every block is checked.
void apply_parts(const HuggingFaceConfig& config, Checkpoint& canonical) {
  const ModelClass& model_class = *config.model_class;
  const NameTable& names = hugging_face_names(model_class);
  resolve_output_weight(canonical, config.parts.tied);
  if (model_class.family == Family::kGpt2)
    return check_presence(canonical, names, "output_norm.bias", true, "GPT-2 has biases");
  const int64_t n_layers =
      config.canonical.integer(fmt::format("{}.block_count", model_class.architecture)).value();
  for (const OptionalTensor& optional : optional_tensors()) {
    const bool expected = config.parts.*optional.part;
    const Presence presence = presence_of(optional.part, model_class);
    const std::string why =
        presence.when == Presence::When::kIfConfigured
            ? fmt::format("{} is {}", presence.key, expected)
            : fmt::format("a {} {} it", model_class.class_name, expected ? "has" : "never has");
    for (int64_t i = 0; i < n_layers; ++i)
      check_presence(canonical, names, fmt::format("blk.{}.{}", i, optional.name), expected, why);
  }
}

// The steps: configuration -> keys, generation defaults -> keys, tensor names, and the consistency
// check.
Checkpoint canonical_from_hugging_face(const Checkpoint& given) {
  HuggingFaceConfig config = read_hugging_face_config(given);
  read_generation_keys(given, config.canonical);
  read_pooling(given, config.model_class->architecture, config.canonical);
  Checkpoint result = translate_names(given, hugging_face_names(*config.model_class));
  set_chat_templates(result.attachments, config.canonical);
  result.metadata = config.canonical;
  result.naming = Naming::kGguf;
  result.row_order = config.model_class->row_order;
  apply_parts(config, result);
  return result;
}

}  // namespace limpid
