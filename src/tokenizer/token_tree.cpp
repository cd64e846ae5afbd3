#include "tokenizer/token_tree.h"

#include <string>

#include "tokenizer/normalize.h"

namespace limpid {
namespace {

bool puts_space(SpacePrefix prefix, std::string_view text, bool at_start) {
  switch (prefix) {
    case SpacePrefix::kNone:
      return false;
    case SpacePrefix::kEveryPart:
      return true;
    case SpacePrefix::kEveryPartOnce:
      return text.front() != ' ';
    case SpacePrefix::kFirstPartOnce:
      return at_start && text.front() != ' ';
  }
  return false;
}

// Tokens that text can become. Whole pieces before single bytes, which are spelled alike.
std::vector<ByteTrie::Token> plain_tokens(const Tokenizer& tokenizer) {
  const TokenizerSpec& spec = tokenizer.spec();
  std::vector<ByteTrie::Token> tokens;
  for (const TokenType type : {TokenType::kNormal, TokenType::kByte}) {
    for (TokenId id = 0; id < tokenizer.vocab_size(); ++id) {
      if (spec.types[static_cast<size_t>(id)] == type)
        tokens.emplace_back(tokenizer.bytes_of(id), id);
    }
  }
  return tokens;
}

}  // namespace

TokenTree::TokenTree(std::shared_ptr<const Tokenizer> tokenizer)
    : tokenizer_(std::move(tokenizer)),
      trie_(plain_tokens(*tokenizer_)),
      specials_(tokenizer_->spec(), SpecialMatcher::Names::kAll) {}

std::vector<TokenId> TokenTree::encode(std::string_view text, const EncodeOptions& options) const {
  const TokenizerSpec& spec = tokenizer_->spec();
  std::vector<TokenId> ids;
  ids.reserve(text.size() / 4 + 2);
  if (options.add_special && spec.add_bos) ids.push_back(*spec.bos);
  specials_.partition(
      text, options.special,
      [&](std::string_view part) {
        encode_stretch(part, options.at_start && part.data() == text.data(), ids);
      },
      [&](TokenId id) { ids.push_back(id); });
  if (options.add_special && spec.add_eos) ids.push_back(*spec.eos);
  return ids;
}

void TokenTree::encode_stretch(std::string_view text, bool at_start,
                               std::vector<TokenId>& out) const {
  const TokenizerSpec& spec = tokenizer_->spec();
  std::string changed;
  if (spec.kind == TokenizerKind::kSentencePieceBpe) {
    if (puts_space(spec.space_prefix, text, at_start)) text = changed = " " + std::string(text);
  } else if (spec.normalize_nfc && unicode::normalize_nfc(text, changed)) {
    text = changed;
  }
  const char* const end = text.data() + text.size();
  for (const char* p = text.data(); p < end;) {
    const ByteTrie::Match match = trie_.longest(p, end);
    if (match.id >= 0) {
      out.push_back(match.id);
      p += match.size;
      continue;
    }
    if (spec.unknown && spec.kind == TokenizerKind::kSentencePieceBpe) out.push_back(*spec.unknown);
    ++p;
  }
}

TokenDisagreement disagreement(const Tokenizer& tokenizer, std::span<const TokenId> exact,
                               std::span<const TokenId> other) {
  TokenDisagreement result{exact.size(), other.size(), 0};
  size_t at = 0;        // bytes before exact[i]
  size_t other_at = 0;  // before other[j]
  size_t j = 0;
  for (const TokenId id : exact) {
    for (; j < other.size() && other_at < at; ++j)
      other_at += tokenizer.bytes_of(other[j], true).size();
    const bool same = j < other.size() && other_at == at && other[j] == id;
    if (!same) ++result.n_differing;
    const size_t size = tokenizer.bytes_of(id, true).size();
    if (same) {
      ++j;
      other_at += size;
    }
    at += size;
  }
  return result;
}

}  // namespace limpid
