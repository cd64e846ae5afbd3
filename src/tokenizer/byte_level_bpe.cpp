#include "tokenizer/byte_level_bpe.h"

#include "base/check.h"
#include "tokenizer/byte_alphabet.h"
#include "tokenizer/normalize.h"
#include "tokenizer/pre_tokenizer_scanners.h"

namespace limpid {
ByteLevelBpe::ByteLevelBpe(TokenizerSpec given)
    : Tokenizer(std::move(given)), merges_(spec_.merges.size()) {
  std::string bytes;
  for (size_t i = 0; i < spec_.pieces.size(); ++i) {
    const std::string& piece = spec_.pieces[i];
    if (spec_.types[i] == TokenType::kNormal) {
      // A piece with a character outside the alphabet stands for itself, as in the reference's
      // decoder.
      if (!byte_alphabet::to_bytes(piece, bytes)) bytes = piece;
      add_token_bytes(bytes);
    } else {
      add_token_bytes(special_token_bytes(static_cast<TokenId>(i)));
    }
  }
  byte_ids_.fill(-1);
  const bool by_rank = spec_.merge_order == MergeOrder::kRanks;
  if (spec_.ignore_merges || by_rank) whole_pieces_ = PieceTable(spec_.pieces.size());
  for (TokenId id = 0; id < vocab_size(); ++id) {
    if (spec_.types[static_cast<size_t>(id)] != TokenType::kNormal) continue;
    const std::string_view b = bytes_of(id);
    if (b.size() == 1 && byte_ids_[static_cast<uint8_t>(b[0])] < 0)
      byte_ids_[static_cast<uint8_t>(b[0])] = id;
    if ((spec_.ignore_merges || by_rank) && !b.empty()) whole_pieces_.insert(b, id);
  }
  if (by_rank) {
    build_rank_merges();
  } else {
    build_merges();
  }
}

void ByteLevelBpe::build_merges() {
  for (size_t i = 0; i < spec_.merges.size(); ++i) {
    const std::string& merge = spec_.merges[i];
    const size_t space = merge.find(' ');
    LIMPID_CHECK(ArgumentError,
                 space != std::string::npos && space > 0 && space + 1 < merge.size() &&
                     merge.find(' ', space + 1) == std::string::npos,
                 "[tokenizer] merges[{}] is not two pieces with one space between", i);
    const std::string_view left = std::string_view(merge).substr(0, space);
    const std::string_view right = std::string_view(merge).substr(space + 1);
    std::string joined(left);
    joined += right;
    const auto left_id = find(left);
    const auto right_id = find(right);
    const auto joined_id = find(joined);
    LIMPID_CHECK(ArgumentError, left_id && right_id && joined_id,
                 "[tokenizer] merges[{}] speaks of a piece that is not in the vocabulary", i);
    LIMPID_CHECK(ArgumentError, !is_control(*joined_id),
                 "[tokenizer] merges[{}] would make a control token out of plain text", i);
    LIMPID_CHECK(ArgumentError,
                 merges_.insert(*left_id, *right_id, static_cast<uint32_t>(i), *joined_id),
                 "[tokenizer] merges[{}] is there twice", i);
  }
}

// Two tokens merge if their bytes together are a token, and that token's id is the rank. All ways
// to make one token have one rank, so the leftmost goes first: here a list of merges differs.
void ByteLevelBpe::build_rank_merges() {
  struct Pair {
    TokenId left, right, merged;
  };
  std::vector<Pair> pairs;
  for (TokenId id = 0; id < vocab_size(); ++id) {
    const std::string_view bytes = bytes_of(id);
    if (spec_.types[static_cast<size_t>(id)] != TokenType::kNormal) continue;
    for (size_t cut = 1; cut < bytes.size(); ++cut) {
      const TokenId left = whole_pieces_.find(bytes.substr(0, cut));
      if (left < 0) continue;
      const TokenId right = whole_pieces_.find(bytes.substr(cut));
      if (right >= 0) pairs.push_back({left, right, id});
    }
  }
  merges_ = MergeTable(pairs.size());
  for (const Pair& pair : pairs)
    merges_.insert(pair.left, pair.right, static_cast<uint32_t>(pair.merged), pair.merged);
}

void ByteLevelBpe::encode_text(std::string_view text, const Stretch& stretch,
                               EncodeScratch& scratch, std::vector<TokenId>& out) const {
  if (spec_.normalize_nfc && !stretch.normalized && unicode::normalize_nfc(text, scratch.text))
    text = scratch.text;
  const char* const end = text.data() + text.size();
  pre_tokenizer_scanners::split(
      spec_.pre_tokenizer, text.data(), end, [&](const char* p, size_t size) {
        if (size > PieceCache::kMaxBytes) return encode_piece({p, size}, scratch, out);
        const PieceCache::Key key = PieceCache::key_of(p, size, static_cast<size_t>(end - p));
        PieceCache::Entry& entry = scratch.cache.slot(key);
        if (entry.key == key) {
          out.insert(out.end(), entry.ids.begin(), entry.ids.begin() + entry.count);
          return;
        }
        const size_t before = out.size();
        encode_piece({p, size}, scratch, out);
        PieceCache::fill(entry, key, out.data() + before, out.size() - before);
      });
}

void ByteLevelBpe::encode_piece(std::string_view piece, EncodeScratch& scratch,
                                std::vector<TokenId>& out) const {
  if (spec_.ignore_merges) {
    const TokenId whole = whole_pieces_.find(piece);
    if (whole >= 0) {
      out.push_back(whole);
      return;
    }
  }
  std::vector<TokenId>& symbols = scratch.symbols;
  symbols.clear();
  for (const char c : piece) {
    const TokenId id = byte_ids_[static_cast<uint8_t>(c)];
    if (id >= 0) symbols.push_back(id);
  }
  scratch.merger.merge(merges_, symbols);
  out.insert(out.end(), symbols.begin(), symbols.end());
}

}  // namespace limpid
