#include "tokenizer/tokenizer_json_writer.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <unordered_map>

#include "base/check.h"
#include "base/utf8.h"
#include "tokenizer/merge_list.h"
#include "tokenizer/pre_tokenizer.h"

namespace limpid {
namespace {

using Json = nlohmann::json;

Json byte_level(bool add_prefix_space, bool trim_offsets, bool use_regex) {
  return {{"type", "ByteLevel"},
          {"add_prefix_space", add_prefix_space},
          {"trim_offsets", trim_offsets},
          {"use_regex", use_regex}};
}

// One step of a pre-tokenizer: "Digits", or "Split" with a regular expression.
Json split_step(const SplitStep& step) {
  if (step.kind == SplitStep::Kind::kNumeric)
    return {{"type", "Digits"}, {"individual_digits", !step.contiguous}};
  const char* behavior = step.drop_gaps ? "Removed" : step.contiguous ? "Contiguous" : "Isolated";
  return {{"type", "Split"},
          {"pattern", {{"Regex", step.pattern}}},
          {"behavior", behavior},
          {"invert", step.drop_gaps}};
}

// All steps, then "ByteLevel" without an expression of its own, which only maps bytes to the
// alphabet.
Json pre_tokenizer(const TokenizerSpec& spec) {
  std::vector<SplitStep> steps = spec.splits;
  if (steps.empty()) steps = find_splits(spec.pre_tokenizer);
  LIMPID_CHECK(UnsupportedError, !steps.empty() || spec.pre_tokenizer == PreTokenizer::kNone,
               "tokenizer.json cannot express how this tokenizer splits a text");
  Json sequence = Json::array();
  for (const SplitStep& step : steps) sequence.push_back(split_step(step));
  sequence.push_back(byte_level(false, true, false));
  return {{"type", "Sequence"}, {"pretokenizers", std::move(sequence)}};
}

Json added_token(const TokenizerSpec& spec, size_t id, const AddedTokenRule& rule) {
  return {{"id", id},
          {"content", spec.pieces[id]},
          {"single_word", rule.single_word},
          {"lstrip", rule.strip_left},
          {"rstrip", rule.strip_right},
          {"normalized", rule.normalized && spec.normalizes_spaces},
          {"special", spec.types[id] != TokenType::kUserDefined}};
}

// Control, unknown and user-defined tokens with their flags.
Json added_tokens(const TokenizerSpec& spec) {
  std::unordered_map<size_t, AddedTokenRule> rules;
  for (const AddedTokenRule& rule : spec.added_rules) rules[static_cast<size_t>(rule.id)] = rule;
  Json tokens = Json::array();
  for (size_t id = 0; id < spec.pieces.size(); ++id) {
    const TokenType type = spec.types[id];
    if (type == TokenType::kControl || type == TokenType::kUserDefined ||
        type == TokenType::kUnknown) {
      tokens.push_back(added_token(spec, id, rules[id]));
    }
  }
  return tokens;
}

// Adds BOS and EOS as the spec says.
Json post_processor(const TokenizerSpec& spec) {
  const bool bos = spec.add_bos && spec.bos;
  const bool eos = spec.add_eos && spec.eos;
  if (!bos && !eos && spec.kind == TokenizerKind::kSentencePieceBpe) return nullptr;
  if (!bos && !eos) {
    return byte_level(true, false, true);
  }
  Json single = Json::array();
  Json special = Json::object();
  const auto add = [&](TokenId id) {
    const std::string& name = spec.pieces[static_cast<size_t>(id)];
    special[name] = {{"id", name}, {"ids", {id}}, {"tokens", {name}}};
    return Json{{"SpecialToken", {{"id", name}, {"type_id", 0}}}};
  };
  if (bos) single.push_back(add(*spec.bos));
  single.push_back({{"Sequence", {{"id", "A"}, {"type_id", 0}}}});
  if (eos) single.push_back(add(*spec.eos));
  Json pair = single;
  pair.push_back({{"Sequence", {{"id", "B"}, {"type_id", 1}}}});
  return {{"type", "TemplateProcessing"},
          {"single", std::move(single)},
          {"pair", std::move(pair)},
          {"special_tokens", std::move(special)}};
}

// Writes SentencePiece's treatment of spaces.
Json space_normalizer(const TokenizerSpec& spec) {
  Json replace = {{"type", "Replace"}, {"pattern", {{"String", " "}}}, {"content", kSpaceMark}};
  if (spec.space_prefix == SpacePrefix::kNone) return replace;
  const Json prepend = {{"type", "Prepend"}, {"prepend", kSpaceMark}};
  return {{"type", "Sequence"}, {"normalizers", {prepend, std::move(replace)}}};
}

// The inverse of the normalizer: U+2581 to space, byte tokens to bytes, and without the first
// space.
Json sentence_piece_decoder(const TokenizerSpec& spec) {
  Json steps = {
      {{"type", "Replace"}, {"pattern", {{"String", kSpaceMark}}}, {"content", " "}},
      {{"type", "ByteFallback"}},
      {{"type", "Fuse"}},
  };
  if (spec.space_prefix != SpacePrefix::kNone)
    steps.push_back({{"type", "Strip"}, {"content", " "}, {"start", 1}, {"stop", 0}});
  return {{"type", "Sequence"}, {"decoders", std::move(steps)}};
}

void check_sentence_piece(const TokenizerSpec& spec) {
  LIMPID_CHECK(UnsupportedError,
               !spec.remove_extra_whitespaces && (spec.space_prefix == SpacePrefix::kNone ||
                                                  spec.space_prefix == SpacePrefix::kEveryPart),
               "tokenizer.json cannot express how this tokenizer treats spaces");
  const bool has_bytes = std::ranges::find(spec.types, TokenType::kByte) != spec.types.end();
  LIMPID_CHECK(UnsupportedError, has_bytes,
               "tokenizer.json cannot express a SentencePiece vocabulary without byte tokens");
}

// Vocabulary and merges. The vocabulary lists every piece with its id.
Json model(const TokenizerSpec& spec) {
  Json vocabulary = Json::object();
  for (size_t id = 0; id < spec.pieces.size(); ++id) {
    if (spec.pieces[id].empty()) continue;  // an unused rank of a rank file
    LIMPID_CHECK(UnsupportedError, unicode::is_valid(spec.pieces[id]),
                 "token {} is not UTF-8, and tokenizer.json cannot hold it", id);
    LIMPID_CHECK(UnsupportedError, !vocabulary.contains(spec.pieces[id]),
                 "the tokens {} and {} are the same piece, which tokenizer.json cannot hold",
                 vocabulary[spec.pieces[id]].dump(), id);
    vocabulary[spec.pieces[id]] = id;
  }
  const bool is_sentence_piece = spec.kind == TokenizerKind::kSentencePieceBpe;
  Json unknown = nullptr;
  if (spec.unknown && is_sentence_piece) unknown = spec.pieces[static_cast<size_t>(*spec.unknown)];
  return {{"type", "BPE"},
          {"dropout", nullptr},
          {"unk_token", std::move(unknown)},
          {"continuing_subword_prefix", nullptr},
          {"end_of_word_suffix", nullptr},
          {"fuse_unk", is_sentence_piece},
          {"byte_fallback", is_sentence_piece},
          {"ignore_merges", spec.ignore_merges},
          {"vocab", std::move(vocabulary)},
          {"merges", merge_list(spec)}};
}

}  // namespace

std::string write_tokenizer_json(const TokenizerSpec& spec) {
  Json json;
  json["version"] = "1.0";
  json["truncation"] = nullptr;
  json["padding"] = nullptr;
  json["added_tokens"] = added_tokens(spec);
  json["post_processor"] = post_processor(spec);
  if (spec.kind == TokenizerKind::kSentencePieceBpe) {
    check_sentence_piece(spec);
    json["normalizer"] = space_normalizer(spec);
    json["pre_tokenizer"] = nullptr;
    json["decoder"] = sentence_piece_decoder(spec);
  } else {
    json["normalizer"] = spec.normalize_nfc ? Json{{"type", "NFC"}} : Json(nullptr);
    json["pre_tokenizer"] = pre_tokenizer(spec);
    json["decoder"] = byte_level(true, true, true);
  }
  json["model"] = model(spec);
  return json.dump(1) + "\n";
}

}  // namespace limpid
