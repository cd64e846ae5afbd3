// tokenizer_config.json and special_tokens_map.json of Hugging Face.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json_file.h"
#include "tokenizer/tokenizer_spec.h"

namespace limpid {

// What the two JSON files say about a tokenizer.
struct TokenizerConfig {
  // An entry of "added_tokens_decoder".
  struct Token {
    std::string content;
    bool special = false;
    AddedTokenRule rule;  // with the id
  };
  std::string file;  // for messages
  std::string tokenizer_class;
  std::optional<std::string> bos, eos, unknown, pad;
  std::optional<bool> add_bos, add_eos;
  std::vector<Token> added_tokens;  // ascending ids
};

// Throws FormatError for keys of another type than they must have.
TokenizerConfig read_tokenizer_config(const std::string& path, std::string_view bytes);

// Takes from special_tokens_map.json what the configuration does not say.
void add_special_tokens_map(const std::string& path, std::string_view bytes,
                            TokenizerConfig& config);

// Where the spec comes from: a tokenizer.json says by itself whether BOS and EOS are added, and
// `transformers` then takes no other word for it.
enum class FrameRule : uint8_t { kOfFile, kOfConfig };

// Makes the spec what `transformers` makes of it with this configuration: bos, eos, pad and unk;
// added tokens and their flags, new ones behind the vocabulary. Throws FormatError for ids and
// names that contradict the vocabulary.
void apply_tokenizer_config(const TokenizerConfig& config, FrameRule frame, TokenizerSpec& spec);

}  // namespace limpid
