// Cuts a text into the pieces that byte-level BPE merges within: each model family's regular
// expressions, compiled by hand into scanners (docs/tokenizers.md lists them).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace limpid {

enum class PreTokenizer : uint8_t {
  kGpt2,           // GPT-2
  kDigitsGpt2,     // every digit alone, then GPT-2
  kCl100k,         // OpenAI's cl100k: as kLlama3, but white space that ends a text is one piece
  kLlama3,         // cl100k-like, numbers in groups of up to three
  kQwen2,          // the same, every number alone
  kQwen35,         // the same, marks count as letters
  kSeedCoder,      // as kQwen2, line breaks never join punctuation
  kGpt4o,          // o200k: words split at case changes, contractions stay with the word
  kTekken,         // o200k without contractions, every number alone
  kDeepSeekV3,     // numbers, CJK runs, then words with marks
  kDeepSeekCoder,  // five splits, one after the other
  kBloom,          // runs without white space and without some punctuation
  kViking,         // kBloom, then every number alone
};

// What a `tokenizer.ggml.pre` name stands for.
struct PreTokenizerRule {
  std::string_view name;
  PreTokenizer pre_tokenizer;
  bool ignore_merges = false;  // a piece that is a token as a whole is that token
  bool normalize_nfc = false;  // the text is put into NFC first
  bool add_bos = false;        // when the file does not say
};

// The rule of that name, or nullptr: an unknown name is the caller's error to raise.
const PreTokenizerRule* find_pre_tokenizer(std::string_view name);

// All names, for error messages and documentation tests.
std::vector<std::string_view> pre_tokenizer_names();

}  // namespace limpid
