#include "layouts/meta.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <set>
#include <string>

#include "base/check.h"
#include "layouts/chat_templates.h"
#include "layouts/rope_scaling.h"
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
constexpr std::array<std::string_view, 5> kLeft = {
    "rope.freqs", "layers.{}.attention.inner_attention.rope.freqs", "freqs_cos", "freqs_sin",
    "layers.{}.attention.mask"};
constexpr std::array<std::string_view, 2> kPrefixes = {"_orig_mod.", "module."};

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

// Reads the parameters from whichever prefix holds them, and records the keys that were read so
// that refuse_the_rest can name the others.
class Params {
 public:
  explicit Params(const Checkpoint& checkpoint) : checkpoint_(checkpoint) {
    for (const char* prefix :
         {"params.model.", "params.", "state.model_args.", "state.params.", "state.args."}) {
      if (!checkpoint.metadata.contains(prefix + std::string("dim"))) continue;
      prefix_ = prefix;
      return;
    }
    throw FormatError(checkpoint.path, FormatError::kNoOffset, "params.dim",
                      "is missing: the file does not carry the model's parameters; give Meta's "
                      "params.json as OpenOptions::config");
  }

  [[noreturn]] void fail(std::string_view name, const std::string& problem) const {
    throw FormatError(checkpoint_.path, FormatError::kNoOffset, prefix_ + std::string(name),
                      problem);
  }

  std::optional<int64_t> size(const char* name) {
    const auto value = checkpoint_.metadata.integer(key(name));
    if (value && (*value < 1 || *value > kLargest))
      fail(name, fmt::format("is {}, expected 1 to {}", *value, kLargest));
    return value;
  }
  int64_t required_size(const char* name) {
    const auto value = size(name);
    if (!value) fail(name, "is missing");
    return *value;
  }
  std::optional<double> positive(const char* name) {
    const auto value = checkpoint_.metadata.number(key(name));
    if (value && !(*value > 0 && std::isfinite(*value)))
      fail(name, fmt::format("is {}, expected a number above 0", *value));
    return value;
  }
  bool flag(const char* name) { return checkpoint_.metadata.boolean(key(name)).value_or(false); }
  void ignore(const char* name) { key(name); }
  // -1 means "the number of rows of the embedding".
  std::optional<int64_t> vocab_size() {
    const auto value = checkpoint_.metadata.integer(key("vocab_size"));
    return value == -1 ? std::nullopt : size("vocab_size");
  }

  void refuse_the_rest() const {
    for (const auto& [name, value] : checkpoint_.metadata.all()) {
      LIMPID_CHECK(UnsupportedError, !name.starts_with(prefix_) || asked_.contains(name),
                   "{}: unknown parameter {}, which may change the result", checkpoint_.path, name);
    }
  }

 private:
  static constexpr int64_t kLargest = int64_t{1} << 24;

  const std::string& key(const char* name) { return *asked_.insert(prefix_ + name).first; }

  const Checkpoint& checkpoint_;
  std::string prefix_;
  std::set<std::string, std::less<>> asked_;
};

void set_integer(Metadata& metadata, const char* key, int64_t value) {
  metadata.set(key, {value, "u32"});
}
void set_real(Metadata& metadata, const char* key, double value) {
  metadata.set(key, {value, "f32"});
}

// The number of positions that the model was trained on. params.json does not contain it, so it is
// inferred from parameters that differ between Meta's releases.
int64_t context_length(Params& params, double norm_eps, double rope_theta, bool scaled_rope) {
  if (const auto stated = params.size("max_seq_len")) return *stated;
  if (scaled_rope) return 131072;           // Llama 3.1, 3.2, 3.3
  if (rope_theta == 500000) return 8192;    // Llama 3
  if (rope_theta == 1000000) return 16384;  // Code Llama
  return norm_eps == 1e-6 ? 2048 : 4096;    // Llama 1, Llama 2
}

const TensorView& first_gate(const Checkpoint& checkpoint) {
  const TensorView* gate = checkpoint.find("blk.0.ffn_gate.weight");
  if (gate == nullptr || gate->shape.rank() != 2) {
    throw FormatError(checkpoint.path, FormatError::kNoOffset, "layers.0.feed_forward.w1.weight",
                      "is missing or not a matrix");
  }
  return *gate;
}

