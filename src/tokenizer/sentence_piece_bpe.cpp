#include "tokenizer/sentence_piece_bpe.h"

#include <algorithm>
#include <functional>

#include "base/check.h"
#include "base/text.h"
#include "base/utf8.h"
#include "tokenizer/normalize.h"

namespace limpid {
namespace {

// Returns whether plain text may become this piece.
bool is_plain(const TokenizerSpec& spec, size_t id) {
  const TokenType type = spec.types[id];
  return id < spec.first_added && (type == TokenType::kNormal || type == TokenType::kUserDefined ||
                                   type == TokenType::kUnused);
}

}  // namespace

SentencePieceBpe::SentencePieceBpe(TokenizerSpec given)
    : Tokenizer(std::move(given)), symbols_(spec_.pieces.size()), merges_(0), joined_(0) {
  set_token_bytes([](const std::string& piece) { return replaced(piece, kSpaceMark, " "); });
  byte_ids_.fill(-1);
  int n_bytes = 0;
  for (TokenId id = 0; id < vocab_size(); ++id) {
    const auto index = static_cast<size_t>(id);
    if (spec_.types[index] == TokenType::kByte) {
      TokenId& slot = byte_ids_[static_cast<uint8_t>(bytes_of(id)[0])];
      LIMPID_CHECK(ArgumentError, slot < 0, "[tokenizer] byte token {} is a duplicate",
                   spec_.pieces[index]);
      slot = id;
      ++n_bytes;
    }
    if (is_plain(spec_, index) && !spec_.pieces[index].empty())
      symbols_.insert(spec_.pieces[index], id);
  }
  LIMPID_CHECK(ArgumentError, n_bytes == 256 || (n_bytes == 0 && spec_.unknown),
               "[tokenizer] {} byte tokens; a SentencePiece vocabulary has all 256, or none and an "
               "unknown token",
               n_bytes);
  build_symbols();
  if (spec_.merge_order == MergeOrder::kScores) {
    build_score_merges();
  } else {
    build_list_merges();
  }
}

// Gives every character of a piece a symbol, even if the character itself is not a piece.
void SentencePieceBpe::build_symbols() {
  auto next_symbol = static_cast<TokenId>(spec_.pieces.size());
  for (size_t id = 0; id < spec_.pieces.size(); ++id) {
    if (!is_plain(spec_, id)) continue;
    const std::string_view piece = spec_.pieces[id];
    TokenId before = -1;
    unicode::for_each_character(piece, [&](std::string_view character) {
      if (symbols_.insert(character, next_symbol)) {
        virtual_characters_.emplace_back(character);
        ++next_symbol;
      }
      const TokenId symbol = symbols_.find(character);
      if (before >= 0) joined_.insert(before, symbol, 0, 0);
      before = symbol;
    });
  }
  unknown_symbol_ = next_symbol;
  space_symbol_ = symbol_of(kSpaceMark);
  for (size_t c = 0; c < ascii_symbols_.size(); ++c) {
    const char character = static_cast<char>(c);
    ascii_symbols_[c] = c == ' ' ? space_symbol_ : symbol_of({&character, 1});
  }
}

// Builds the merges from scores: any two pieces whose concatenation is a piece merge, with that
// piece's score. The last merge of a piece's characters forms the piece from two halves; without
// that merge, the characters end as exactly these two halves (linear_bpe.h explains why). One run
// of merging per piece, shorter pieces first, therefore finds all merges that can happen.
void SentencePieceBpe::build_score_merges() {
  // Equal scores get the same rank, so that the leftmost pair merges first.
  std::vector<float> scores(spec_.scores);
  std::sort(scores.begin(), scores.end(), std::greater<>());
  scores.erase(std::unique(scores.begin(), scores.end()), scores.end());
  std::vector<TokenId> ids;
  for (TokenId id = 0; id < vocab_size(); ++id) {
    // When two pieces have the same spelling, the first one is used.
    const auto index = static_cast<size_t>(id);
    if (is_plain(spec_, index) && symbols_.find(spec_.pieces[index]) == id) ids.push_back(id);
  }
  const auto size_of = [&](TokenId id) { return spec_.pieces[static_cast<size_t>(id)].size(); };
  std::ranges::stable_sort(ids, {}, size_of);
  Merger merger;
  std::vector<TokenId> symbols;
  for (const TokenId id : ids) {
    const std::string_view piece = spec_.pieces[static_cast<size_t>(id)];
    symbols.clear();
    unicode::for_each_character(
        piece, [&](std::string_view character) { symbols.push_back(symbols_.find(character)); });
    merger.merge(merges_, symbols);
    if (symbols.size() != 2) continue;
    const float score = spec_.scores[static_cast<size_t>(id)];
    const auto rank = std::lower_bound(scores.begin(), scores.end(), score, std::greater<>());
    merges_.insert(symbols[0], symbols[1], static_cast<uint32_t>(rank - scores.begin()), id);
  }
}

// Builds the merges from a list. The list gives the order, and pairs that it does not contain do
// not merge (`tokenizers`).
void SentencePieceBpe::build_list_merges() {
  for (size_t i = 0; i < spec_.merges.size(); ++i) {
    const auto halves = halves_of_merge(spec_.merges[i]);
    LIMPID_CHECK(ArgumentError, halves.has_value(),
                 "[tokenizer] merges[{}] is not two pieces separated by one space", i);
    const TokenId left = symbols_.find(halves->first);
    const TokenId right = symbols_.find(halves->second);
    const TokenId merged = symbols_.find(std::string(halves->first).append(halves->second));
    const auto is_piece = [&](TokenId symbol) { return symbol >= 0 && symbol < vocab_size(); };
    LIMPID_CHECK(ArgumentError, is_piece(left) && is_piece(right) && is_piece(merged),
                 "[tokenizer] merges[{}] contains a piece that is not in the vocabulary, or a "
                 "special token",
                 i);
    LIMPID_CHECK(ArgumentError, merges_.insert(left, right, static_cast<uint32_t>(i), merged),
                 "[tokenizer] merges[{}] is a duplicate", i);
  }
}

// The symbol of a character: its token, a virtual symbol, or the symbol for unknown characters.
TokenId SentencePieceBpe::symbol_of(std::string_view character) const {
  const TokenId symbol = symbols_.find(character);
  return symbol >= 0 ? symbol : unknown_symbol_;
}

// Cuts the text into words, where that cannot change the result (find_word_end), and encodes each;
// the ids of short words come from a cache. A space stays a space in these words and is given the
// symbol of U+2581, so that the text need not be copied. If a space is put before the text, the
// first word is built in scratch.word and is not cached.
void SentencePieceBpe::encode_text(std::string_view text, const Stretch& stretch,
                                   EncodeScratch& scratch, std::vector<TokenId>& out) const {
  if (spec_.remove_extra_whitespaces) {
    collapse_spaces(text, scratch.text);
    text = scratch.text;
    if (text.empty()) return;
  }
  const char* p = text.data();
  const char* const end = p + text.size();
  const bool has_space = text.front() == ' ' || text.starts_with(kSpaceMark);
  // Normalizing has put the space of kEveryPart there already.
  const bool has_prefix = stretch.normalized && spec_.normalizes_spaces &&
                          spec_.space_prefix == SpacePrefix::kEveryPart;
  if (!has_prefix && puts_space(spec_.space_prefix, has_space, stretch.at_start)) {
    const char* q = find_word_end(p, end, space_symbol_);
    scratch.word.assign(1, ' ').append(p, q);
    encode_word(scratch.word, scratch, out);
    p = q;
  }
  while (p < end) {
    const char* q = find_word_end(p, end, -1);
    const std::string_view word(p, static_cast<size_t>(q - p));
    if (word.size() > ShortPieceCache::kMaxBytes) {
      encode_word(word, scratch, out);
    } else {
      const auto key = ShortPieceCache::key_of(p, word.size(), static_cast<size_t>(end - p));
      if (const auto* entry = scratch.pieces.short_pieces.find(key)) {
        std::array<TokenId, ShortPieceCache::kMaxIds> ids;
        entry->unpack(ids.data());
        out.insert(out.end(), ids.begin(),
                   ids.begin() + static_cast<std::ptrdiff_t>(entry->count()));
      } else {
        const size_t before = out.size();
        encode_word(word, scratch, out);
        const std::span<const TokenId> ids = std::span(out).subspan(before);
        scratch.pieces.short_pieces.insert(key, ids);
      }
    }
    p = q;
  }
}

// Returns the first place from p on where the text can be cut: before a space that no piece joins
// with the character before it. `previous` is the symbol before p, or -1 if the text is cut at p.
const char* SentencePieceBpe::find_word_end(const char* p, const char* end,
                                            TokenId previous) const {
  const char* before = nullptr;  // start of the character before p
  while (p < end) {
    const uint32_t size = unicode::decode(p, end).size;
    if (*p == ' ' || std::string_view(p, size) == kSpaceMark) {
      if (before != nullptr) {
        const std::string_view character(before, static_cast<size_t>(p - before));
        previous = character == " " ? space_symbol_ : symbol_of(character);
      }
      const bool cut =
          previous >= 0 && joined_.find(previous, space_symbol_).rank == MergeTable::kNoRank;
      if (cut) return p;
    }
    before = p;
    p += size;
  }
  return end;
}

// Merges a word. Within the word it also cuts between characters that are adjacent in no piece,
// which keeps the merged stretches short.
void SentencePieceBpe::encode_word(std::string_view word, EncodeScratch& scratch,
                                   std::vector<TokenId>& out) const {
  std::vector<TokenId>& symbols = scratch.symbols;
  symbols.clear();
  const auto flush = [&] {
    scratch.merger.merge(merges_, symbols);
    emit(symbols, out);
    symbols.clear();
  };
  const char* const end = word.data() + word.size();
  for (const char* p = word.data(); p < end;) {
    const uint32_t size = unicode::decode(p, end).size;
    const std::string_view character(p, size);
    const auto lead = static_cast<uint8_t>(*p);
    const TokenId symbol = lead < 0x80 ? ascii_symbols_[lead] : symbol_of(character);
    p += size;
    if (symbol == unknown_symbol_) {
      // The character is in no piece, so it merges with nothing. If U+2581 is in no piece, a space
      // is unknown too, and is written as the bytes of U+2581.
      flush();
      emit_bytes(character == " " ? kSpaceMark : character, out);
      continue;
    }
    const bool cut =
        !symbols.empty() && joined_.find(symbols.back(), symbol).rank == MergeTable::kNoRank;
    if (cut) flush();
    symbols.push_back(symbol);
  }
  flush();
}

// Writes tokens for symbols. A symbol that is a token is its id; a virtual character becomes byte
// tokens.
void SentencePieceBpe::emit(const std::vector<TokenId>& symbols, std::vector<TokenId>& out) const {
  for (const TokenId symbol : symbols) {
    if (symbol < vocab_size()) {
      out.push_back(symbol);
    } else {
      emit_bytes(virtual_characters_[static_cast<size_t>(symbol - vocab_size())], out);
    }
  }
}

// Writes the byte tokens of a character, or the unknown token if the vocabulary has no byte tokens.
void SentencePieceBpe::emit_bytes(std::string_view character, std::vector<TokenId>& out) const {
  if (byte_ids_[0] < 0) {
    out.push_back(*spec_.unknown);
    return;
  }
  for (const char c : character) out.push_back(byte_ids_[static_cast<uint8_t>(c)]);
}

}  // namespace limpid
