#include "model/tokenizer_from_metadata.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "checkpoint/llama2c.h"
#include "layouts/chat_templates.h"
#include "layouts/hugging_face_defaults.h"
#include "limpid/error.hpp"
#include "tokenizer/pre_tokenizer.h"
#include "tokenizer/stop_tokens.h"

namespace limpid {
namespace {

constexpr std::string_view kPrefix = "tokenizer.ggml.";

// Reads the keys with the prefix tokenizer.ggml.
class Keys {
 public:
  explicit Keys(const Checkpoint& checkpoint)
      : checkpoint_(checkpoint), metadata_(checkpoint.metadata) {}

  [[noreturn]] void fail(std::string_view key, const std::string& problem) const {
    throw FormatError(checkpoint_.path, FormatError::kNoOffset, name(key), problem);
  }
  std::string string(std::string_view key) const {
    const auto value = metadata_.string(name(key));
    if (!value) fail(key, "is missing");
    return std::string(*value);
  }
  std::optional<std::string> optional_string(std::string_view key) const {
    const auto value = metadata_.string(name(key));
    if (!value) return std::nullopt;
    return std::string(*value);
  }
  bool boolean(std::string_view key, bool otherwise) const {
    return metadata_.boolean(name(key)).value_or(otherwise);
  }
  const std::vector<std::string>* strings(std::string_view key) const {
    return metadata_.strings(name(key));
  }

  std::optional<TokenId> id(std::string_view key, size_t vocab_size) const {
    const auto value = metadata_.integer(name(key));
    if (!value) return std::nullopt;
    if (*value == 0xFFFFFFFF || *value == -1)
      return std::nullopt;  // converters write "none" like this
    if (*value < 0 || static_cast<uint64_t>(*value) >= vocab_size) {
      fail(key, fmt::format("is {}, outside a vocabulary of {} tokens", *value, vocab_size));
    }
    return static_cast<TokenId>(*value);
  }
  // Reads floats. Integers are accepted and converted.
  std::optional<std::vector<double>> numbers(std::string_view key) const {
    const std::string full = name(key);
    if (!metadata_.contains(full)) return std::nullopt;
    const MetadataValue* value = metadata_.find(full);
    if (std::holds_alternative<std::vector<int64_t>>(value->value)) {
      const auto& integers = std::get<std::vector<int64_t>>(value->value);
      return std::vector<double>(integers.begin(), integers.end());
    }
    const std::vector<double>* doubles = metadata_.numbers(full);
    return doubles == nullptr ? std::vector<double>() : *doubles;
  }
  const std::vector<int64_t>* integers(std::string_view key) const {
    return metadata_.integers(name(key));
  }
  bool contains(std::string_view key) const { return metadata_.contains(name(key)); }
  static std::string name(std::string_view key) { return std::string(kPrefix) += key; }

