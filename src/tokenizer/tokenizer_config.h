// Reads tokenizer_config.json, special_tokens_map.json and added_tokens.json of Hugging Face.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json_file.h"
#include "tokenizer/tokenizer_spec.h"

namespace limpid {

// What the JSON files say about a tokenizer.
struct TokenizerConfig {
  // An entry of "added_tokens_decoder" or of added_tokens.json.
  struct Token {
    std::string content;
    bool special = false;
    AddedTokenRule rule;  // with the id
  };
  std::string file;  // for messages
  std::string tokenizer_class;
  std::optional<std::string> bos, eos, unknown, pad;
  std::optional<bool> add_bos, add_eos;
  bool add_prefix_space = false;             // before every text; of vocab.json and merges.txt
  std::vector<Token> added_tokens;           // ascending ids
  std::string added_tokens_file;             // for messages
  std::vector<std::string> further_special;  // special tokens without a role
};

// Throws FormatError for keys of the wrong type.
TokenizerConfig read_tokenizer_config(const std::string& path, std::string_view bytes);

// Reads values from special_tokens_map.json that the configuration does not have.
void add_special_tokens_map(const std::string& path, std::string_view bytes,
                            TokenizerConfig& config);

// Reads added_tokens.json, {"<|im_start|>": 32000, …}, the older form of "added_tokens_decoder". If
// the configuration has that key, `transformers` ignores the file, and so does this function. A
// token is special if one of the other two files lists it as such. Call it after them.
void add_added_tokens(const std::string& path, std::string_view bytes, TokenizerConfig& config);

// Reads the flags of an added token from its entry in a JSON file. `normalized` is the default of
// the flag with this name.
AddedTokenRule read_added_rule(const JsonPlace& token, TokenId id, bool normalized);

// Decides whether BOS and EOS are added. A tokenizer.json contains this itself (kOfFile), and
// `transformers` then ignores the configuration. The frame of a text is what encoding adds around
// it, usually BOS before it.
enum class FrameRule : uint8_t { kOfFile, kOfConfig };

// Applies the configuration to the spec, as `transformers` does: bos, eos, pad and unk; added
// tokens and their flags, new ones after the vocabulary. Then sets stop_ids, which the readers of
// the vocabulary leave empty. Throws FormatError for ids and names that contradict the vocabulary.
void apply_tokenizer_config(const TokenizerConfig& config, FrameRule frame, TokenizerSpec& spec);

}  // namespace limpid
