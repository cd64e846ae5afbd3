// A small random model with a small real vocabulary, in memory or as a GGUF file.
#pragma once

#include <algorithm>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "checkpoint/temp_file.h"
#include "checkpoint/write_gguf.h"
#include "executor/executors.h"
#include "generate/engine.h"
#include "limpid/limpid.hpp"
#include "model/tiny_checkpoint.h"
#include "tokenizer/byte_alphabet.h"

namespace limpid::testing {

// 0–255 are the bytes.
inline constexpr TokenId kHe = 256, kThe = 257, kIm = 258, kEndOfText = 259, kTurnStart = 260,
                         kTurnEnd = 261, kTool = 262;
inline constexpr int64_t kTinyVocabulary = 263;

inline constexpr std::string_view kChatMl =
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content | trim }}<|im_end|>\n{% endfor "
    "%}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}";

inline std::string piece_of_byte(uint8_t byte) {
  const char32_t c = byte_alphabet::code_point_of(byte);
  if (c < 0x80) return {static_cast<char>(c)};
  return {static_cast<char>(0xC0U | c >> 6U), static_cast<char>(0x80U | (c & 0x3FU))};
}

inline void add_vocabulary(Metadata& metadata) {
  std::vector<std::string> pieces;
  pieces.reserve(kTinyVocabulary);
  std::vector<int64_t> types(kTinyVocabulary, 1);
  for (int byte = 0; byte < 256; ++byte)
    pieces.push_back(piece_of_byte(static_cast<uint8_t>(byte)));
  for (const char* piece :
       {"he", "the", "im", "<|endoftext|>", "<|im_start|>", "<|im_end|>", "<tool>"}) {
    pieces.emplace_back(piece);
  }
  for (const TokenId id : {kEndOfText, kTurnStart, kTurnEnd}) types[static_cast<size_t>(id)] = 3;
  types[kTool] = 4;
  metadata.set("tokenizer.ggml.model", metadata_value(std::string("gpt2")));
  metadata.set("tokenizer.ggml.pre", metadata_value(std::string("gpt-2")));
  metadata.set("tokenizer.ggml.tokens", {pieces, "array of string"});
  metadata.set("tokenizer.ggml.token_type", {types, "array of i32"});
  metadata.set("tokenizer.ggml.merges",
               {std::vector<std::string>{"h e", "t he", "i m"}, "array of string"});
  metadata.set("tokenizer.ggml.bos_token_id", metadata_value(int64_t{kEndOfText}));
  metadata.set("tokenizer.ggml.eos_token_id", metadata_value(int64_t{kTurnEnd}));
  metadata.set("tokenizer.chat_template", metadata_value(std::string(kChatMl)));
}

inline std::shared_ptr<Checkpoint> tiny_model_checkpoint(bool with_vocabulary = true,
                                                         int64_t n_ctx = 256) {
  TinyShape shape;
  shape.vocab_size = kTinyVocabulary;
  shape.n_ctx = n_ctx;
  auto checkpoint = tiny_checkpoint(shape);
  if (with_vocabulary) add_vocabulary(checkpoint->metadata);
  return checkpoint;
}

// With a `stop_gain` above 1 the logit of the token that ends a turn varies so much more than the
// others that answers are short.
inline void write_tiny_model_file(const std::string& path, bool with_vocabulary = true,
                                  int64_t n_ctx = 256, float stop_gain = 1) {
  const auto checkpoint = tiny_model_checkpoint(with_vocabulary, n_ctx);
  for (const auto& tensor : checkpoint->owned) {
    if (tensor->view().data != checkpoint->find("token_embd.weight")->data) continue;
    const auto d_model = static_cast<size_t>(tensor->shape().cols());
    for (float& x : tensor->f32().subspan(kTurnEnd * d_model, d_model)) x *= stop_gain;
  }
  std::vector<NamedTensor> tensors;
  for (const std::string& name : checkpoint->tensor_order)
    tensors.push_back({name, *checkpoint->find(name)});
  write_gguf(path, checkpoint->metadata, tensors);
}

inline std::string write_tiny_model(const TempFolder& folder, bool with_vocabulary = true,
                                    int64_t n_ctx = 256) {
  std::string path = folder.path("tiny.gguf");
  write_tiny_model_file(path, with_vocabulary, n_ctx);
  return path;
}

struct TinyOptions {
  int64_t n_ctx = 256;
  int64_t n_batch = 512;
  std::string device = "cpu";
  int n_threads = 2;
  bool with_vocabulary = true;
  std::string chat_template{};
};

inline LanguageModel open_tiny(const TinyOptions& tiny = {}) {
  const TempFolder folder;
  OpenOptions options;
  options.n_ctx = tiny.n_ctx;
  options.n_batch = tiny.n_batch;
  options.device = tiny.device;
  options.n_threads = tiny.n_threads;
  options.chat_template = tiny.chat_template;
  return LanguageModel::open(write_tiny_model(folder, tiny.with_vocabulary), options);
}

// Lets only the token through that the script says, counted from the first sampled position.
class Script : public Sampler {
 public:
  explicit Script(std::vector<TokenId> ids) : ids_(std::move(ids)) {}
  std::string_view name() const override { return "script"; }
  void apply(Candidates& candidates, const SamplerContext& context) override {
    if (first_ < 0) first_ = context.position();
    const auto at = static_cast<size_t>(context.position() - first_);
    const TokenId wanted = ids_[std::min(at, ids_.size() - 1)];
    candidates.remove_if([wanted](const Candidate& c) { return c.id != wanted; });
  }

 private:
  std::vector<TokenId> ids_;
  int64_t first_ = -1;
};

// Options that make the model say `text`, one token for each byte, and then end the turn.
inline GenerationOptions saying(std::string_view text) {
  std::vector<TokenId> ids;
  for (const char c : text) ids.push_back(static_cast<unsigned char>(c));
  ids.push_back(kTurnEnd);
  GenerationOptions options;
  options.sampler.custom = {std::make_shared<Script>(std::move(ids))};
  return options;
}

}  // namespace limpid::testing
