#include "tokenizer/token_tree.h"

#include <string>
#include <unordered_set>

#include "base/text.h"
#include "base/utf8.h"
#include "tokenizer/normalize.h"

namespace limpid {

TokenTree::TokenTree(std::shared_ptr<const Tokenizer> tokenizer)
    : tokenizer_(std::move(tokenizer)) {
  // The tokens that text can become. Whole pieces come before single bytes with the same spelling.
  std::unordered_set<std::string_view> seen;
  std::vector<std::string> names;
  for (const TokenType type : {TokenType::kNormal, TokenType::kByte}) {
    for (TokenId id = 0; id < tokenizer_->vocab_size(); ++id) {
      const std::string_view spelling = spelling_of(id);
      if (tokenizer_->spec().types[static_cast<size_t>(id)] != type || spelling.empty() ||
          !seen.insert(spelling).second)
        continue;
      names.emplace_back(spelling);
      ids_.push_back(id);
    }
  }
  automaton_ = NameAutomaton(names);
}

// A piece of a SentencePiece vocabulary has U+2581 for a space, and so has the text by then.
std::string_view TokenTree::spelling_of(TokenId id) const {
  const TokenizerSpec& spec = tokenizer_->spec();
  const auto index = static_cast<size_t>(id);
  return spec.kind == TokenizerKind::kSentencePieceBpe && spec.types[index] == TokenType::kNormal
             ? spec.pieces[index]
             : tokenizer_->bytes_of(id);
}

std::vector<TokenId> TokenTree::encode(std::string_view text, const EncodeOptions& options) const {
  const TokenizerSpec& spec = tokenizer_->spec();
  std::vector<TokenId> ids;
  ids.reserve(text.size() / 4 + 2);
  if (options.add_special && spec.add_bos) ids.push_back(*spec.bos);
  SpecialMatcher::Work work;
  tokenizer_->special_tokens().partition(
      text, options.special, work,
      [&](std::string_view part) {
        encode_stretch(part, options.at_start && part.data() == text.data(), ids);
      },
      [&](TokenId id) { ids.push_back(id); });
  if (options.add_special && spec.add_eos) ids.push_back(*spec.eos);
  return ids;
}

// One pass of the automaton from the end of the text finds the longest token at every position. A
// second pass from the start takes the tokens one after another.
void TokenTree::encode_stretch(std::string_view text, bool at_start,
                               std::vector<TokenId>& out) const {
  const TokenizerSpec& spec = tokenizer_->spec();
  const bool is_sentence_piece = spec.kind == TokenizerKind::kSentencePieceBpe;
  std::string changed;
  if (is_sentence_piece) {
    if (spec.remove_extra_whitespaces) {
      collapse_spaces(text, changed);
      if (changed.empty()) return;
      text = changed;
    }
    changed = replaced(text, " ", kSpaceMark);
    if (puts_space(spec.space_prefix, changed.starts_with(kSpaceMark), at_start))
      changed.insert(0, kSpaceMark);
    text = changed;
  } else if (spec.normalize_nfc && unicode::normalize_nfc(text, changed)) {
    text = changed;
  }
  std::vector<int32_t> longest(text.size());
  NameAutomaton::State state = NameAutomaton::kStart;
  for (size_t at = text.size(); at-- > 0;) {
    state = automaton_.next(state, text[at]);
    longest[at] = automaton_.longest(state);
  }
  for (size_t at = 0; at < text.size();) {
    if (longest[at] != NameAutomaton::kNone) {
      const TokenId id = ids_[static_cast<size_t>(longest[at])];
      out.push_back(id);
      at += spelling_of(id).size();
    } else if (is_sentence_piece) {  // a vocabulary without byte tokens has an unknown token
      out.push_back(*spec.unknown);
      at += unicode::decode(text.data() + at, text.data() + text.size()).size;
    } else {
      ++at;
    }
  }
}

// Walks through both sequences by byte position. A token counts as equal if the other sequence has
// the same id at the same position.
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