// params.json does not state the width of the MLP; the tensors show it. It is checked against
// Meta's rule, because a difference means that parameters and weights belong to different models.
void check_hidden_size(const Checkpoint& checkpoint, Params& params, int64_t d_model) {
  const int64_t rows = first_gate(checkpoint).shape[0];
  const auto stated = params.size("hidden_dim");
  const int64_t multiple_of = params.size("multiple_of").value_or(256);
  const double multiplier = params.positive("ffn_dim_multiplier").value_or(1.0);
  constexpr double kLargestMultiplier = 1024;
  if (multiplier > kLargestMultiplier)
    params.fail("ffn_dim_multiplier",
                fmt::format("is {}, more than {}", multiplier, kLargestMultiplier));
  const int64_t expected = stated ? *stated : meta_hidden_size(d_model, multiple_of, multiplier);
  if (rows == expected) return;
  params.fail(stated ? "hidden_dim" : "multiple_of",
              fmt::format("layers.0.feed_forward.w1.weight has {} rows, and the parameters ask for "
                          "{}",
                          rows, expected));
}

// Translates the parameters to GGUF keys. Meta's defaults apply to absent ones.
Metadata read_params(const Checkpoint& checkpoint) {
  Params params(checkpoint);
  Metadata metadata;
  metadata.set("general.architecture", {std::string("llama"), "string"});
  const int64_t d_model = params.required_size("dim");
  const int64_t n_heads = params.required_size("n_heads");
  const int64_t head_dim = params.size("head_dim").value_or(d_model / n_heads);
  const double norm_eps = params.positive("norm_eps").value_or(1e-5);
  const double rope_theta = params.positive("rope_theta").value_or(10000.0);
  const bool scaled_rope = params.flag("use_scaled_rope");
  set_integer(metadata, "llama.embedding_length", d_model);
  set_integer(metadata, "llama.block_count", params.required_size("n_layers"));
  set_integer(metadata, "llama.attention.head_count", n_heads);
  set_integer(metadata, "llama.attention.head_count_kv",
              params.size("n_kv_heads").value_or(n_heads));
  set_integer(metadata, "llama.attention.key_length", head_dim);
  set_integer(metadata, "llama.attention.value_length", head_dim);
  set_integer(metadata, "llama.rope.dimension_count", head_dim);
  set_real(metadata, "llama.rope.freq_base", rope_theta);
  set_real(metadata, "llama.attention.layer_norm_rms_epsilon", norm_eps);
  set_integer(metadata, "llama.context_length",
              context_length(params, norm_eps, rope_theta, scaled_rope));
  if (const auto vocab_size = params.vocab_size())
    set_integer(metadata, "llama.vocab_size", *vocab_size);
  if (const auto window = params.size("sliding_window"))
    set_integer(metadata, "llama.attention.sliding_window", *window);
  // Meta's code hard-codes these numbers for Llama 3.1 and later; params.json only has the flag.
  if (scaled_rope)
    set_rope_scaling_keys(metadata, "llama", {RopeScalingKind::kLlama3, 8.0, 1.0, 4.0, 8192});
  check_hidden_size(checkpoint, params, d_model);
  set_integer(metadata, "llama.feed_forward_length", first_gate(checkpoint).shape[0]);
  params.ignore("(null)");  // names of parameters without a value
  params.ignore("max_batch_size");
  params.ignore("dropout");
  params.refuse_the_rest();
  return metadata;
}

}  // namespace

const NameTable& meta_name_table() {
  static constexpr NameTable kTable{kRules, kLeft, kPrefixes};
  return kTable;
}

bool has_meta_names(const Checkpoint& checkpoint) {
  return checkpoint.find("tok_embeddings.weight") != nullptr ||
         checkpoint.find("_orig_mod.tok_embeddings.weight") != nullptr ||
         checkpoint.find("module.tok_embeddings.weight") != nullptr;
}

int64_t meta_hidden_size(int64_t d_model, int64_t multiple_of, double multiplier) {
  const int64_t two_thirds = 8 * d_model / 3;
  const auto widened = static_cast<int64_t>(multiplier * static_cast<double>(two_thirds));
  return (widened + multiple_of - 1) / multiple_of * multiple_of;
}

Checkpoint meta_to_canonical(Checkpoint given) {
  Checkpoint checkpoint = translate_names(std::move(given), meta_name_table());
  Metadata metadata = read_params(checkpoint);
  const TensorView* embedding = checkpoint.find("token_embd.weight");
  set_chat_templates(checkpoint.attachments,
                     metadata);  // templates that a conversion added to the folder
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
