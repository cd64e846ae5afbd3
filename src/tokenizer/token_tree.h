// The token tree: text to tokens by the longest token at each place, and no merges.
#pragma once

#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "tokenizer/name_automaton.h"
#include "tokenizer/special_matcher.h"
#include "tokenizer/tokenizer.h"

namespace limpid {

// The longest token at each place of the text: simple, fast, and not what the model was trained
// with. Words are not cut apart first, so a token may reach over what a pre-tokenizer separates,
// and the longest token is often not the one that merging gives. `disagreement` says how often.
// Linear in the text.
class TokenTree {
 public:
  explicit TokenTree(std::shared_ptr<const Tokenizer> tokenizer);

  // As Tokenizer::encode in all but the choice of tokens: special tokens, BOS and EOS, NFC, the
  // space before a SentencePiece text, bytes without a token.
  std::vector<TokenId> encode(std::string_view text, const EncodeOptions& options = {}) const;

 private:
  void encode_stretch(std::string_view text, bool at_start, std::vector<TokenId>& out) const;

  std::shared_ptr<const Tokenizer> tokenizer_;
  NameAutomaton automaton_;
  std::vector<TokenId> ids_;  // by name
  SpecialMatcher specials_;
};

// How two tokenizations of one text differ.
struct TokenDisagreement {
  size_t n_exact = 0;      // tokens of the first
  size_t n_other = 0;      // of the second
  size_t n_differing = 0;  // of the first that the second does not have at the same place
};
TokenDisagreement disagreement(const Tokenizer& tokenizer, std::span<const TokenId> exact,
                               std::span<const TokenId> other);

}  // namespace limpid
