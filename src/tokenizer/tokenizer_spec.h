// Everything that defines a tokenizer, as plain data. The readers of all formats fill it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tokenizer/pre_tokenizer.h"

namespace limpid {

using TokenId = int32_t;

// U+2581 LOWER ONE EIGHTH BLOCK (▁), which SentencePiece writes for a space.
inline constexpr std::string_view kSpaceMark = "\xE2\x96\x81";

// ggml's token types.
enum class TokenType : uint8_t {
  kNormal = 1,
  kUnknown = 2,
  kControl = 3,
  kUserDefined = 4,
  kUnused = 5,
  kByte = 6
};

// The two algorithms.
enum class TokenizerKind : uint8_t {
  kByteLevelBpe,  // GPT-2's: bytes shown as printable code points, ranked merges, a pre-tokenizer
  kSentencePieceBpe,  // Llama 2's: scores, U+2581 for space, byte fallback
};

// Where SentencePiece adds a space (U+2581) that the text does not have.
enum class SpacePrefix : uint8_t {
  kNone,
  kEveryPart,      // before every stretch of text between special tokens
  kEveryPartOnce,  // the same, unless the stretch begins with a space (Metaspace, "always")
  kFirstPartOnce,  // before the text, unless it begins with a space or special token ("first")
};

// The order in which pairs merge.
enum class MergeOrder : uint8_t {
  kList,    // the order of `merges`, as in `tokenizers` and llama.cpp
  kRanks,   // the id of the merged token, as in tiktoken; `merges` is empty
  kScores,  // the score of the merged piece, as in SentencePiece; `merges` is empty
};

// How an added token matches, if not only by its name (Hugging Face's AddedToken).
struct AddedTokenRule {
  TokenId id = 0;
  bool strip_left = false;   // includes the white space before it
  bool strip_right = false;  // includes the white space after it
  bool single_word = false;  // does not match beside a letter, digit or underscore
  bool normalized = false;   // search its normalized name in the normalized text

  bool is_by_name() const { return !strip_left && !strip_right && !single_word && !normalized; }
};

// Readers of all formats produce this structure, and writers of all formats consume it, so that n
// readers and m writers do not need n * m conversions.
struct TokenizerSpec {
  TokenizerKind kind = TokenizerKind::kByteLevelBpe;
  PreTokenizer pre_tokenizer = PreTokenizer::kGpt2;  // byte-level BPE only
  std::vector<SplitStep> splits;                     // replaces `pre_tokenizer`, unless empty
  bool normalize_nfc = false;               // normalize the text to NFC; byte-level BPE only
  std::vector<std::string> pieces;          // id -> text as the file writes it
  std::vector<float> scores;                // SentencePiece only; same length as pieces
  std::vector<TokenType> types;             // same length as pieces
  std::vector<AddedTokenRule> added_rules;  // special tokens without a rule match by name
  // Pieces from this id on match only as added tokens (SentencePiece only).
  size_t first_added = SIZE_MAX;
  std::vector<std::string> merges;  // "left right", best first
  MergeOrder merge_order = MergeOrder::kList;
  bool meta_slices = false;    // cut the text first, like Meta's tokenizer.py (meta_slices.h)
  bool ignore_merges = false;  // a pre-token that is a token needs no merges
  std::optional<TokenId> bos, eos, eot, eom, unknown, pad;  // as the file names them
  std::vector<TokenId> stop_ids;  // end of generation: eos, eot, … found by name
  bool add_bos = false;
  bool add_eos = false;
  SpacePrefix space_prefix = SpacePrefix::kEveryPart;  // SentencePiece only
  // Whether the text in which normalized added tokens are searched has U+2581 for its spaces.
  // Metaspace, and SentencePiece itself, write it after the search. SentencePiece only.
  bool normalizes_spaces = true;
  bool remove_extra_whitespaces = false;  // SentencePiece only

  // Whether encoding may put a space before a text, so that decoding removes one.
  bool adds_space() const {
    return kind == TokenizerKind::kSentencePieceBpe && space_prefix != SpacePrefix::kNone;
  }
};

// Returns eos, eot and eom of the spec, and the control and user-defined tokens whose names
// llama.cpp treats as an end of generation (docs/tokenizers.md). Ascending ids.
std::vector<TokenId> find_stop_ids(const TokenizerSpec& spec);

// Cuts an entry of `merges` at its space. Returns nothing unless it is two pieces separated by one
// space.
std::optional<std::pair<std::string_view, std::string_view>> halves_of_merge(
    std::string_view merge);

}  // namespace limpid
