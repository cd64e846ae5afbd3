#include "layouts/meta.h"

#include <algorithm>
#include <array>
#include <string>

#include "base/check.h"
#include "base/divide_up.h"
#include "checkpoint/metadata.h"
#include "layouts/chat_templates.h"
#include "layouts/hugging_face.h"
#include "layouts/rope_scaling.h"
#include "layouts/spec_reader.h"
#include "layouts/tied_head.h"

namespace limpid {
namespace {

constexpr std::array kRules = {
    NameRule{"tok_embeddings.weight", "token_embd.weight"},
    NameRule{"layers.{}.attention_norm.weight", "blk.{}.attn_norm.weight"},
    NameRule{"layers.{}.attention.wq.weight", "blk.{}.attn_q.weight"},
    NameRule{"layers.{}.attention.wk.weight", "blk.{}.attn_k.weight"},
    NameRule{"layers.{}.attention.wv.weight", "blk.{}.attn_v.weight"},
    NameRule{"layers.{}.attention.wo.weight", "blk.{}.attn_output.weight"},
    NameRule{"layers.{}.ffn_norm.weight", "blk.{}.ffn_norm.weight"},
    NameRule{"layers.{}.feed_forward.w1.weight", "blk.{}.ffn_gate.weight"},
    NameRule{"layers.{}.feed_forward.w2.weight", "blk.{}.ffn_down.weight"},
    NameRule{"layers.{}.feed_forward.w3.weight", "blk.{}.ffn_up.weight"},
    NameRule{"norm.weight", "output_norm.weight"},
    NameRule{"output.weight", "output.weight"},
};
// Rotation angles and masks. Limpid computes them from the parameters.
constexpr std::array<UnusedRule, 5> kUnused = {{{"rope.freqs"},
                                                {"layers.{}.attention.inner_attention.rope.freqs"},
                                                {"freqs_cos"},
                                                {"freqs_sin"},
                                                {"layers.{}.attention.mask"}}};
constexpr std::array<OptionalPrefix, 2> kPrefixes = {{{"_orig_mod."}, {"module."}}};

// Meta's folders contain no chat template. This one reproduces ChatFormat.encode_dialog_prompt of
// llama3/tokenizer.py and its successors. It is used for a vocabulary of kLlama3Vocabulary tokens,
// the size in Meta's releases since Llama 3.
constexpr int64_t kLlama3Vocabulary = 128256;
constexpr const char* kLlama3ChatTemplate =
    "<|begin_of_text|>"
    "{%- for message in messages -%}"
    "{{ '<|start_header_id|>' + message['role'] + '<|end_header_id|>\n\n' }}"
    "{{- message['content'] | trim + '<|eot_id|>' }}"
    "{%- endfor -%}"
    "{%- if add_generation_prompt -%}"
    "{{ '<|start_header_id|>assistant<|end_header_id|>\n\n' }}"
    "{%- endif -%}";

// The prefix of the parameters: that of params.json, or a dictionary of a training script.
std::string prefix_of_params(const Checkpoint& checkpoint) {
  for (const char* prefix :
       {"params.model", "params", "state.model_args", "state.params", "state.args"}) {
    if (checkpoint.metadata.contains(prefix + std::string(".dim"))) return prefix;
  }
  throw_format_error(checkpoint.path, "dim",
                     "is missing: neither the weights nor a params.json state the model's "
                     "parameters; give Meta's params.json as OpenOptions::config");
}

// The number of positions that the model was trained on. params.json does not contain it, so it is
// inferred from parameters that differ between Meta's releases.
int64_t context_length(SpecReader& params, double norm_eps, double rope_theta, bool scaled_rope) {
  if (const auto stated = params.size("max_seq_len", kLargestSize)) return *stated;
  if (scaled_rope) return 131072;           // Llama 3.1, 3.2, 3.3
  if (rope_theta == 500000) return 8192;    // Llama 3
  if (rope_theta == 1000000) return 16384;  // Code Llama
  return norm_eps == 1e-6 ? 2048 : 4096;    // Llama 1, Llama 2
}

// Returns the width of the MLP. params.json states either the width or what Meta's rule computes it
// from. The tensors are compared with it, because a difference means that parameters and weights
// belong to different models. A checkpoint without tensors is only a configuration.
int64_t read_hidden_size(const Checkpoint& checkpoint, SpecReader& params, int64_t d_model) {
  const auto stated = params.size("hidden_dim", kLargestSize);
  const int64_t multiple_of = params.size_or("multiple_of", 256, kLargestSize);
  const double multiplier = params.positive_or("ffn_dim_multiplier", 1.0);
  constexpr double kLargestMultiplier = 1024;
  if (multiplier > kLargestMultiplier)
    params.fail("ffn_dim_multiplier", "is {}, more than {}", multiplier, kLargestMultiplier);
  const int64_t expected = stated.value_or(meta_hidden_size(d_model, multiple_of, multiplier));
  if (checkpoint.tensors.empty()) return expected;
  const TensorView* gate = checkpoint.find("blk.0.ffn_gate.weight");
  if (gate == nullptr || gate->shape.rank() != 2) {
    throw_format_error(checkpoint.path, "layers.0.feed_forward.w1.weight",
                       "is missing or not a matrix");
  }
  if (const int64_t rows = gate->shape[0]; rows != expected) {
    params.fail(stated ? "hidden_dim" : "multiple_of",
                "layers.0.feed_forward.w1.weight has {} rows, and the parameters ask for {}{}",
                rows, expected,
                rows > 0 && expected % rows == 0 ? "; is a consolidated.NN.pth missing?" : "");
  }
  return expected;
}

}  // namespace

constinit const NameTable kMetaNames{kRules, kUnused, kPrefixes};

bool has_meta_names(const Checkpoint& checkpoint) {
  return std::ranges::any_of(checkpoint.tensor_order, [](const std::string& name) {
    return our_name(kMetaNames, name) == "token_embd.weight";
  });
}

int64_t meta_hidden_size(int64_t d_model, int64_t multiple_of, double multiplier) {
  const int64_t two_thirds = 8 * d_model / 3;
  const auto widened = static_cast<int64_t>(multiplier * static_cast<double>(two_thirds));
  return divide_up(widened, multiple_of) * multiple_of;
}

// Meta's defaults apply to absent parameters.
Metadata read_meta_params(const Checkpoint& checkpoint) {
  SpecReader params(checkpoint, prefix_of_params(checkpoint));
  Metadata metadata;
  metadata.set("general.architecture", {std::string("llama"), "string"});
  KeyWriter keys(metadata, "llama.");
  const int64_t d_model = params.required_size("dim", kLargestSize);
  const int64_t n_heads = params.required_size("n_heads", kLargestSize);
  const int64_t head_dim = params.size_or("head_dim", d_model / n_heads, kLargestSize);
  const double norm_eps = params.positive_or("norm_eps", 1e-5);
  const double rope_theta = params.positive_or("rope_theta", 10000.0);
  const bool scaled_rope = params.flag_or("use_scaled_rope", false);
  keys.integer("embedding_length", d_model);
  keys.integer("block_count", params.required_size("n_layers", kLargestSize));
  keys.integer("attention.head_count", n_heads);
  keys.integer("attention.head_count_kv", params.size_or("n_kv_heads", n_heads, kLargestSize));
  keys.integer("attention.key_length", head_dim);
  keys.integer("attention.value_length", head_dim);
  keys.integer("rope.dimension_count", head_dim);
  keys.number("rope.freq_base", rope_theta);
  keys.number("attention.layer_norm_rms_epsilon", norm_eps);
  keys.integer("context_length", context_length(params, norm_eps, rope_theta, scaled_rope));
  if (params.integer("vocab_size") != -1) {  // -1: the number of rows of the embedding
    if (const auto vocab_size = params.size("vocab_size", kLargestSize))
      keys.integer("vocab_size", *vocab_size);
  }
  if (const auto window = params.size("sliding_window", kLargestSize))
    keys.integer("attention.sliding_window", *window);
  // Meta's code hard-codes these numbers for Llama 3.1 and later; params.json only has the flag.
  if (scaled_rope)
    set_rope_scaling_keys(metadata, "llama", {RopeScalingKind::kLlama3, 8.0, 1.0, 4.0, 8192});
  keys.integer("feed_forward_length", read_hidden_size(checkpoint, params, d_model));
  for (const char* name : {"(null)", "max_batch_size", "dropout"}) params.ignore(name);
  params.refuse_the_rest();
  return metadata;
}

Checkpoint meta_to_canonical(Checkpoint given) {
  Checkpoint checkpoint = translate_names(std::move(given), kMetaNames);
  Metadata metadata = read_meta_params(checkpoint);
  const TensorView* embedding = checkpoint.find("token_embd.weight");
  // A conversion may have added templates and defaults of generation to the folder.
  set_chat_templates(checkpoint.attachments, metadata);
  read_generation_config(checkpoint, metadata);
  if (!metadata.contains("tokenizer.chat_template") && embedding != nullptr &&
      embedding->shape.rows() == kLlama3Vocabulary) {
    metadata.set("tokenizer.chat_template", {std::string(kLlama3ChatTemplate), "string"});
  }
  checkpoint.metadata = std::move(metadata);
  checkpoint.naming = Naming::kGguf;
  checkpoint.row_order = RowOrder::kInterleavedPairs;
  tie_shared_head(checkpoint);
  return checkpoint;
}

}  // namespace limpid
