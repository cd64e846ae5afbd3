#include "tokenizer/tokenizer_json.h"

#include <fmt/format.h>

#include "base/json_file.h"
#include "tokenizer/byte_alphabet.h"
#include "tokenizer/tokenizer_config.h"
#include "tokenizer/tokenizer_pipeline.h"
#include "tokenizer/vocab_merges.h"

namespace limpid {
namespace {

// Reads merges as "left right" or as ["left", "right"].
void read_merges(const JsonPlace& model, TokenizerSpec& spec) {
  const JsonPlace place = model["merges"];
  const auto array = place.array();
  spec.merges.reserve(array.size());
  for (const simdjson::dom::element element : array) {
    std::string_view text;
    if (element.get_string().get(text) == simdjson::SUCCESS) {
      spec.merges.emplace_back(text);
      continue;
    }
    simdjson::dom::array pair;
    std::string_view left, right;
    const size_t index = spec.merges.size();
    if (element.get_array().get(pair) != simdjson::SUCCESS || pair.size() != 2 ||
        pair.at(0).get_string().get(left) != simdjson::SUCCESS ||
        pair.at(1).get_string().get(right) != simdjson::SUCCESS)
      place.fail("[{}] is neither a string nor a pair of strings", index);
    if (left.find(' ') != std::string_view::npos || right.find(' ') != std::string_view::npos)
      place.unsupported("[{}] has a piece with a space in it", index);
    spec.merges.emplace_back(fmt::format("{} {}", left, right));
  }
}

// Reads the model's options except vocabulary and merges.
void read_model_options(const JsonPlace& model, const PieceIds& ids, TokenizerSpec& spec) {
  model.allow_keys({"type", "dropout", "unk_token", "continuing_subword_prefix",
                    "end_of_word_suffix", "fuse_unk", "byte_fallback", "ignore_merges", "vocab",
                    "merges"});
  for (const std::string_view key : {"continuing_subword_prefix", "end_of_word_suffix"}) {
    if (!model.string(key, "").empty()) model[key].unsupported("is not supported");
  }
  if (model.find("dropout")) model["dropout"].unsupported("random tokenization is not supported");
  spec.ignore_merges = model.boolean("ignore_merges", false);
  if (const auto unknown = model.find("unk_token")) {
    const auto it = ids.find(unknown->string());
    if (it == ids.end()) unknown->fail("is not in the vocabulary");
    spec.unknown = it->second;
  }
  const bool byte_fallback = model.boolean("byte_fallback", false);
  if (spec.kind == TokenizerKind::kByteLevelBpe) {
    if (byte_fallback) model["byte_fallback"].unsupported("is not supported beside 'ByteLevel'");
    return;
  }
  if (spec.ignore_merges)
    model["ignore_merges"].unsupported("is not supported without 'ByteLevel'");
  if (!byte_fallback)
    model.unsupported("\"byte_fallback\": false is not supported without 'ByteLevel'");
  for (int byte = 0; byte < 256; ++byte) {
    const auto it = ids.find(fmt::format("<0x{:02X}>", byte));
    if (it != ids.end()) spec.types[static_cast<size_t>(it->second)] = TokenType::kByte;
  }
  if (spec.unknown) spec.types[static_cast<size_t>(*spec.unknown)] = TokenType::kUnknown;
}

// For a byte without a token, `tokenizers` gives the unknown token, if the file names one. Limpid
// leaves such a byte out, so it refuses the file.
void refuse_unknown_bytes(const JsonPlace& model, const PieceIds& ids, const TokenizerSpec& spec) {
  if (spec.kind != TokenizerKind::kByteLevelBpe || !spec.unknown) return;
  for (int byte = 0; byte < 256; ++byte) {
    const char c = static_cast<char>(byte);
    if (!ids.contains(byte_alphabet::spelling_of({&c, 1})))
      model["unk_token"].unsupported("is not supported where a byte (0x{:02X}) has no token", byte);
  }
}

// An added token that is not in the vocabulary gets the next id. `tokenizers` does so whatever id
// the file states, so a different id in the file would be ambiguous and is refused.
void read_added_tokens(const JsonPlace& root, const PieceIds& ids, TokenizerSpec& spec) {
  const auto list = root.find("added_tokens");
  if (!list) return;
  auto next_id = static_cast<int64_t>(ids.size());
  PieceIds added;
  for (const JsonPlace& token : list->elements()) {
    token.allow_keys({"id", "content", "single_word", "lstrip", "rstrip", "normalized", "special"});
    const std::string_view content = token["content"].string();
    if (content.empty()) token["content"].fail("is empty");
    if (added.count(content) != 0) token["content"].fail("is a duplicate");
    const auto known = ids.find(content);
    const int64_t id = known != ids.end() ? known->second : next_id++;
    if (token["id"].integer() != id)
      token["id"].fail("is {}, but the vocabulary makes it {}", token["id"].integer(), id);
    const auto index = static_cast<size_t>(id);
    if (index >= spec.pieces.size()) {
      spec.pieces.resize(index + 1);
      spec.types.resize(index + 1, TokenType::kUnused);
    } else if (known == ids.end() && spec.types[index] != TokenType::kUnused) {
      token["id"].fail("{} belongs to a piece of the vocabulary", id);
    }
    added.emplace(content, static_cast<TokenId>(id));
    spec.pieces[index] = content;
    if (spec.types[index] != TokenType::kUnknown) {
      spec.types[index] =
          token.boolean("special", false) ? TokenType::kControl : TokenType::kUserDefined;
    }
    const AddedTokenRule rule = read_added_rule(token, static_cast<TokenId>(id), false);
    if (!rule.is_by_name()) spec.added_rules.push_back(rule);
  }
}

}  // namespace

TokenizerSpec read_tokenizer_json(const std::string& path, std::string_view bytes) {
  const JsonFile file(path, bytes);
  const JsonPlace root = file.root();
  root.allow_keys({"version", "truncation", "padding", "added_tokens", "normalizer",
                   "pre_tokenizer", "post_processor", "decoder", "model"});
  if (root.string("version", "1.0") != "1.0") root["version"].unsupported("is not 1.0");
  const JsonPlace model = root["model"];
  if (model.string("type", "BPE") != "BPE") {  // GPT-2's file has no type
    model["type"].unsupported("'{}' is not supported, only BPE", model["type"].string());
  }
  TokenizerSpec spec;
  spec.space_prefix = SpacePrefix::kNone;
  read_tokenizer_pipeline(root, spec);
  const PieceIds ids = read_vocabulary(model["vocab"], spec);
  spec.first_added = spec.pieces.size();
  read_merges(model, spec);
  read_model_options(model, ids, spec);
  refuse_unknown_bytes(model, ids, spec);
  read_added_tokens(root, ids, spec);
  read_post_processor(root, spec);
  spec.add_bos = spec.bos.has_value();
  spec.add_eos = spec.eos.has_value();
  return spec;
}

}  // namespace limpid
