#include "layouts/hugging_face_gpt2.h"

#include "layouts/gpt2_config.h"
#include "limpid/error.hpp"

namespace limpid {
namespace {

void require(SpecReader& config, const std::optional<int64_t>& size, const char* name) {
  if (!size) config.fail(name, "is missing; the model cannot be run without it");
}

}  // namespace

OptionalParts read_hugging_face_gpt2(SpecReader& config, const ModelClass& model_class,
                                     Metadata& canonical) {
  Gpt2Config read = read_gpt2_config(config);
  require(config, read.n_layers, "n_layer");
  require(config, read.n_heads, "n_head");
  require(config, read.d_model, "n_embd");
  require(config, read.n_ctx, "n_positions");
  require(config, read.vocab_size, "vocab_size");
  if (read.has_biases) config.refuse("bias", "is not a key of GPT-2 in transformers");
  if (!read.activation) read.activation = "gelu_tanh";
  if (!read.d_ff) read.d_ff = 4 * *read.d_model;
  // Keys of classification heads. A causal language model does not use them.
  for (const char* name : {"summary_activation", "summary_first_dropout", "summary_proj_to_labels",
                           "summary_type", "summary_use_proj"}) {
    config.ignore(name);
  }
  set_gpt2_keys(read, canonical);
  return {.tied = read.tied.value_or(model_class.tied)};
}

}  // namespace limpid
