// SentencePiece's merging against its definition, for vocabularies in no order.
#include "tokenizer/sentence_piece_bpe.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <map>
#include <random>
#include <string>
#include <utility>

#include "allocation_count.h"

namespace limpid {
namespace {

// The best pair of neighbours that are a piece together merges, the leftmost of equals; then
// letters that are not a piece become bytes.
std::vector<TokenId> ids_by_definition(const TokenizerSpec& spec, const std::string& text) {
  std::map<std::string, size_t> pieces;
  for (size_t id = 256; id < spec.pieces.size(); ++id) pieces.emplace(spec.pieces[id], id);
  std::vector<std::string> symbols;
  for (const char c : text) symbols.emplace_back(1, c);
  for (;;) {
    size_t best = symbols.size();
    float best_score = 0;
    for (size_t i = 0; i + 1 < symbols.size(); ++i) {
      const auto found = pieces.find(symbols[i] + symbols[i + 1]);
      if (found == pieces.end()) continue;
      const float score = spec.scores[found->second];
      if (best < symbols.size() && score <= best_score) continue;
      best = i;
      best_score = score;
    }
    if (best == symbols.size()) break;
    symbols[best] += symbols[best + 1];
    symbols.erase(symbols.begin() + static_cast<std::ptrdiff_t>(best) + 1);
  }
  std::vector<TokenId> ids;
  for (const std::string& symbol : symbols) {
    const auto found = pieces.find(symbol);
    if (found != pieces.end()) {
      ids.push_back(static_cast<TokenId>(found->second));
    } else {
      for (const char c : symbol) ids.push_back(static_cast<uint8_t>(c));
    }
  }
  return ids;
}

TEST(SentencePieceBpe, MergesAsDefinedForScoresInAnyOrder) {
  std::mt19937 random(1);
  const auto letters = [&](size_t size, size_t n_letters) {
    std::string text;
    while (text.size() < size) text += static_cast<char>('a' + random() % n_letters);
    return text;
  };
  for (int trial = 0; trial < 200; ++trial) {
    TokenizerSpec spec;
    spec.kind = TokenizerKind::kSentencePieceBpe;
    spec.merge_order = MergeOrder::kScores;
    spec.space_prefix = SpacePrefix::kNone;
    for (int byte = 0; byte < 256; ++byte) spec.pieces.push_back(fmt::format("<0x{:02X}>", byte));
    spec.types.assign(256, TokenType::kByte);
    const size_t n_letters = 1 + random() % 3;
    for (size_t n = random() % 24; n > 0; --n) {
      // Some pieces come twice: the first counts.
      spec.pieces.push_back(letters(1 + random() % 7, n_letters));
      spec.types.push_back(TokenType::kNormal);
    }
    for (size_t i = 0; i < spec.pieces.size(); ++i)
      spec.scores.push_back(static_cast<float>(random() % 12));
    const auto tokenizer = Tokenizer::create(spec);
    for (int round = 0; round < 20; ++round) {
      const std::string text = letters(1 + random() % (round == 0 ? 150 : 20), n_letters);
      ASSERT_EQ(tokenizer->encode(text, {.add_special = false}), ids_by_definition(spec, text))
          << text;
    }
  }
}

// A single character that was added, and does not match here because it is not a word of its own,
// is not a piece of the model: it becomes its bytes, as any character without a piece.
TEST(SentencePieceBpe, AnAddedTokenIsNotAPiece) {
  TokenizerSpec spec;
  spec.kind = TokenizerKind::kSentencePieceBpe;
  spec.space_prefix = SpacePrefix::kNone;
  for (int byte = 0; byte < 256; ++byte) spec.pieces.push_back(fmt::format("<0x{:02X}>", byte));
  spec.types.assign(256, TokenType::kByte);
  spec.pieces.insert(spec.pieces.end(), {"a", "\u00e9"});
  spec.types.insert(spec.types.end(), {TokenType::kNormal, TokenType::kUserDefined});
  spec.added_rules = {{.id = 257, .single_word = true}};
  const auto ids = [&] { return Tokenizer::create(spec)->encode("a\u00e9 \u00e9"); };
  EXPECT_EQ(ids(), (std::vector<TokenId>{256, 257, 0xE2, 0x96, 0x81, 257}));
  spec.first_added = 257;
  EXPECT_EQ(ids(), (std::vector<TokenId>{256, 0xC3, 0xA9, 0xE2, 0x96, 0x81, 257}));
}

// As the decoder of a tokenizer.json does.
TEST(SentencePieceBpe, SpacesOfUserDefinedPiecesAreWrittenAsSpaces) {
  TokenizerSpec spec;
  spec.kind = TokenizerKind::kSentencePieceBpe;
  spec.space_prefix = SpacePrefix::kNone;
  spec.unknown = 0;
  spec.pieces = {"<unk>", "\u2581a", "\u2581b"};
  spec.types = {TokenType::kUnknown, TokenType::kUserDefined, TokenType::kControl};
  const std::vector<TokenId> ids = {1, 2};
  EXPECT_EQ(Tokenizer::create(spec)->decode(ids, true), " a\u2581b");
}

// A piece of n bytes has n - 1 places where two others may have merged into it. To keep something
// for each of them takes 50 bytes and more for each byte of a piece.
TEST(SentencePieceBpe, LongPiecesTakeMemoryForTheirBytesAlone) {
  std::mt19937 random(1);
  TokenizerSpec spec;
  spec.kind = TokenizerKind::kSentencePieceBpe;
  spec.merge_order = MergeOrder::kScores;
  spec.space_prefix = SpacePrefix::kNone;
  for (int byte = 0; byte < 256; ++byte) spec.pieces.push_back(fmt::format("<0x{:02X}>", byte));
  spec.types.assign(256, TokenType::kByte);
  spec.pieces.insert(spec.pieces.end(), {"a", "b"});
  int64_t n_bytes = 0;
  for (int i = 0; i < 1000; ++i) {
    std::string piece;
    while (piece.size() < 1024) piece += static_cast<char>('a' + random() % 2);
    n_bytes += std::ssize(piece);
    spec.pieces.push_back(std::move(piece));
  }
  spec.types.resize(spec.pieces.size(), TokenType::kNormal);
  for (size_t i = 0; i < spec.pieces.size(); ++i) spec.scores.push_back(-static_cast<float>(i));
  const int64_t before = testing::n_allocated_bytes;
  const auto tokenizer = Tokenizer::create(spec);
  const int64_t n_allocated = testing::n_allocated_bytes - before;
  EXPECT_LT(n_allocated, 16 * n_bytes);
  RecordProperty("bytes_allocated_for_each", std::to_string(n_allocated / n_bytes));
}

}  // namespace
}  // namespace limpid
