#include "model/tokenizer_from_metadata.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "base/check.h"
#include "base/error_text.h"
#include "checkpoint/llama2c.h"
#include "layouts/chat_templates.h"
#include "layouts/hugging_face.h"
#include "layouts/spec_reader.h"
#include "tokenizer/chat_template.h"
#include "tokenizer/pre_tokenizer.h"

namespace limpid {
namespace {

std::optional<TokenId> read_id(SpecReader& keys, std::string_view name, size_t vocab_size) {
  const auto value = keys.integer(name);
  if (!value || *value == 0xFFFFFFFF || *value == -1)
    return std::nullopt;  // converters write "none" like this
  if (*value < 0 || static_cast<uint64_t>(*value) >= vocab_size) {
    keys.fail(name, "is {}, outside a vocabulary of {} tokens", *value, vocab_size);
  }
  return static_cast<TokenId>(*value);
}

// Types of the tokens; without the key, all are normal.
std::vector<TokenType> read_types(SpecReader& keys, const Metadata& metadata, size_t vocab_size) {
  std::vector<TokenType> types(vocab_size, TokenType::kNormal);
  const MetadataValue* found = metadata.find("tokenizer.ggml.token_type");
  if (found == nullptr) return types;
  const auto* values = std::get_if<std::vector<int64_t>>(&found->value);
  if (values == nullptr) keys.refuse("token_type", "is not an array of integers");
  if (values->size() != vocab_size) {
    keys.fail("token_type", "has {} entries for {} tokens", values->size(), vocab_size);
  }
  for (size_t i = 0; i < vocab_size; ++i) {
    const int64_t value = (*values)[i];
    if (value < 1 || value > 6) keys.fail("token_type", "[{}] is {}, not one of 1 to 6", i, value);
    types[i] = static_cast<TokenType>(value);
  }
  return types;
}

// Scores, one per token. Integers are accepted and converted.
std::vector<float> read_scores(SpecReader& keys, const Metadata& metadata, size_t vocab_size) {
  const MetadataValue* found = metadata.find("tokenizer.ggml.scores");
  if (found == nullptr) keys.fail("scores", "is missing; a SentencePiece vocabulary needs scores");
  std::vector<float> scores;
  if (const auto* integers = std::get_if<std::vector<int64_t>>(&found->value)) {
    scores.assign(integers->begin(), integers->end());
  } else if (const auto* numbers = std::get_if<std::vector<double>>(&found->value)) {
    scores.assign(numbers->begin(), numbers->end());
  } else {
    keys.refuse("scores", "is not an array of numbers");
  }
  if (scores.size() != vocab_size)
    keys.fail("scores", "has {} entries for {} tokens", scores.size(), vocab_size);
  return scores;
}

// The keys of byte-level BPE: pre-tokenizer and merges.
void read_byte_level(SpecReader& keys, TokenizerSpec& spec) {
  spec.kind = TokenizerKind::kByteLevelBpe;
  if (!keys.contains("pre")) {
    keys.refuse("pre",
                "is missing, and a guess of the pre-tokenizer could give other tokens; convert the "
                "model again");
  }
  const std::string pre = keys.string_or("pre", "");
  const PreTokenizerRule* rule = find_pre_tokenizer(pre);
  if (rule == nullptr) {
    keys.refuse("pre", "is '{}', an unknown pre-tokenizer; a guess could give other tokens", pre);
  }
  spec.pre_tokenizer = rule->pre_tokenizer;
  spec.normalize_nfc = rule->normalize_nfc;
  spec.ignore_merges = rule->ignore_merges;
  const std::vector<std::string>* merges = keys.strings("merges");
  if (merges == nullptr) keys.fail("merges", "is missing; byte-level BPE needs merges");
  spec.merges = *merges;
  spec.add_bos = keys.flag_or("add_bos_token", rule->add_bos && spec.bos.has_value());
  spec.add_eos = keys.flag_or("add_eos_token", false);
  if (keys.flag_or("add_space_prefix", false))
    keys.refuse("add_space_prefix", "is true, which is not supported for byte-level BPE");
}

// The keys of SentencePiece BPE: scores, and the treatment of spaces.
void read_sentence_piece(SpecReader& keys, const Metadata& metadata, TokenizerSpec& spec) {
  spec.kind = TokenizerKind::kSentencePieceBpe;
  spec.scores = read_scores(keys, metadata, spec.pieces.size());
  spec.add_bos = keys.flag_or("add_bos_token", spec.bos.has_value());
  spec.add_eos = keys.flag_or("add_eos_token", false);
  spec.merge_order = MergeOrder::kScores;
  spec.space_prefix =
      keys.flag_or("add_space_prefix", true) ? SpacePrefix::kEveryPart : SpacePrefix::kNone;
  spec.remove_extra_whitespaces = keys.flag_or("remove_extra_whitespaces", false);
}

// Writers of GGUF use the name `no_vocab` for a model without a tokenizer.
bool has_gguf_vocabulary(const Checkpoint& checkpoint) {
  constexpr std::string_view kModel = "tokenizer.ggml.model";
  return checkpoint.metadata.contains(kModel) && checkpoint.metadata.string(kModel) != "no_vocab";
}

// Reads the tokenizer from the attachments. generation_config.json may list more ids that end an
// answer.
TokenizerSpec spec_of_attachments(const Checkpoint& checkpoint) {
  TokenizerSpec spec = tokenizer_spec_from(checkpoint.attachments);
  const std::vector<int64_t>* stops = checkpoint.metadata.integers(kStopTokenIdsKey);
  if (stops == nullptr) return spec;
  for (const int64_t id : *stops) {
    if (id >= 0 && static_cast<uint64_t>(id) < spec.pieces.size())
      spec.stop_ids.push_back(static_cast<TokenId>(id));
  }
  std::ranges::sort(spec.stop_ids);
  const auto repeated = std::unique(spec.stop_ids.begin(), spec.stop_ids.end());
  spec.stop_ids.erase(repeated, spec.stop_ids.end());
  return spec;
}

// Reads the tokenizer from tokenizer.ggml.*.
TokenizerSpec read_gguf_keys(const Checkpoint& checkpoint) {
  SpecReader keys(checkpoint, "tokenizer.ggml");
  const std::string model = keys.string_or("model", "");
  if (model != "gpt2" && model != "llama") {
    keys.refuse("model",
                "is '{}', an unknown tokenizer model; known are gpt2 "
                "(byte-level BPE) and llama (SentencePiece BPE)",
                model);
  }
  const std::vector<std::string>* tokens = keys.strings("tokens");
  if (tokens == nullptr || tokens->empty()) keys.fail("tokens", "is missing or empty");
  TokenizerSpec spec;
  spec.pieces = *tokens;
  const size_t vocab_size = spec.pieces.size();
  spec.types = read_types(keys, checkpoint.metadata, vocab_size);
  spec.bos = read_id(keys, "bos_token_id", vocab_size);
  spec.eos = read_id(keys, "eos_token_id", vocab_size);
  spec.eot = read_id(keys, "eot_token_id", vocab_size);
  spec.eom = read_id(keys, "eom_token_id", vocab_size);
  spec.unknown = read_id(keys, "unknown_token_id", vocab_size);
  spec.pad = read_id(keys, "padding_token_id", vocab_size);
  if (model == "gpt2") {
    read_byte_level(keys, spec);
  } else {
    read_sentence_piece(keys, checkpoint.metadata, spec);
  }
  if (spec.add_bos && !spec.bos) keys.fail("add_bos_token", "is true, but bos_token_id is missing");
  if (spec.add_eos && !spec.eos) keys.fail("add_eos_token", "is true, but eos_token_id is missing");
  spec.stop_ids = find_stop_ids(spec);
  return spec;
}

// Removes the keys and files from which the checkpoint's own tokenizer is read. Its chat templates
// and kStopTokenIdsKey stay: they belong to the model.
void erase_tokenizer(Checkpoint& checkpoint) {
  checkpoint.metadata.erase_below("tokenizer.ggml.");
  std::erase_if(checkpoint.attachments,
                [](const auto& attachment) { return is_tokenizer_file(attachment.first); });
}

}  // namespace

bool has_tokenizer(const Checkpoint& checkpoint) {
  return has_gguf_vocabulary(checkpoint) || has_tokenizer(checkpoint.attachments);
}

void fail_without_tokenizer(const Checkpoint& checkpoint) {
  throw UnsupportedError(
      fmt::format("{} has no tokenizer: put tokenizer.json beside the weights, name one with "
                  "OpenOptions::tokenizer_path, or work with token ids",
                  checkpoint.path));
}

TokenizerSpec tokenizer_spec_from(const Checkpoint& checkpoint) {
  if (!has_tokenizer(checkpoint)) fail_without_tokenizer(checkpoint);
  return has_gguf_vocabulary(checkpoint) ? read_gguf_keys(checkpoint)
                                         : spec_of_attachments(checkpoint);
}

void replace_tokenizer(Checkpoint& checkpoint, const TokenizerFiles& files) {
  erase_tokenizer(checkpoint);
  for (const auto& [name, file] : files) checkpoint.attachments.insert_or_assign(name, file);
  set_chat_templates(files, checkpoint.metadata);
}

void replace_tokenizer_by_llama2c(Checkpoint& checkpoint, const std::string& path) {
  const TensorView* embedding = checkpoint.find("token_embd.weight");
  if (embedding == nullptr || embedding->shape.rank() != 2) {
    throw UnsupportedError(fmt::format(
        "{}: llama2.c's tokenizer file does not state its number of tokens, and {} has no token "
        "embedding to show it",
        path, checkpoint.path));
  }
  const auto file = MappedFile::open(path);
  erase_tokenizer(checkpoint);
  parse_llama2c_tokenizer(path, file->bytes(), embedding->shape[0], checkpoint.metadata);
}

std::shared_ptr<const Tokenizer> tokenizer_from(const Checkpoint& checkpoint) {
  TokenizerSpec spec = tokenizer_spec_from(checkpoint);
  try {
    return Tokenizer::create(std::move(spec));
  } catch (const ArgumentError& error) {
    if (has_gguf_vocabulary(checkpoint))
      throw_format_error(checkpoint.path, "tokenizer.ggml", "{}", without_part(error));
    throw_format_error(defining_file(checkpoint.attachments), "tokenizer", "{}",
                       without_part(error));
  }
}

void check_tokenizer_fits(const Checkpoint& checkpoint, const TokenizerSpec& spec) {
  const TensorView* embedding = checkpoint.find("token_embd.weight");
  if (embedding == nullptr || std::ssize(spec.pieces) <= embedding->shape[0]) return;
  throw UnsupportedError(
      fmt::format("{}: the tokenizer has {} tokens, but the embedding has {} rows; give the "
                  "model's own tokenizer, or one that is not larger",
                  checkpoint.path, spec.pieces.size(), embedding->shape[0]));
}

std::vector<std::string> text_problems(const Checkpoint& checkpoint) {
  std::vector<std::string> problems;
  try {
    if (has_tokenizer(checkpoint)) tokenizer_from(checkpoint);
  } catch (const Error& error) {
    problems.push_back(fmt::format("the tokenizer cannot be read: {}", error.what()));
  }
  try {
    if (const auto source = checkpoint.metadata.string("tokenizer.chat_template"))
      ChatTemplate{std::string(*source)};
  } catch (const UnsupportedError& error) {
    problems.push_back(fmt::format("the chat template does not parse: {}", error.what()));
  }
  return problems;
}

}  // namespace limpid
