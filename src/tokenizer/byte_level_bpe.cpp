#include "tokenizer/byte_level_bpe.h"

#include <algorithm>

#include "base/check.h"
#include "tokenizer/byte_alphabet.h"
#include "tokenizer/normalize.h"
#include "tokenizer/pre_tokenizer_scanners.h"

namespace limpid {

ByteLevelBpe::ByteLevelBpe(TokenizerSpec given) : Tokenizer(std::move(given)) {
  // A piece with a character outside the alphabet represents its own bytes, as in the reference
  // decoder.
  set_token_bytes([](const std::string& piece) {
    std::string bytes;
    return byte_alphabet::to_bytes(piece, bytes) ? bytes : piece;
  });
  const bool is_scanned = spec_.splits.empty() && has_scanner(spec_.pre_tokenizer);
  if (!is_scanned) {
    splitter_ = std::make_unique<RegexSplitter>(
        spec_.splits.empty() ? find_splits(spec_.pre_tokenizer) : spec_.splits);
  }
  find_byte_ids();
  if (spec_.merge_order == MergeOrder::kRanks) {
    build_rank_merges();
  } else {
    build_merges();
  }
  if (spec_.ignore_merges) find_unmergeable_pieces();
}

// The token of each byte. A fine-tune may have made such a token a special one, as with the pad
// token "!": it still is the byte's, and a text keeps its exclamation marks.
void ByteLevelBpe::find_byte_ids() {
  std::array<TokenId, 256> special{};
  byte_ids_.fill(-1);
  special.fill(-1);
  std::string spelled;
  for (TokenId id = 0; id < vocab_size(); ++id) {
    const auto index = static_cast<size_t>(id);
    const bool is_normal = spec_.types[index] == TokenType::kNormal;
    if (!is_normal && !byte_alphabet::to_bytes(spec_.pieces[index], spelled)) continue;
    const std::string_view bytes = is_normal ? bytes_of(id) : spelled;
    if (bytes.size() != 1) continue;
    TokenId& of_byte = (is_normal ? byte_ids_ : special)[static_cast<uint8_t>(bytes[0])];
    if (of_byte < 0) of_byte = id;
  }
  for (size_t byte = 0; byte < 256; ++byte)
    if (byte_ids_[byte] < 0) byte_ids_[byte] = special[byte];
}

void ByteLevelBpe::build_merges() {
  std::vector<LinearBpe::Merge> merges;
  MergeTable pairs(spec_.merges.size());
  merges.reserve(spec_.merges.size());
  for (size_t i = 0; i < spec_.merges.size(); ++i) {
    const auto halves = halves_of_merge(spec_.merges[i]);
    LIMPID_CHECK(ArgumentError, halves.has_value(),
                 "[tokenizer] merges[{}] is not two pieces separated by one space", i);
    const std::string joined = std::string(halves->first).append(halves->second);
    const auto left_id = find(halves->first);
    const auto right_id = find(halves->second);
    const auto joined_id = find(joined);
    LIMPID_CHECK(ArgumentError, left_id && right_id && joined_id,
                 "[tokenizer] merges[{}] contains a piece that is not in the vocabulary", i);
    LIMPID_CHECK(ArgumentError, !is_control(*joined_id),
                 "[tokenizer] merges[{}] would turn plain text into a control token", i);
    LIMPID_CHECK(ArgumentError,
                 pairs.insert(*left_id, *right_id, static_cast<uint32_t>(i), *joined_id),
                 "[tokenizer] merges[{}] is a duplicate", i);
    merges.push_back({*left_id, *right_id, static_cast<uint32_t>(i), *joined_id,
                      static_cast<uint32_t>(joined.size())});
  }
  bpe_ = LinearBpe(byte_ids_, std::move(merges));
}

// Finds the tokens that merging does not produce. When two tokens have the same bytes, the first
// one is used.
void ByteLevelBpe::find_unmergeable_pieces() {
  LinearBpe::Work work;
  std::vector<TokenId> odd;
  for (TokenId id = 0; id < vocab_size(); ++id) {
    if (spec_.types[static_cast<size_t>(id)] != TokenType::kNormal || bytes_of(id).empty())
      continue;
    if (bpe_.stands_alone(id)) continue;
    const auto merged = bpe_.encode(bytes_of(id), work);
    if (merged.size() == 1 && merged[0] < id) continue;
    odd.push_back(id);
  }
  unmergeable_pieces_ = PieceTable(odd.size());
  for (const TokenId id : odd) unmergeable_pieces_.insert(bytes_of(id), id);
}

// Builds the merges of a vocabulary without a merge list: two tokens merge if their concatenated
// bytes are a token, and the rank is that token's id. All ways to form a token have the same rank,
// so the leftmost merges first; a merge list would give each way a rank of its own.
void ByteLevelBpe::build_rank_merges() {
  PieceTable tokens(spec_.pieces.size());
  for (TokenId id = 0; id < vocab_size(); ++id) {
    if (spec_.types[static_cast<size_t>(id)] == TokenType::kNormal) tokens.insert(bytes_of(id), id);
  }
  std::vector<LinearBpe::Merge> merges;
  for (TokenId id = 0; id < vocab_size(); ++id) {
    // When two tokens have the same bytes, the first one is used.
    const std::string_view bytes = bytes_of(id);
    if (spec_.types[static_cast<size_t>(id)] == TokenType::kNormal && tokens.find(bytes) == id)
      merges.push_back(
          {-1, -1, static_cast<uint32_t>(id), id, static_cast<uint32_t>(bytes.size()), bytes});
  }
  bpe_ = LinearBpe(byte_ids_, std::move(merges));
}

// Cuts the text into pieces and encodes them in batches. While one batch is being cut, the memory
// that the cache look-ups will read is already being fetched.
void ByteLevelBpe::encode_text(std::string_view text, const Stretch& stretch,
                               EncodeScratch& scratch, std::vector<TokenId>& out) const {
  if (spec_.normalize_nfc && !stretch.normalized &&
      unicode::normalize_nfc(text, scratch.text, scratch.points))
    text = scratch.text;
  const char* const end = text.data() + text.size();
  IdSink sink(out);
  PieceBatch batch(scratch.pieces, end);
  const auto on_piece = [&](const char* p, size_t size) {
    batch.add(p, size);
    if (batch.is_full()) encode_batch(batch, scratch, sink);
  };
  if (splitter_) {
    splitter_->split(text, on_piece);
  } else {
    pre_tokenizer_scanners::split(spec_.pre_tokenizer, text.data(), end, on_piece);
  }
  encode_batch(batch, scratch, sink);
  sink.flush();
}

void ByteLevelBpe::encode_batch(PieceBatch& batch, EncodeScratch& scratch, IdSink& sink) const {
  batch.look_up();
  for (const PieceBatch::Piece& piece : batch.pieces()) {
    if (piece.is_known()) {
      sink.put<2>(*piece.entry);
    } else {
      encode_seldom_piece(batch, piece, scratch, sink);
    }
  }
  batch.clear();
}

// Encodes a piece that is long, has many tokens, or was not seen recently.
void ByteLevelBpe::encode_seldom_piece(const PieceBatch& batch, const PieceBatch::Piece& piece,
                                       EncodeScratch& scratch, IdSink& sink) const {
  PieceCaches& caches = scratch.pieces;
  const bool is_short = piece.text.size() <= ShortPieceCache::kMaxBytes;
  if (is_short) {
    if (const auto* entry = caches.short_pieces.find(piece.key)) return sink.put<2>(*entry);
  }
  LongPieceCache::Key key{};
  // A piece with fewer bytes has fewer ids and is in the other cache.
  const bool can_be_long = piece.text.size() > ShortPieceCache::kMaxIds &&
                           piece.text.size() <= LongPieceCache::kMaxBytes;
  if (can_be_long) {
    key = batch.long_key_of(piece.text);
    if (const auto* entry = caches.long_pieces.find(key)) return sink.put<4>(*entry);
  }
  const std::span<const TokenId> ids = ids_of(piece.text, scratch);
  sink.put(ids);
  if (is_short && ids.size() <= ShortPieceCache::kMaxIds) {
    caches.short_pieces.insert(piece.key, ids);
  } else if (can_be_long) {
    caches.long_pieces.insert(key, ids);
  }
}

// Merges a piece that no cache knows.
std::span<const TokenId> ByteLevelBpe::ids_of(std::string_view piece,
                                              EncodeScratch& scratch) const {
  if (const TokenId whole = unmergeable_pieces_.find(piece); whole >= 0) {
    scratch.symbols.assign(1, whole);
    return scratch.symbols;
  }
  const std::span<const TokenId> ids = bpe_.encode(piece, scratch.linear);
  if (!ids.empty()) return ids;
  // A byte has no token. The byte is left out, and the bytes beside it become neighbours.
  scratch.word.clear();
  for (const char c : piece) {
    if (byte_ids_[static_cast<uint8_t>(c)] >= 0) scratch.word.push_back(c);
  }
  return bpe_.encode(scratch.word, scratch.linear);
}

}  // namespace limpid