 private:
  const Checkpoint& checkpoint_;
  const Metadata& metadata_;
};

// Types of the tokens; without the key, all are normal.
std::vector<TokenType> read_types(const Keys& keys, size_t vocab_size) {
  std::vector<TokenType> types(vocab_size, TokenType::kNormal);
  if (!keys.contains("token_type")) return types;
  const std::vector<int64_t>* values = keys.integers("token_type");
  if (values == nullptr || values->size() != vocab_size) {
    keys.fail("token_type",
              fmt::format("has {} entries for {} tokens", values ? values->size() : 0, vocab_size));
  }
  for (size_t i = 0; i < vocab_size; ++i) {
    const int64_t value = (*values)[i];
    if (value < 1 || value > 6)
      keys.fail("token_type", fmt::format("[{}] is {}, not one of 1 to 6", i, value));
    types[i] = static_cast<TokenType>(value);
  }
  return types;
}

// Scores, one per token.
std::vector<float> read_scores(const Keys& keys, size_t vocab_size) {
  const auto values = keys.numbers("scores");
  if (!values) keys.fail("scores", "is missing; a SentencePiece vocabulary needs scores");
  if (values->size() != vocab_size) {
    keys.fail("scores", fmt::format("has {} entries for {} tokens", values->size(), vocab_size));
  }
  return std::vector<float>(values->begin(), values->end());
}

// The keys of byte-level BPE: pre-tokenizer and merges.
void read_byte_level(const Keys& keys, TokenizerSpec& spec) {
  spec.kind = TokenizerKind::kByteLevelBpe;
  const auto pre = keys.optional_string("pre");
  if (!pre) {
    throw UnsupportedError(
        fmt::format("{}: the pre-tokenizer is missing, and a guess could give other tokens; "
                    "convert the model again",
                    Keys::name("pre")));
  }
  const PreTokenizerRule* rule = find_pre_tokenizer(*pre);
  if (rule == nullptr) {
    throw UnsupportedError(
        fmt::format("{}: unknown pre-tokenizer '{}'; a guess could give other tokens",
                    Keys::name("pre"), *pre));
  }
  spec.pre_tokenizer = rule->pre_tokenizer;
  spec.normalize_nfc = rule->normalize_nfc;
  spec.ignore_merges = rule->ignore_merges;
  const std::vector<std::string>* merges = keys.strings("merges");
  if (merges == nullptr) keys.fail("merges", "is missing; byte-level BPE needs merges");
  spec.merges = *merges;
  spec.add_bos = keys.boolean("add_bos_token", rule->add_bos && spec.bos.has_value());
  spec.add_eos = keys.boolean("add_eos_token", false);
  if (keys.boolean("add_space_prefix", false)) {
    throw UnsupportedError(fmt::format("{}: a space prefix for byte-level BPE is not supported",
                                       Keys::name("add_space_prefix")));
  }
}

// The keys of SentencePiece BPE: scores, and the treatment of spaces.
void read_sentence_piece(const Keys& keys, TokenizerSpec& spec) {
  spec.kind = TokenizerKind::kSentencePieceBpe;
  spec.scores = read_scores(keys, spec.pieces.size());
  spec.add_bos = keys.boolean("add_bos_token", spec.bos.has_value());
  spec.add_eos = keys.boolean("add_eos_token", false);
  spec.merge_order = MergeOrder::kScores;
  spec.space_prefix =
      keys.boolean("add_space_prefix", true) ? SpacePrefix::kEveryPart : SpacePrefix::kNone;
  spec.remove_extra_whitespaces = keys.boolean("remove_extra_whitespaces", false);
}

// Writers of GGUF use the name `no_vocab` for a model without a tokenizer.
bool has_gguf_vocabulary(const Checkpoint& checkpoint) {
  const std::string key = Keys::name("model");
  return checkpoint.metadata.contains(key) && checkpoint.metadata.string(key) != "no_vocab";
}

// Reads the tokenizer from the attachments. generation_config.json may list more ids that end an
// answer.
TokenizerSpec spec_of_attachments(const Checkpoint& checkpoint) {
  TokenizerSpec spec = tokenizer_spec_from(checkpoint.attachments);
  const std::vector<int64_t>* stops = checkpoint.metadata.integers(kStopTokenIdsKey);
  if (stops == nullptr) return spec;
  for (const int64_t id : *stops) {
    const bool is_new =
        std::find(spec.stop_ids.begin(), spec.stop_ids.end(), id) == spec.stop_ids.end();
    if (is_new && id >= 0 && static_cast<uint64_t>(id) < spec.pieces.size())
      spec.stop_ids.push_back(static_cast<TokenId>(id));
  }
  std::sort(spec.stop_ids.begin(), spec.stop_ids.end());
  return spec;
}

// Reads the tokenizer from tokenizer.ggml.*.
TokenizerSpec read_gguf_keys(const Checkpoint& checkpoint) {
  const Keys keys(checkpoint);
  const std::string model = keys.string("model");
  if (model != "gpt2" && model != "llama") {
    throw UnsupportedError(
        fmt::format("{}: unknown tokenizer model '{}'; known are gpt2 (byte-level BPE) and "
                    "llama (SentencePiece BPE)",
                    Keys::name("model"), model));
  }
  const std::vector<std::string>* tokens = keys.strings("tokens");
  if (tokens == nullptr || tokens->empty()) keys.fail("tokens", "is missing or empty");
  TokenizerSpec spec;
  spec.pieces = *tokens;
  const size_t vocab_size = spec.pieces.size();
  spec.types = read_types(keys, vocab_size);
  spec.bos = keys.id("bos_token_id", vocab_size);
  spec.eos = keys.id("eos_token_id", vocab_size);
  spec.eot = keys.id("eot_token_id", vocab_size);
  spec.eom = keys.id("eom_token_id", vocab_size);
  spec.unknown = keys.id("unknown_token_id", vocab_size);
  spec.pad = keys.id("padding_token_id", vocab_size);
  if (model == "gpt2") {
    read_byte_level(keys, spec);
  } else {
    read_sentence_piece(keys, spec);
  }
  if (spec.add_bos && !spec.bos)
    keys.fail("add_bos_token", "is true, but there is no bos_token_id");
  if (spec.add_eos && !spec.eos)
    keys.fail("add_eos_token", "is true, but there is no eos_token_id");
  spec.stop_ids = find_stop_ids(spec);
  return spec;
}

// Removes all keys and files of the checkpoint's own tokenizer.
void erase_tokenizer(Checkpoint& checkpoint) {
  checkpoint.metadata.erase_below(kPrefix);
  std::erase_if(checkpoint.attachments,
                [](const auto& attachment) { return is_tokenizer_file(attachment.first); });
}

}  // namespace

bool has_tokenizer(const Checkpoint& checkpoint) {
  return has_gguf_vocabulary(checkpoint) || has_tokenizer(checkpoint.attachments);
}

TokenizerSpec tokenizer_spec_from(const Checkpoint& checkpoint) {
  if (!has_gguf_vocabulary(checkpoint) && has_tokenizer(checkpoint.attachments))
    return spec_of_attachments(checkpoint);
  return read_gguf_keys(checkpoint);
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
    throw FormatError(checkpoint.path, FormatError::kNoOffset, "tokenizer.ggml", error.what());
  }
}

}  // namespace limpid
