#include "layouts/hugging_face.h"

#include <array>

#include "base/check.h"
#include "checkpoint/byte_reader.h"
#include "layouts/gpt2_names.h"
#include "layouts/hugging_face_defaults.h"
#include "layouts/hugging_face_gpt2.h"
#include "layouts/hugging_face_llama.h"

namespace limpid {
namespace {

// Known by class. A new relative is a line here, and keys and names where its reader is.
constexpr std::array kFamilies = {
    HuggingFaceFamily{"LlamaForCausalLM", "llama", "llama", &kHuggingFaceLlamaNames,
                      read_hugging_face_llama},
    HuggingFaceFamily{"MistralForCausalLM", "mistral", "llama", &kHuggingFaceLlamaNames,
                      read_hugging_face_llama},
    HuggingFaceFamily{"Qwen2ForCausalLM", "qwen2", "qwen2", &kHuggingFaceLlamaNames,
                      read_hugging_face_llama},
    HuggingFaceFamily{"Qwen3ForCausalLM", "qwen3", "qwen3", &kHuggingFaceLlamaNames,
                      read_hugging_face_llama},
    HuggingFaceFamily{"Ernie4_5ForCausalLM", "ernie4_5", "ernie4_5", &kHuggingFaceLlamaNames,
                      read_hugging_face_llama, RowOrder::kInterleavedPairs, "use_bias"},
    HuggingFaceFamily{"GPT2LMHeadModel", "gpt2", "gpt2", &kGpt2Conv1dNames, read_hugging_face_gpt2},
};

std::string class_names() {
  std::string names;
  for (const HuggingFaceFamily& family : kFamilies)
    names += (names.empty() ? "" : ", ") + std::string(family.class_name);
  return names;
}

const HuggingFaceFamily& find_family(const Checkpoint& given, SpecReader& config) {
  const std::vector<std::string>* classes = config.strings("architectures");
  const std::string type = config.string_or("model_type", "");
  for (const HuggingFaceFamily& family : kFamilies) {
    const bool by_class =
        classes != nullptr && classes->size() == 1 && classes->front() == family.class_name;
    if (!by_class && (classes != nullptr || type != family.model_type)) continue;
    if (!type.empty() && type != family.model_type) {
      config.refuse("model_type",
                    fmt::format("is `{}`, and the class {} belongs to `{}`", printable(type),
                                family.class_name, family.model_type));
    }
    return family;
  }
  std::string found = type;
  if (classes != nullptr) {
    found.clear();
    for (const std::string& name : *classes) found += (found.empty() ? "" : ", ") + name;
  }
  throw UnsupportedError(
      fmt::format("{}: the model is a `{}`, which is not supported; "
                  "choose one of these: {}",
                  given.path, printable(found), class_names()));
}

// Keys of config.json that describe the file, the training, or defaults of generation that
// generation_config.json now holds; none changes what the model computes.
constexpr std::array kBookkeeping = {
    "(null)", "_name_or_path", "transformers_version", "torch_dtype", "dtype", "use_cache",
    "initializer_range", "attention_dropout", "hidden_dropout", "resid_pdrop", "embd_pdrop",
    "attn_pdrop", "pretraining_tp", "bos_token_id", "eos_token_id", "pad_token_id", "sep_token_id",
    "unk_token_id", "decoder_start_token_id", "is_decoder", "is_llama_config", "return_dict",
    "use_return_dict", "output_attentions", "output_hidden_states", "output_scores",
    "return_dict_in_generate", "torchscript", "tf_legacy_loss", "use_bfloat16",
    "chunk_size_feed_forward", "problem_type", "finetuning_task", "prefix", "tokenizer_class",
    "_attn_implementation", "attn_implementation", "_attn_implementation_autoset",
    "unsloth_version", "unsloth_fixed", "model_max_length", "max_sequence_length",
    "gradient_checkpointing", "vocab_file", "license", "label_smoothing",
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

void refuse_quantized(const Checkpoint& given) {
  constexpr std::string_view kBeginnings[] = {"config.quantization_config.",
                                              "config.compression_config."};
  for (const std::string_view beginning : kBeginnings) {
    const auto& all = given.metadata.all();
    const auto at = all.lower_bound(beginning);
    if (at == all.end() || !at->first.starts_with(beginning)) continue;
    const std::string_view* method = nullptr;
    const auto name = given.metadata.find(std::string(beginning) + "quant_method");
    std::string_view found;
    if (name != nullptr) {
      if (const auto* text = std::get_if<std::string>(&name->value)) {
        found = *text;
        method = &found;
      }
    }
    throw UnsupportedError(fmt::format(
        "{}: {} says that the weights are quantised{}; only F32, F16 and BF16 are read from "
        "safetensors: take the unquantised model, or a GGUF",
        given.path, beginning.substr(0, beginning.size() - 1),
        method == nullptr ? std::string() : fmt::format(" ({})", printable(*method))));
  }
}

}  // namespace

const HuggingFaceFamily* find_hugging_face_family(std::string_view architecture) {
  for (const HuggingFaceFamily& family : kFamilies) {
    if (family.architecture == architecture) return &family;
  }
  return nullptr;
}

HuggingFaceKeys read_hugging_face_config(const Checkpoint& given) {
  SpecReader config(given, "config");
  HuggingFaceKeys keys;
  keys.family = &find_family(given, config);
  refuse_quantized(given);
  keys.canonical.set("general.architecture", {std::string(keys.family->architecture), "string"});
  keys.finish = keys.family->read_config(config, *keys.family, keys.canonical);
  read_bookkeeping(config);
  config.refuse_the_rest();
  return keys;
}

Checkpoint canonical_from_hugging_face(const Checkpoint& given) {
  HuggingFaceKeys keys = read_hugging_face_config(given);
  read_hugging_face_defaults(given, keys.canonical);

  Checkpoint result = translate_names(given, *keys.family->names);
  result.metadata = std::move(keys.canonical);
  result.naming = Naming::kGguf;
  result.row_order = keys.family->row_order;
  keys.finish(result);
  return result;
}

}  // namespace limpid
