#include "export/gguf_description.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <string>

#include "base/check.h"
#include "checkpoint/metadata.h"
#include "export/completed.h"
#include "layouts/hugging_face.h"
#include "layouts/model_classes.h"
#include "layouts/rope_scaling.h"
#include "model/decoder_from_checkpoint.h"
#include "model/tokenizer_from_metadata.h"
#include "tokenizer/merge_list.h"
#include "tokenizer/pre_tokenizer.h"

namespace limpid {
namespace {

// Returns the value of `tokenizer.ggml.pre` for the same pre-tokenizer.
std::string_view pre_name(const TokenizerSpec& spec) {
  for (const std::string_view name : pre_tokenizer_names()) {
    const PreTokenizerRule& rule = *find_pre_tokenizer(name);
    if (rule.pre_tokenizer == spec.pre_tokenizer && rule.ignore_merges == spec.ignore_merges &&
        rule.normalize_nfc == spec.normalize_nfc) {
      return name;
    }
  }
  throw UnsupportedError(
      "GGUF has no name for this tokenizer's way of splitting a text into words");
}

// SentencePiece's scores, one for each piece.
std::vector<float> scores_of(const TokenizerSpec& spec) {
  if (spec.merge_order == MergeOrder::kScores) return spec.scores;
  std::optional<std::vector<float>> scores = merge_scores(spec);
  LIMPID_CHECK(UnsupportedError, scores.has_value(),
               "GGUF cannot express this tokenizer: no scores give the order of its merge list");
  return *std::move(scores);
}

// Writes tokens, types, and scores or merges.
void set_vocabulary(KeyWriter& keys, const TokenizerSpec& spec) {
  keys.set("tokens", {spec.pieces, "array of string"});
  std::vector<int64_t> types;
  for (const TokenType type : spec.types) types.push_back(static_cast<int64_t>(type));
  keys.set("token_type", {std::move(types), "array of i32"});
  if (spec.kind == TokenizerKind::kSentencePieceBpe) {
    keys.string("model", "llama");
    keys.string("pre", "default");
    const std::vector<float> scores = scores_of(spec);
    keys.set("scores", {std::vector<double>(scores.begin(), scores.end()), "array of f32"});
    keys.flag("add_space_prefix", spec.space_prefix != SpacePrefix::kNone);
    if (spec.remove_extra_whitespaces) keys.flag("remove_extra_whitespaces", true);
    return;
  }
  LIMPID_CHECK(UnsupportedError, spec.splits.empty(),
               "GGUF cannot express this tokenizer: it splits a text by patterns of its own");
  keys.string("model", "gpt2");
  keys.string("pre", pre_name(spec));
  keys.set("merges", {merge_list(spec), "array of string"});
}

// Converts llama3's scaling to the form that llama.cpp reads: a tensor of divisors instead of keys.
// The rule leaves fast rotations as they are (divisor 1), divides slow ones by the factor (8 in
// Llama 3.1), and interpolates between the two. Divisors express any such rule, so a reader needs
// only one kind of scaling.
void make_rope_factors(Checkpoint& checkpoint) {
  const std::string prefix =
      fmt::format("{}.rope.scaling.", model_class_of(checkpoint).architecture);
  if (checkpoint.metadata.string(prefix + "type") != "llama3") return;
  const DecoderSpec spec = read_spec(checkpoint);
  const std::vector<double> plain = rope_frequencies(spec.rope.base, spec.rope.n_rot);
  std::vector<float> divisors;
  for (size_t i = 0; i < plain.size(); ++i) {
    divisors.push_back(static_cast<float>(plain[i] / spec.rope.inverse_frequencies[i]));
  }
  checkpoint.add("rope_freqs.weight", Tensor::of(Shape{std::ssize(divisors)}, divisors));
  checkpoint.metadata.erase_below(prefix);
}

// Rounds reals to f32. Programs that read GGUF expect f32, whatever precision a JSON file had.
void round_reals(Metadata& metadata) {
  for (const auto& [key, value] : metadata.all()) {
    const auto* real = std::get_if<double>(&value.value);
    if (real == nullptr || value.type_name != "f32") continue;
    metadata.set(key, {static_cast<double>(static_cast<float>(*real)), "f32"});
  }
}

// Adds remarks on keys that other readers of GGUF ignore.
void remark_on_own_keys(const Metadata& metadata, std::vector<std::string>& remarks) {
  // Keys of Limpid's own, and what other programs do instead of what they say.
  constexpr std::pair<const char*, const char*> kOwnKeys[] = {
      {"gpt2.hidden_activation", "compute GELU by tanh"},
      {"gpt2.attention.scale", "scale by 1 / sqrt(head_dim)"},
      {"gpt2.attention.scale_by_inverse_layer", "use the same scale in every layer"},
      {"gpt2.norm", "compute LayerNorm"},
      {"gpt2.outer_norm", "look for a norm after the last block"},
  };
  for (const auto& [key, instead] : kOwnKeys) {
    if (!metadata.contains(key)) continue;
    remarks.push_back(fmt::format(
        "GGUF has no key for {}, which this model needs: Limpid reads it, other programs {}", key,
        instead));
  }
}

// Adds remarks on tensors that llama.cpp does not support in an architecture. It refuses the file,
// or, for attn_output.bias of ernie4_5, ignores the tensor.
void remark_on_tensors(const Checkpoint& checkpoint, std::vector<std::string>& remarks) {
  const ModelClass& model_class = model_class_of(checkpoint);
  const KnownBiases known = model_class.biases_in_llama_cpp;
  if (known == KnownBiases::kAll) return;
  const auto unknown = std::ranges::find_if(checkpoint.tensor_order, [&](std::string_view name) {
    if (!name.ends_with(".bias")) return false;
    const bool of_qkv = name.ends_with(".attn_q.bias") || name.ends_with(".attn_k.bias") ||
                        name.ends_with(".attn_v.bias");
    return !of_qkv || known == KnownBiases::kNone;
  });
  if (unknown == checkpoint.tensor_order.end()) return;
  remarks.push_back(fmt::format(
      "the model has biases that llama.cpp does not support in a {} ({}, …): Limpid reads them, "
      "llama.cpp refuses the file or ignores them",
      model_class.architecture, *unknown));
}

// Adds a remark for models that rotate only a part of each head.
void remark_on_rope(const Checkpoint& checkpoint, std::vector<std::string>& remarks) {
  const DecoderSpec spec = read_spec(checkpoint);
  if (spec.position != PositionKind::kRope || spec.rope.n_rot == spec.head_dim) return;
  remarks.push_back(
      fmt::format("{0}.rope.dimension_count: Limpid rotates {1} of the {2} elements of each head; "
                  "llama.cpp refuses a {0} model that does not rotate whole heads",
                  spec.architecture, spec.rope.n_rot, spec.head_dim));
}

// Stop tokens whose names do not identify them are written to GGUF's two keys for such tokens, eot
// and eom.
void name_stops(TokenizerSpec& spec, std::vector<std::string>& remarks) {
  TokenizerSpec by_name = spec;
  by_name.stop_ids.clear();
  const std::vector<TokenId> known = find_stop_ids(by_name);
  std::vector<TokenId> rest;
  for (const TokenId id : spec.stop_ids) {
    if (std::ranges::find(known, id) != known.end()) continue;
    if (!spec.eot) {
      spec.eot = id;
    } else if (!spec.eom) {
      spec.eom = id;
    } else {
      rest.push_back(id);
    }
  }
  if (!rest.empty())
    remarks.push_back(fmt::format(
        "GGUF has no further key for stop tokens; {} will not end an answer in other programs",
        fmt::join(rest, ", ")));
}

// Adds remarks on properties of the tokenizer that GGUF cannot express.
void remark_on_tokenizer(const TokenizerSpec& spec, std::vector<std::string>& remarks) {
  if (spec.kind == TokenizerKind::kSentencePieceBpe) {
    if (spec.space_prefix == SpacePrefix::kEveryPartOnce ||
        spec.space_prefix == SpacePrefix::kFirstPartOnce) {
      remarks.emplace_back(
          "the tokenizer adds a space to a text only if it begins without one, or only at its "
          "start; in GGUF every stretch of text gets a space");
    }
    if (spec.remove_extra_whitespaces) {
      remarks.emplace_back(
          "the tokenizer removes superfluous spaces: Limpid reads the key for it "
          "(tokenizer.ggml.remove_extra_whitespaces), llama.cpp does not in this kind of "
          "tokenizer");
    }
  }
  if (spec.added_rules.empty()) return;
  remarks.push_back(
      fmt::format("{} added tokens match by rules (lstrip, rstrip, single_word, normalized) that "
                  "GGUF has no keys for; in GGUF they match by name alone",
                  spec.added_rules.size()));
}

// Writes the keys below `tokenizer.ggml.`.
void set_tokenizer_keys(Metadata& metadata, const TokenizerSpec& spec) {
  KeyWriter keys(metadata, "tokenizer.ggml.");
  set_vocabulary(keys, spec);
  const auto set_id = [&](std::string_view key, std::optional<TokenId> id) {
    if (id) keys.integer(key, *id);
  };
  set_id("bos_token_id", spec.bos);
  set_id("eos_token_id", spec.eos);
  set_id("eot_token_id", spec.eot);
  set_id("eom_token_id", spec.eom);
  set_id("unknown_token_id", spec.unknown);
  set_id("padding_token_id", spec.pad);
  keys.flag("add_bos_token", spec.add_bos);
  keys.flag("add_eos_token", spec.add_eos);
}

}  // namespace

// The steps: complete the tensors, convert the tokenizer, convert what GGUF has no keys for, and
// collect remarks.
Checkpoint described_for_gguf(const Checkpoint& canonical, std::vector<std::string>& remarks) {
  Checkpoint described = completed(canonical);
  make_rope_factors(described);
  round_reals(described.metadata);
  described.metadata.erase_below(kInitializerRangeKey);  // of training only
  remark_on_own_keys(described.metadata, remarks);
  remark_on_tensors(described, remarks);
  remark_on_rope(described, remarks);
  // Keys of GGUF are copied as they are. Another program may be able to read what Limpid cannot.
  if (described.metadata.contains("tokenizer.ggml.model")) return described;
  if (!has_tokenizer(canonical.attachments)) {
    // llama.cpp requires these keys and the number of tokens.
    const DecoderSpec spec = read_spec(described);
    described.metadata.set("tokenizer.ggml.model", {std::string("no_vocab"), "string"});
    described.metadata.set(spec.architecture + ".vocab_size", {spec.vocab_size, "u32"});
    remarks.emplace_back("the model has no tokenizer, so none was written");
    return described;
  }
  TokenizerSpec spec = tokenizer_spec_from(canonical);
  // The embedding may have more rows than the tokenizer has tokens. The additional rows get padding
  // tokens. Tokens without a row (a pad token that a fine-tune added) have no place in GGUF.
  const TensorView* embedding = described.find("token_embd.weight");
  const auto n_rows =
      embedding == nullptr ? spec.pieces.size() : static_cast<size_t>(embedding->shape[0]);
  check_tokenizer_fits(described, spec);
  for (size_t id = spec.pieces.size(); id < n_rows; ++id) {
    spec.pieces.push_back("[PAD" + std::to_string(id) + "]");
    spec.types.push_back(TokenType::kUnused);
    if (!spec.scores.empty()) spec.scores.push_back(-1000);
  }
  name_stops(spec, remarks);
  remark_on_tokenizer(spec, remarks);
  try {
    set_tokenizer_keys(described.metadata, spec);
  } catch (const UnsupportedError& error) {
    throw UnsupportedError(fmt::format("{}: {}", canonical.path, error.what()));
  }
  return described;
}

}  // namespace limpid
