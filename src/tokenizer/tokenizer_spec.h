// Everything that defines a tokenizer, as plain data. model/registry fills it from a checkpoint.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tokenizer/pre_tokenizer.h"

namespace limpid {

using TokenId = int32_t;

// ggml's token types.
enum class TokenType : uint8_t {
  kNormal = 1,
  kUnknown = 2,
  kControl = 3,
  kUserDefined = 4,
  kUnused = 5,
  kByte = 6
};

enum class TokenizerKind : uint8_t {
  kByteLevelBpe,  // GPT-2's: bytes shown as printable code points, ranked merges, a pre-tokenizer
  kSentencePieceBpe,  // Llama 2's: scores, U+2581 for space, byte fallback
};

// Where SentencePiece puts the space (U+2581) that a text does not have.
enum class SpacePrefix : uint8_t {
  kNone,
  kEveryPart,      // before every stretch of text between special tokens
  kEveryPartOnce,  // the same, unless it begins with a space (Metaspace, "always")
  kFirstPartOnce,  // before the text, unless it begins with a space or special token ("first")
};

// In which order pairs merge.
enum class MergeOrder : uint8_t {
  kList,    // of `merges`, as in `tokenizers` and llama.cpp
  kRanks,   // by the id of what they merge into, as in tiktoken; `merges` is empty
  kScores,  // by the score of what they merge into, as in SentencePiece; `merges` is empty
};

// How an added token matches, where that is not simply by its name (Hugging Face's AddedToken).
struct AddedTokenRule {
  TokenId id = 0;
  bool strip_left = false;   // takes the white space before it
  bool strip_right = false;  // takes the white space behind it
  bool single_word = false;  // not beside a letter, digit or underscore
  bool normalized = false;   // its normalized name is looked for in the normalized text
};

// One cut of a pre-tokenizer that has no scanner: every piece is cut again by the next.
struct SplitStep {
  enum class Kind : uint8_t { kRegex, kNumeric };
  Kind kind = Kind::kRegex;
  std::string pattern;      // kRegex, in Oniguruma's syntax; kNumeric: Rust's char::is_numeric
  bool drop_gaps = false;   // what lies between the matches is left out
  bool contiguous = false;  // matches side by side are one piece
};

struct TokenizerSpec {
  TokenizerKind kind = TokenizerKind::kByteLevelBpe;
  PreTokenizer pre_tokenizer = PreTokenizer::kGpt2;  // byte-level BPE only
  std::vector<SplitStep> splits;                     // in place of `pre_tokenizer`, unless empty
  bool normalize_nfc = false;               // the text is put into NFC first; byte-level BPE only
  std::vector<std::string> pieces;          // id -> text as the file writes it
  std::vector<float> scores;                // SentencePiece only; same length as pieces
  std::vector<TokenType> types;             // same length as pieces
  std::vector<AddedTokenRule> added_rules;  // special tokens that are not here match by name
  std::vector<std::string> merges;          // "left right", best first
  MergeOrder merge_order = MergeOrder::kList;
  bool meta_slices = false;    // the text is cut first, as Meta's tokenizer.py does (meta_slices.h)
  bool ignore_merges = false;  // a whole pre-token that is a token needs no merges
  std::optional<TokenId> bos, eos, eot, eom, unknown, pad;  // as the file names them
  std::vector<TokenId> stop_ids;  // end of generation: eos, eot, … found by name
  bool add_bos = false;
  bool add_eos = false;
  SpacePrefix space_prefix = SpacePrefix::kEveryPart;  // SentencePiece only
  bool remove_extra_whitespaces = false;               // SentencePiece only
};

}  // namespace limpid
