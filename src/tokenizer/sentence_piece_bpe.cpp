#include "tokenizer/sentence_piece_bpe.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "base/check.h"
#include "tokenizer/unicode.h"

namespace limpid {
namespace {

constexpr std::string_view kSpaceMark = "\xE2\x96\x81";  // U+2581 LOWER ONE EIGHTH BLOCK

// Spaces become U+2581; with `collapse`, runs become one and those at the ends go.
std::string escape_spaces(std::string_view text, bool add_prefix, bool collapse) {
  std::string out;
  out.reserve(text.size() + text.size() / 4 + kSpaceMark.size());
  if (collapse) {
    const size_t first = text.find_first_not_of(' ');
    if (first == std::string_view::npos) return out;
    text = text.substr(first, text.find_last_not_of(' ') - first + 1);
  }
  if (add_prefix) out += kSpaceMark;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != ' ') {
      out.push_back(text[i]);
    } else if (!collapse || text[i - 1] != ' ') {
      out += kSpaceMark;
    }
  }
  return out;
}

std::string unescape_spaces(const std::string& piece) {
  std::string out;
  for (size_t i = 0; i < piece.size();) {
    if (piece.compare(i, kSpaceMark.size(), kSpaceMark) == 0) {
      out.push_back(' ');
      i += kSpaceMark.size();
    } else {
      out.push_back(piece[i++]);
    }
  }
  return out;
}

// Types whose pieces plain text may merge into.
bool is_plain(TokenType type) {
  return type == TokenType::kNormal || type == TokenType::kUserDefined ||
         type == TokenType::kUnused;
}

}  // namespace

SentencePieceBpe::SentencePieceBpe(TokenizerSpec given)
    : Tokenizer(std::move(given)), symbols_(spec_.pieces.size() * 2), merges_(0), specials_(spec_) {
  byte_ids_.fill(-1);
  int n_bytes = 0;
  for (TokenId id = 0; id < vocab_size(); ++id) {
    const auto index = static_cast<size_t>(id);
    const TokenType type = spec_.types[index];
    if (type == TokenType::kNormal) {
      add_token_bytes(unescape_spaces(spec_.pieces[index]));
    } else {
      add_token_bytes(special_token_bytes(id));
    }
    if (type == TokenType::kByte) {
      TokenId& slot = byte_ids_[static_cast<uint8_t>(bytes_of(id)[0])];
      LIMPID_CHECK(ArgumentError, slot < 0, "[tokenizer] byte token {} is there twice",
                   spec_.pieces[index]);
      slot = id;
      ++n_bytes;
    }
    if (is_plain(type) && !spec_.pieces[index].empty()) symbols_.insert(spec_.pieces[index], id);
  }
  LIMPID_CHECK(ArgumentError, n_bytes == 256 || (n_bytes == 0 && spec_.unknown),
               "[tokenizer] {} byte tokens; a SentencePiece vocabulary has all 256, or none and an "
               "unknown token",
               n_bytes);
  build_merges();
}

void SentencePieceBpe::build_merges() {
  // Equal scores share a rank, so that the leftmost of them merges first.
  std::vector<float> scores(spec_.scores);
  std::sort(scores.begin(), scores.end(), std::greater<>());
  scores.erase(std::unique(scores.begin(), scores.end()), scores.end());
  const auto rank_of = [&](size_t id) {
    const auto it =
        std::lower_bound(scores.begin(), scores.end(), spec_.scores[id], std::greater<>());
    return static_cast<uint32_t>(it - scores.begin());
  };
  // Every character of a piece needs a symbol, whether it is a piece or not.
  const auto for_each_split = [&](auto&& visit) {
    for (size_t id = 0; id < spec_.pieces.size(); ++id) {
      if (!is_plain(spec_.types[id])) continue;
      const std::string_view piece = spec_.pieces[id];
      const char* const end = piece.data() + piece.size();
      for (const char* p = piece.data(); p < end;) {
        const uint32_t size = unicode::decode(p, end).size;
        visit(static_cast<TokenId>(id), piece, static_cast<size_t>(p - piece.data()), size);
        p += size;
      }
    }
  };
  TokenId next_symbol = static_cast<TokenId>(spec_.pieces.size());
  size_t n_splits = 0;
  for_each_split([&](TokenId, std::string_view piece, size_t at, uint32_t size) {
    ++n_splits;
    if (symbols_.insert(piece.substr(at, size), next_symbol)) {
      virtual_characters_.emplace_back(piece.substr(at, size));
      ++next_symbol;
    }
  });
  unknown_symbol_ = next_symbol;
  merges_ = MergeTable(n_splits);
  for_each_split([&](TokenId id, std::string_view piece, size_t at, uint32_t) {
    if (at == 0) return;
    const TokenId left = symbols_.find(piece.substr(0, at));
    const TokenId right = symbols_.find(piece.substr(at));
    if (left >= 0 && right >= 0) merges_.insert(left, right, rank_of(static_cast<size_t>(id)), id);
  });
}

TokenId SentencePieceBpe::symbol_of(std::string_view character) const {
  const TokenId symbol = symbols_.find(character);
  return symbol >= 0 ? symbol : unknown_symbol_;
}

void SentencePieceBpe::emit_bytes(std::string_view character, std::vector<TokenId>& out) const {
  if (byte_ids_[0] < 0) {
    out.push_back(*spec_.unknown);
    return;
  }
  for (const char c : character) out.push_back(byte_ids_[static_cast<uint8_t>(c)]);
}

void SentencePieceBpe::encode(std::string_view text, const EncodeOptions& options,
                              std::vector<TokenId>& out) const {
  LIMPID_CHECK(
      ArgumentError, text.size() < static_cast<size_t>(std::numeric_limits<int32_t>::max()) / 4,
      "[tokenizer] a text of {} bytes is too long; encode it in parts below 512 MiB", text.size());
  if (options.add_special && spec_.add_bos) out.push_back(*spec_.bos);
  specials_.partition(
      text, options.special, [&](std::string_view part) { encode_text(part, out); },
      [&](TokenId id) { out.push_back(id); });
  if (options.add_special && spec_.add_eos) out.push_back(*spec_.eos);
}

void SentencePieceBpe::encode_text(std::string_view text, std::vector<TokenId>& out) const {
  const std::string escaped =
      escape_spaces(text, spec_.add_space_prefix, spec_.remove_extra_whitespaces);
  std::vector<TokenId> symbols;
  symbols.reserve(escaped.size());
  // Characters without a symbol become bytes at the end; they are all one symbol, which merges with
  // nothing.
  std::vector<std::string_view> unknown;
  const char* const end = escaped.data() + escaped.size();
  for (const char* p = escaped.data(); p < end;) {
    const std::string_view character(p, unicode::decode(p, end).size);
    symbols.push_back(symbol_of(character));
    if (symbols.back() == unknown_symbol_) unknown.push_back(character);
    p += character.size();
  }
  Merger merger;
  merger.merge(merges_, symbols);
  size_t next_unknown = 0;
  for (const TokenId symbol : symbols) {
    if (symbol < vocab_size()) {
      out.push_back(symbol);
    } else if (symbol == unknown_symbol_) {
      emit_bytes(unknown[next_unknown++], out);
    } else {
      emit_bytes(virtual_characters_[static_cast<size_t>(symbol - vocab_size())], out);
    }
  }
}

}  // namespace limpid
