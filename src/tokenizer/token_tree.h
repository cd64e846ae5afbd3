// The token tree: tokenizes by taking the longest token at each place, without merges.
#pragma once

#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "tokenizer/name_automaton.h"
#include "tokenizer/tokenizer.h"

namespace limpid {

// Takes the longest token at each place of the text. The method is simple and fast, but it does not
// give the tokens that the model was trained with, for two reasons: words are not cut apart first,
// so a token may cross a boundary of the pre-tokenizer; and the longest token is often not the one
// that merging gives. Example: with the merges "b c" and then "a b", merging turns "abc" into [a,
// bc], while the longest match is [ab, c]. `disagreement` measures how often this happens. Takes
// linear time.
class TokenTree {
 public:
  explicit TokenTree(std::shared_ptr<const Tokenizer> tokenizer);

  // Like Tokenizer::encode except for the choice of tokens: special tokens, BOS and EOS, NFC, the
  // spaces of a SentencePiece text, and bytes without a token are treated in the same way.
  std::vector<TokenId> encode(std::string_view text, const EncodeOptions& options = {}) const;

 private:
  // The text that becomes the token.
  std::string_view spelling_of(TokenId id) const;
  void encode_stretch(std::string_view text, bool at_start, std::vector<TokenId>& out) const;

  std::shared_ptr<const Tokenizer> tokenizer_;
  NameAutomaton automaton_;
  std::vector<TokenId> ids_;  // by name
};

// The differences between two tokenizations of a text.
struct TokenDisagreement {
  size_t n_exact = 0;      // tokens of the first tokenization
  size_t n_other = 0;      // tokens of the second
  size_t n_differing = 0;  // tokens of the first that the second lacks at that place
};
TokenDisagreement disagreement(const Tokenizer& tokenizer, std::span<const TokenId> exact,
                               std::span<const TokenId> other);

}  // namespace limpid
