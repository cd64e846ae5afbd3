// Trains a byte-level BPE tokenizer (Sennrich et al. 2016, arXiv:1508.07909; on bytes: Radford et
// al. 2019). The vocabulary and the merges are those of `BpeTrainer` of the package `tokenizers`
// with the alphabet of all 256 bytes, for the same text and the same pre-tokenizer:
//
// 1. The special tokens get the first ids, then the bytes, in the order of their code points in
//    GPT-2's alphabet (byte_alphabet.h).
// 2. A pre-tokenizer cuts the text into words.
// 3. The most frequent pair of adjacent tokens becomes the next token, until the vocabulary is
//    full. Of several pairs, the one with the smallest left id is taken, then the one with the
//    smallest right id.
//
// Example: special token <s>, text "hug hug pug bug", 259 tokens. <s> is 0, "!" is 1, …, "u" is 85.
// The words are "hug", " hug", " pug", " bug". "ug" occurs four times: token 257 is "ug". "hug"
// occurs twice, and becomes token 258.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "tokenizer/tokenizer_spec.h"
#include "train/bpe/count_words.h"
#include "train/bpe/pair_table.h"

namespace limpid {

// Words are counted first, with `progress` in bytes. Then pairs are merged, with `merging`.
struct BpeTrainingOptions : bpe::CountOptions {
  int64_t vocab_size = 32'000;  // with the special tokens and the bytes
  std::vector<std::string> special_tokens;
  int64_t min_frequency = 0;  // pairs that occur less often do not become a token
  // Called with the tokens of the vocabulary. Returning false cancels (ResourceError).
  std::function<bool(uint64_t done, uint64_t total)> merging = {};
};

struct TrainedBpe {
  std::vector<std::string> pieces;  // id -> spelling in GPT-2's alphabet; special tokens as given
  std::vector<bpe::TokenPair> merges;  // in the order in which they were learned
  size_t n_special = 0;                // the special tokens are the ids below
  PreTokenizer pre_tokenizer = PreTokenizer::kGpt2;

  // The text that the merges were learned from.
  uint64_t n_bytes = 0;
  uint64_t n_words = 0;
  uint64_t n_different_words = 0;
  int64_t last_count = 0;  // how often the pair of the last merge occurred; 0 without merges
};

// Trains on UTF-8 texts. The vocabulary is smaller than asked for if the text runs out of pairs
// that are frequent enough. The name of a special token in the text is treated like other text.
//
// Throws ArgumentError for a vocabulary that is too small for the bytes and the special tokens, for
// a special token that is empty, not UTF-8 or listed twice, and when all texts are empty;
// FormatError, with the offset, for text that is not UTF-8; ResourceError when
// `progress` or `merging` cancels.
TrainedBpe train_bpe(std::span<const TrainingText> texts, const BpeTrainingOptions& options);

// Returns the tokenizer, for Tokenizer::create and write_tokenizer_json. It lacks the merges that
// spell a special token, because plain text must not become a control token.
TokenizerSpec tokenizer_spec(const TrainedBpe& trained);

}  // namespace limpid
