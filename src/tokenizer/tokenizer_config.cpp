#include "tokenizer/tokenizer_config.h"

#include <algorithm>
#include <unordered_set>

#include "base/check.h"
#include "base/parse_number.h"
#include "base/printable.h"
#include "base/text.h"

namespace limpid {
namespace {

// A token is a string, or an object with flags.
std::string_view name_of(const JsonPlace& token) {
  return token.is_object() ? token["content"].string() : token.string();
}

std::optional<std::string> read_name(const JsonPlace& root, std::string_view key) {
  const auto place = root.find(key);
  if (!place) return std::nullopt;
  const std::string_view name = name_of(*place);
  if (name.empty()) return std::nullopt;
  return std::string(name);
}

// Reads the names that no earlier file has stated.
void read_missing_names(const JsonPlace& root, TokenizerConfig& config) {
  if (!config.bos) config.bos = read_name(root, "bos_token");
  if (!config.eos) config.eos = read_name(root, "eos_token");
  if (!config.unknown) config.unknown = read_name(root, "unk_token");
  if (!config.pad) config.pad = read_name(root, "pad_token");
  for (const char* key : {"additional_special_tokens", "extra_special_tokens"}) {
    const auto place = root.find(key);
    if (!place || !place->element().is_array()) continue;
    for (const JsonPlace& token : place->elements())
      config.further_special.emplace_back(name_of(token));
  }
}

// An entry of "added_tokens_decoder": the key is the id, the value has the name and flags.
TokenizerConfig::Token read_added_token(const JsonPlace& place, std::string_view key) {
  TokenizerConfig::Token token;
  const auto id = parse_number<int32_t>(key);
  if (!id || *id < 0) place.fail("has a key that is not a token id");
  token.content = place["content"].string();
  if (token.content.empty()) place.fail("has no content");
  token.special = place.boolean("special", false);
  token.rule = read_added_rule(place, *id, !token.special);
  return token;
}

std::optional<TokenId> find_piece(const TokenizerSpec& spec, const std::string& piece) {
  const auto it = std::ranges::find(spec.pieces, piece);
  if (it == spec.pieces.end()) return std::nullopt;
  return static_cast<TokenId>(it - spec.pieces.begin());
}

// `names` are the names of all pieces; they are collected at the first token beyond the vocabulary.
void apply_added_token(const TokenizerConfig& config, const TokenizerConfig::Token& token,
                       std::unordered_set<std::string>& names, TokenizerSpec& spec) {
  const auto index = static_cast<size_t>(token.rule.id);
  const auto fail = [&](const std::string& problem) {
    throw_format_error(config.added_tokens_file, fmt::format("added token {}", index), "{}",
                       problem);
  };
  if (index > spec.pieces.size())
    fail(fmt::format("is beyond a vocabulary of {} tokens", spec.pieces.size()));
  if (index == spec.pieces.size()) {
    if (names.empty()) names.insert(spec.pieces.begin(), spec.pieces.end());
    if (!names.insert(token.content).second) fail("is in the vocabulary under another id");
    spec.pieces.emplace_back();
    spec.types.push_back(TokenType::kUnused);
    if (!spec.scores.empty()) spec.scores.push_back(0);
  }
  if (spec.types[index] == TokenType::kUnused && spec.pieces[index].empty())
    spec.pieces[index] = token.content;
  // read_sentence_piece_model has put spaces into the user-defined symbols.
  const bool is_same = spec.pieces[index] == token.content ||
                       (spec.merge_order == MergeOrder::kScores &&
                        spec.pieces[index] == replaced(token.content, kSpaceMark, " "));
  if (!is_same) fail("has another name in the vocabulary");
  if (spec.types[index] != TokenType::kUnknown)
    spec.types[index] = token.special ? TokenType::kControl : TokenType::kUserDefined;
}

// Puts the added tokens in the order of their ids.
void sort_added_tokens(const JsonPlace& added, TokenizerConfig& config) {
  const auto id_of = [](const TokenizerConfig::Token& token) { return token.rule.id; };
  std::ranges::sort(config.added_tokens, {}, id_of);
  const auto twice = std::ranges::adjacent_find(config.added_tokens, {}, id_of);
  if (twice != config.added_tokens.end()) added.fail("names id {} twice", twice->rule.id);
}

bool is_special(const TokenizerConfig& config, std::string_view name) {
  return config.bos == name || config.eos == name || config.unknown == name || config.pad == name ||
         std::ranges::find(config.further_special, name) != config.further_special.end();
}

// Added tokens within the vocabulary only set flags; those after it extend the vocabulary.
void apply_added_tokens(const TokenizerConfig& config, TokenizerSpec& spec) {
  std::unordered_set<std::string> names;
  std::unordered_set<TokenId> ids;
  for (const TokenizerConfig::Token& token : config.added_tokens) {
    apply_added_token(config, token, names, spec);
    ids.insert(token.rule.id);
  }
  std::erase_if(spec.added_rules,
                [&](const AddedTokenRule& rule) { return ids.count(rule.id) != 0; });
  for (const TokenizerConfig::Token& token : config.added_tokens) {
    if (!token.rule.is_by_name()) spec.added_rules.push_back(token.rule);
  }
}

}  // namespace

AddedTokenRule read_added_rule(const JsonPlace& token, TokenId id, bool normalized) {
  return {.id = id,
          .strip_left = token.boolean("lstrip", false),
          .strip_right = token.boolean("rstrip", false),
          .single_word = token.boolean("single_word", false),
          .normalized = token.boolean("normalized", normalized)};
}

TokenizerConfig read_tokenizer_config(const std::string& path, std::string_view bytes) {
  const JsonFile file(path, bytes);
  const JsonPlace root = file.root();
  TokenizerConfig config;
  config.file = path;
  config.tokenizer_class = root.string("tokenizer_class", "");
  read_missing_names(root, config);
  if (const auto flag = root.find("add_bos_token")) config.add_bos = flag->boolean();
  if (const auto flag = root.find("add_eos_token")) config.add_eos = flag->boolean();
  config.add_prefix_space = root.boolean("add_prefix_space", false);
  if (const auto added = root.find("added_tokens_decoder")) {
    config.added_tokens_file = path;
    for (const auto& [key, value] : added->object()) {
      const std::string name = fmt::format("added_tokens_decoder.{}", printable(key.substr(0, 20)));
      const JsonPlace place(path, name, value);
      config.added_tokens.push_back(read_added_token(place, key));
    }
    sort_added_tokens(*added, config);
  }
  return config;
}

void add_special_tokens_map(const std::string& path, std::string_view bytes,
                            TokenizerConfig& config) {
  const JsonFile file(path, bytes);
  const JsonPlace root = file.root();
  if (config.file.empty()) config.file = path;
  read_missing_names(root, config);
}

void add_added_tokens(const std::string& path, std::string_view bytes, TokenizerConfig& config) {
  if (!config.added_tokens_file.empty()) return;
  config.added_tokens_file = path;
  const JsonFile file(path, bytes);
  for (const auto& [name, value] : file.root().object()) {
    const JsonPlace place(path, printable(name.substr(0, 20)), value);
    const int64_t id = place.integer();
    if (id < 0 || id > INT32_MAX) place.fail("is {}, which is not a token id", id);
    if (name.empty()) place.fail("is the id of a token without a name");
    const bool special = is_special(config, name);
    config.added_tokens.push_back(
        {std::string(name), special, {.id = static_cast<TokenId>(id), .normalized = !special}});
  }
  sort_added_tokens(file.root(), config);
}

void apply_tokenizer_config(const TokenizerConfig& config, FrameRule frame, TokenizerSpec& spec) {
  apply_added_tokens(config, spec);
  const auto set = [&](const std::optional<std::string>& name, std::string_view key, bool required,
                       std::optional<TokenId>& id) {
    if (!name) return;
    const auto found = find_piece(spec, *name);
    if (!found && required) {
      throw_format_error(config.file, key, "'{}' is not in the vocabulary", *name);
    }
    if (found) id = found;
  };
  // If tokenizer.json frames a text with BOS or EOS, this stays, whatever the configuration calls
  // bos.
  const bool keeps_frame = frame == FrameRule::kOfFile;
  if (!(keeps_frame && spec.add_bos)) set(config.bos, "bos_token", true, spec.bos);
  if (!(keeps_frame && spec.add_eos)) set(config.eos, "eos_token", true, spec.eos);
  set(config.pad, "pad_token", false, spec.pad);
  set(config.unknown, "unk_token", false, spec.unknown);
  if (!keeps_frame) {
    spec.add_bos = config.add_bos.value_or(spec.add_bos) && spec.bos;
    spec.add_eos = config.add_eos.value_or(spec.add_eos) && spec.eos;
  }
  spec.stop_ids = find_stop_ids(spec);
}

}  // namespace limpid
