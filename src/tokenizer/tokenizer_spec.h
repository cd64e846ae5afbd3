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

struct TokenizerSpec {
  TokenizerKind kind = TokenizerKind::kByteLevelBpe;
  PreTokenizer pre_tokenizer = PreTokenizer::kGpt2;  // byte-level BPE only
  bool normalize_nfc = false;       // the text is put into NFC first; byte-level BPE only
  std::vector<std::string> pieces;  // id -> text as the file writes it
  std::vector<float> scores;        // SentencePiece only; same length as pieces
  std::vector<TokenType> types;     // same length as pieces
  std::vector<std::string> merges;  // "left right", best first; byte-level BPE only
  bool ignore_merges = false;       // a whole pre-token that is a token needs no merges
  std::optional<TokenId> bos, eos, eot, eom, unknown, pad;  // as the file names them
  std::vector<TokenId> stop_ids;  // end of generation: eos, eot, … found by name
  bool add_bos = false;
  bool add_eos = false;
  bool add_space_prefix = true;           // SentencePiece only
  bool remove_extra_whitespaces = false;  // SentencePiece only
};

}  // namespace limpid
