// Cuts a text into pieces; byte-level BPE merges only within a piece. Each model family has its own
// regular expressions, most of which are written by hand as scanners (docs/tokenizers.md lists
// them).
//
// Example with GPT-2's expression:
//   "I've 2 dogs.  Yes" -> "I" | "'ve" | " 2" | " dogs" | "." | " " | " Yes"
// A word takes one space before it. Of two spaces, the first is a piece of its own: `\s+(?!\S)`
// takes all spaces except the last, which is left for the word.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace limpid {

enum class PreTokenizer : uint8_t {
  kGpt2,        // GPT-2
  kDigitsGpt2,  // every digit alone, then GPT-2
  kCl100k,      // OpenAI's cl100k: like kLlama3, but white space at the end of a text is one piece
  kLlama3,      // cl100k-like, numbers in groups of up to three
  kQwen2,       // like kLlama3, but every digit is a piece
  kQwen35,      // like kQwen2, but marks count as letters
  kSeedCoder,   // like kQwen2, but line breaks never join punctuation
  kGpt4o,       // o200k: words split at case changes, contractions stay with the word
  kTekken,      // o200k without contractions; every digit is a piece
  kDeepSeekV3,  // numbers, CJK runs, then words with marks
  kDeepSeekCoder,  // five splits in sequence
  kBloom,          // runs without white space and without some punctuation
  kViking,         // kBloom, then every number alone
  kNone,           // the whole text is one piece
};

// One step of a pre-tokenizer without a scanner. Each step cuts the pieces of the previous step.
struct SplitStep {
  enum class Kind : uint8_t { kRegex, kNumeric };
  Kind kind = Kind::kRegex;
  std::string pattern{};    // kRegex, in Oniguruma's syntax; kNumeric: Rust's char::is_numeric
  bool drop_gaps = false;   // drop the text between matches
  bool contiguous = false;  // join adjacent matches into one piece
};

// The meaning of a `tokenizer.ggml.pre` name.
struct PreTokenizerRule {
  PreTokenizer pre_tokenizer;
  bool ignore_merges = false;  // a piece that is a token as a whole needs no merges
  bool normalize_nfc = false;  // the text is normalized to NFC first
  bool add_bos = false;        // if the file does not say so
};

// Returns the rule with this name, or nullptr. The caller reports unknown names.
const PreTokenizerRule* find_pre_tokenizer(std::string_view name);

// Returns all names, for error messages and documentation tests.
std::vector<std::string_view> pre_tokenizer_names();

// GPT-2's expression. The pre-tokenizer "ByteLevel" applies it by itself (`use_regex`).
extern const char* const kByteLevelPattern;

// Returns the pre-tokenizer that produces the same pieces as these steps in sequence, if there is
// one. Without a step it is kNone. The steps are regular expressions as tokenizer.json files write
// them.
std::optional<PreTokenizer> find_scanner(const std::vector<SplitStep>& steps);

// Returns steps that produce the same pieces as the pre-tokenizer. There are none for kNone, and
// none if tokenizer.json cannot express the pre-tokenizer.
std::vector<SplitStep> find_splits(PreTokenizer pre_tokenizer);

// Returns whether pre_tokenizer_scanners.h has a scanner written by hand. The matcher of split
// expressions (regex_splitter.h) runs the others, which few models have.
bool has_scanner(PreTokenizer pre_tokenizer);

}  // namespace limpid
