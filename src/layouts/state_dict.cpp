#include "layouts/state_dict.h"

#include <algorithm>
#include <array>

#include "base/check.h"
#include "base/printable.h"
#include "layouts/chat_templates.h"
#include "layouts/gpt2.h"
#include "layouts/hugging_face.h"
#include "layouts/name_table.h"
#include "layouts/spec_reader.h"
#include "layouts/tied_head.h"

namespace limpid {
namespace {

constexpr const char* kGiven = "given";
// Dictionaries in which training scripts keep the model's hyper-parameters, the most likely first.
constexpr std::array<const char*, 6> kContainers = {"state.model_args", "state.model_config",
                                                    "state.config",     "state.args",
                                                    "state.hparams",    "state"};

// Names may have prefixes, so the model is recognised by the end of a name.
bool has_suffix(const Checkpoint& checkpoint, std::string_view suffix) {
  return std::ranges::any_of(checkpoint.tensor_order,
                             [&](const std::string& name) { return name.ends_with(suffix); });
}

// Conv1D stores c_attn as [d, 3 d], nn.Linear stores it as [3 d, d]. The shape therefore tells
// which table applies.
const NameTable& gpt2_names(const Checkpoint& checkpoint) {
  for (const auto& [name, tensor] : checkpoint.tensors) {
    if (!name.ends_with("attn.c_attn.weight") || tensor.shape.rank() != 2) continue;
    return tensor.shape[1] == 3 * tensor.shape[0] ? kGpt2Conv1dNames : kGpt2LinearNames;
  }
  return kGpt2LinearNames;
}

// Reads the sizes that the shapes of the tensors show.
Gpt2Config config_of_shapes(const Checkpoint& checkpoint) {
  Gpt2Config config;
  const auto shape_of = [&](const std::string& name) {
    const TensorView* tensor = checkpoint.find(name);
    if (tensor == nullptr || tensor->shape.rank() != 2) {
      throw_format_error(
          checkpoint.path, name,
          "is missing or not a matrix; the state dictionary is not a complete GPT-2");
    }
    return tensor->shape;
  };
  config.vocab_size = shape_of("token_embd.weight")[0];
  config.d_model = shape_of("token_embd.weight")[1];
  config.n_ctx = shape_of("position_embd.weight")[0];
  config.d_ff = shape_of("blk.0.ffn_up.weight")[0];
  int64_t n_layers = 0;
  while (checkpoint.find(fmt::format("blk.{}.attn_norm.weight", n_layers)) != nullptr) ++n_layers;
  config.n_layers = n_layers;
  config.has_biases = checkpoint.find("output_norm.bias") != nullptr;
  return config;
}

// Fills a value that `into` lacks. Throws FormatError when both have a value and the values differ.
template <typename T>
void merge(std::optional<T>& into, const std::optional<T>& other, const Checkpoint& checkpoint,
           const char* name, std::string_view where) {
  if (into && other && *into != *other) {
    throw_format_error(checkpoint.path, name, "is {} {}, and {} by the shapes of the tensors",
                       *into, where, *other);
  }
  if (!into) into = other;
}

// Reads those of the file's own hyper-parameters that `into` lacks, from the first dictionary that
// states each. A training configuration contains many other entries, so unknown keys are ignored
// here.
void read_file_config(const Checkpoint& checkpoint, Gpt2Config& into) {
  for (const char* container : kContainers) {
    SpecReader reader(checkpoint, container);
    read_gpt2_config(reader, into);
  }
}

// Reads the user's configuration. The user means every key, so an unknown key is refused.
Gpt2Config config_of_user(const Checkpoint& checkpoint) {
  SpecReader reader(checkpoint, kGiven);
  Gpt2Config config;
  read_gpt2_config(reader, config);
  for (const char* name :
       {"(null)", "dropout", "attn_pdrop", "embd_pdrop", "resid_pdrop", "initializer_range",
        "architectures", "model_type", "torch_dtype", "dtype", "transformers_version", "use_cache",
        "bos_token_id", "eos_token_id"}) {
    reader.ignore(name);
  }
  ignore_summary(reader);
  reader.ignore_all_below("task_specific_params");
  reader.refuse_the_rest();
  return config;
}

// Asks the user for a hyper-parameter that no source states.
[[noreturn]] void ask_for(const Checkpoint& checkpoint, std::string_view what,
                          std::string_view example) {
  throw UnsupportedError(
      fmt::format("{}: the state dictionary does not say {}, and the tensors do not show it; give "
                  "OpenOptions::config, a file or the JSON itself: {}",
                  checkpoint.path, what, example));
}

// Precedence: the user's configuration, then the file's, then the shapes; but shapes must agree
// with both.
Checkpoint canonical_gpt2(const Checkpoint& given) {
  Checkpoint result = translate_names(given, gpt2_names(given));
  const Gpt2Config shapes = config_of_shapes(result);
  const auto agree = [&](Gpt2Config& config, std::string_view where) {
    merge(config.n_layers, shapes.n_layers, result, "n_layer", where);
    merge(config.d_model, shapes.d_model, result, "n_embd", where);
    merge(config.d_ff, shapes.d_ff, result, "n_inner", where);
    merge(config.n_ctx, shapes.n_ctx, result, "block_size", where);
    merge(config.vocab_size, shapes.vocab_size, result, "vocab_size", where);
    merge(config.has_biases, shapes.has_biases, result, "bias", where);
  };
  Gpt2Config file;
  read_file_config(given, file);
  agree(file, "in the file");
  Gpt2Config config = config_of_user(given);
  agree(config, "in " + given.given_config);
  read_file_config(given, config);
  if (!config.n_heads) ask_for(result, "how many heads there are", R"({"n_head": 12})");
  if (!config.activation) {
    ask_for(result, "which GELU it was trained with",
            R"({"activation_function": "gelu"} for the exact one, torch's nn.GELU(), )"
            R"("gelu_new" for the tanh of OpenAI's GPT-2)");
  }
  resolve_output_weight(result, config.tied);
  set_gpt2_keys(config, result.metadata);
  read_generation_config(given, result.metadata);
  set_chat_templates(result.attachments, result.metadata);
  result.naming = Naming::kGguf;
  return result;
}

}  // namespace

Checkpoint canonical_from_state_dict(Checkpoint given) {
  if (has_suffix(given, "wpe.weight") || has_suffix(given, "pos_emb.weight") ||
      has_suffix(given, "pos_emb")) {
    return canonical_gpt2(given);
  }
  std::string names;
  for (size_t i = 0; i < std::min<size_t>(3, given.tensor_order.size()); ++i)
    names += (i == 0 ? "" : ", ") + printable(given.tensor_order[i]);
  throw UnsupportedError(fmt::format(
      "{}: the tensors ({}, …) do not belong to a model that Limpid knows (it knows the state "
      "dictionaries of nanoGPT and minGPT)",
      given.path, names));
}

}  // namespace limpid
