// One text's tokens by two tokenizers, side by side.
#pragma once

#include <string>
#include <vector>

#include "tokenizer/tokenizer.h"

namespace limpid::cli {

// The tokens of a text. BOS and EOS around them are not part of the text.
struct TokenizedText {
  std::string name;  // of the model, for the head of its column
  const Tokenizer* tokenizer;
  std::vector<TokenId> ids;
  bool framed;  // with BOS and EOS where the tokenizer puts them
};

// The shortest stretches of the text at whose ends both tokenizers have a boundary.
struct ComparedStretch {
  std::vector<TokenId> left, right;
};
std::vector<ComparedStretch> align_tokens(const TokenizedText& left, const TokenizedText& right);

// Prints a row for each stretch, with "≠" between the columns where the cuts differ, and the counts
// at the end.
std::string format_comparison(const TokenizedText& left, const TokenizedText& right,
                              size_t text_bytes);

}  // namespace limpid::cli
