// The checked-in vocabularies of tests/data/tokenizer as TokenizerSpecs.
#pragma once

#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "data_paths.h"
#include "limpid/error.hpp"
#include "tokenizer/pre_tokenizer.h"
#include "tokenizer/tokenizer_spec.h"

namespace limpid {

inline TokenizerSpec small_vocabulary(const std::string& kind) {
  std::ifstream file(testing::test_data_path("tokenizer/small_" + kind + ".json"));
  const nlohmann::json json = nlohmann::json::parse(file);
  TokenizerSpec spec;
  spec.pieces = json["pieces"].get<std::vector<std::string>>();
  for (const int type : json["types"]) spec.types.push_back(static_cast<TokenType>(type));
  if (kind == "spm") {
    spec.kind = TokenizerKind::kSentencePieceBpe;
    spec.scores = json["scores"].get<std::vector<float>>();
    spec.merge_order = MergeOrder::kScores;
    spec.unknown = 0;
    spec.bos = 1;
    spec.eos = 2;
  } else {
    spec.merges = json["merges"].get<std::vector<std::string>>();
  }
  return spec;
}

inline TokenizerSpec small_bpe(const std::string& pre) {
  TokenizerSpec spec = small_vocabulary("bpe");
  const PreTokenizerRule* rule = find_pre_tokenizer(pre);
  if (rule == nullptr) throw ArgumentError("no pre-tokenizer '" + pre + "'");
  spec.pre_tokenizer = rule->pre_tokenizer;
  spec.normalize_nfc = rule->normalize_nfc;
  spec.ignore_merges = rule->ignore_merges;
  return spec;
}

}  // namespace limpid
