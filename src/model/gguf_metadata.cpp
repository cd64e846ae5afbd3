#include "model/gguf_metadata.h"

#include <algorithm>
#include <string>

#include "base/check.h"
#include "model/registry.h"
#include "model/rope_scaling.h"
#include "tokenizer/pre_tokenizer.h"
#include "tokenizer/tokenizer_files.h"

namespace limpid {
namespace {

// The `tokenizer.ggml.pre` that stands for the same cuts.
std::string_view pre_name(const TokenizerSpec& spec) {
  for (const std::string_view name : pre_tokenizer_names()) {
    const PreTokenizerRule& rule = *find_pre_tokenizer(name);
    if (rule.pre_tokenizer == spec.pre_tokenizer && rule.ignore_merges == spec.ignore_merges &&
        rule.normalize_nfc == spec.normalize_nfc) {
      return name;
    }
  }
  throw UnsupportedError("GGUF has no name for how this tokenizer cuts a text into words");
}

void set_vocabulary(Metadata& metadata, const TokenizerSpec& spec) {
  metadata.set("tokenizer.ggml.tokens", {spec.pieces, "array of string"});
  std::vector<int64_t> types;
  for (const TokenType type : spec.types) types.push_back(static_cast<int64_t>(type));
  metadata.set("tokenizer.ggml.token_type", {std::move(types), "array of i32"});
  if (spec.kind == TokenizerKind::kSentencePieceBpe) {
    metadata.set("tokenizer.ggml.model", {std::string("llama"), "string"});
    metadata.set("tokenizer.ggml.pre", {std::string("default"), "string"});
    metadata.set("tokenizer.ggml.scores",
                 {std::vector<double>(spec.scores.begin(), spec.scores.end()), "array of f32"});
    metadata.set("tokenizer.ggml.add_space_prefix",
                 {spec.space_prefix != SpacePrefix::kNone, "bool"});
    return;
  }
  LIMPID_CHECK(UnsupportedError, spec.splits.empty() && spec.merge_order == MergeOrder::kList,
               "GGUF cannot express this tokenizer: {}",
               spec.splits.empty() ? "its merges are ranks, not a list"
                                   : "it cuts a text by patterns of its own");
  metadata.set("tokenizer.ggml.model", {std::string("gpt2"), "string"});
  metadata.set("tokenizer.ggml.pre", {std::string(pre_name(spec)), "string"});
  metadata.set("tokenizer.ggml.merges", {spec.merges, "array of string"});
}

// llama3's scaling as llama.cpp reads it: divisors of the frequencies, no keys.
void make_rope_factors(Checkpoint& checkpoint) {
  const std::string prefix =
      std::string(checkpoint.metadata.string("general.architecture").value_or("")) +
      ".rope.scaling.";
  if (checkpoint.metadata.string(prefix + "type") != "llama3") return;
  const DecoderSpec spec = read_spec(checkpoint);
  const std::vector<double> plain = rope_frequencies(spec.rope.base, spec.rope.n_rot);
  std::vector<float> divisors;
  for (size_t i = 0; i < plain.size(); ++i) {
    divisors.push_back(static_cast<float>(plain[i] / spec.rope.inverse_frequencies[i]));
  }
  const auto tensor =
      std::make_shared<Tensor>(Tensor::of(Shape{static_cast<int64_t>(divisors.size())}, divisors));
  checkpoint.owned.push_back(tensor);
  checkpoint.tensors["rope_freqs.weight"] = tensor->view();
  checkpoint.tensor_order.emplace_back("rope_freqs.weight");
  Metadata rest;
  for (const auto& [key, value] : checkpoint.metadata.all()) {
    if (!key.starts_with(prefix)) rest.set(key, value);
  }
  checkpoint.metadata = std::move(rest);
}

// Programs that read GGUF want a number in the type they know it by, f32, whatever precision a JSON
// file gave it.
void round_reals(Metadata& metadata) {
  Metadata rounded;
  for (const auto& [key, value] : metadata.all()) {
    const auto* real = std::get_if<double>(&value.value);
    if (real == nullptr || value.type_name != "f32") continue;
    rounded.set(key, {static_cast<double>(static_cast<float>(*real)), "f32"});
  }
  for (const auto& [key, value] : rounded.all()) metadata.set(key, value);
}

}  // namespace

void set_tokenizer_keys(Metadata& metadata, const TokenizerSpec& spec) {
  set_vocabulary(metadata, spec);
  const auto set_id = [&](const char* key, std::optional<TokenId> id) {
    if (id) metadata.set(std::string("tokenizer.ggml.") + key, {int64_t{*id}, "u32"});
  };
  set_id("bos_token_id", spec.bos);
  set_id("eos_token_id", spec.eos);
  set_id("eot_token_id", spec.eot);
  set_id("eom_token_id", spec.eom);
  set_id("unknown_token_id", spec.unknown);
  set_id("padding_token_id", spec.pad);
  metadata.set("tokenizer.ggml.add_bos_token", {spec.add_bos, "bool"});
  metadata.set("tokenizer.ggml.add_eos_token", {spec.add_eos, "bool"});
}

Checkpoint described_for_gguf(const Checkpoint& canonical) {
  Checkpoint described = canonical;
  make_rope_factors(described);
  round_reals(described.metadata);
  if (described.metadata.contains("tokenizer.ggml.model")) return described;
  if (!has_tokenizer(canonical.attachments)) {
    // What llama.cpp needs to be told, with the number of tokens.
    const DecoderSpec spec = read_spec(described);
    described.metadata.set("tokenizer.ggml.model", {std::string("no_vocab"), "string"});
    described.metadata.set(spec.architecture + ".vocab_size", {spec.vocab_size, "u32"});
    return described;
  }
  TokenizerSpec spec = tokenizer_spec_from(canonical.attachments);
  // The embedding may have more rows than the tokenizer has tokens: the rest is padding.
  const TensorView* embedding = described.find("token_embd.weight");
  const auto n_rows =
      embedding == nullptr ? spec.pieces.size() : static_cast<size_t>(embedding->shape[0]);
  for (size_t id = spec.pieces.size(); id < n_rows; ++id) {
    spec.pieces.push_back("[PAD" + std::to_string(id) + "]");
    spec.types.push_back(TokenType::kUnused);
    if (!spec.scores.empty()) spec.scores.push_back(-1000);
  }
  set_tokenizer_keys(described.metadata, spec);
  return described;
}

}  // namespace limpid
