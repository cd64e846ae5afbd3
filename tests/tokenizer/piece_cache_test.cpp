#include "tokenizer/piece_cache.h"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <string>
#include <vector>

namespace limpid {
namespace {

template <class Cache>
std::vector<TokenId> ids_of(const typename Cache::Entry& entry) {
  std::vector<TokenId> ids(Cache::kMaxIds);
  entry.unpack(ids.data());
  ids.resize(entry.count());
  return ids;
}

template <class Cache>
typename Cache::Key key_of(const std::string& piece) {
  return Cache::key_of(piece.data(), piece.size(), piece.size());
}

// Ids that only this piece has, as many as a cache takes or fewer.
std::vector<TokenId> made_up_ids(const std::string& piece, size_t most) {
  std::mt19937 random(static_cast<unsigned>(std::hash<std::string>{}(piece)));
  std::vector<TokenId> ids(1 + random() % most);
  for (TokenId& id : ids) id = static_cast<TokenId>(random() % (1 << 20));
  return ids;
}

template <class Cache>
void expect_no_wrong_ids() {
  Cache cache(3);  // 8 pairs of lines: every insertion drives something out
  std::mt19937 random(1);
  std::map<std::string, std::vector<TokenId>> wanted;
  size_t n_found = 0;
  for (int i = 0; i < 20'000; ++i) {
    const size_t longest = random() % 2 == 0 ? 4 : Cache::kMaxBytes;
    std::string piece(1 + random() % longest, '\0');
    // Few different ones, zero bytes among them: a piece and the same with a zero byte more differ.
    for (char& c : piece) c = static_cast<char>(random() % 8 == 0 ? 1 : 0);
    const auto key = key_of<Cache>(piece);
    const auto& ids = wanted.emplace(piece, made_up_ids(piece, Cache::kMaxIds)).first->second;
    const auto* near = cache.find_near(key);
    if (near != nullptr) {
      EXPECT_EQ(ids_of<Cache>(*near), ids);
    }
    if (const auto* entry = cache.find(key)) {
      ++n_found;
      EXPECT_EQ(ids_of<Cache>(*entry), ids);
      EXPECT_EQ(cache.find_near(key), entry) << "what is met comes into the first line";
    } else {
      cache.insert(key, ids);
      ASSERT_NE(cache.find(key), nullptr);
      EXPECT_EQ(ids_of<Cache>(*cache.find(key)), ids);
    }
  }
  EXPECT_GT(n_found, 2'000u);
}

TEST(PieceCacheTest, WhatIsFoundIsWhatWasKept) {
  expect_no_wrong_ids<ShortPieceCache>();
  expect_no_wrong_ids<LongPieceCache>();
}

TEST(PieceCacheTest, KeepsWhatComesOftenAmongWhatComesOnce) {
  ShortPieceCache cache(0);  // one pair of lines, four pieces
  const auto often = key_of<ShortPieceCache>("often");
  cache.insert(often, std::vector<TokenId>{7});
  for (int i = 0; i < 100; ++i) {
    ASSERT_NE(cache.find(often), nullptr);
    cache.insert(key_of<ShortPieceCache>("once " + std::to_string(i)), std::vector<TokenId>{i});
  }
}

TEST(PieceCacheTest, LeavesOutWhatDoesNotFit) {
  ShortPieceCache cache(0);
  const auto key = key_of<ShortPieceCache>("piece");
  cache.insert(key, std::vector<TokenId>(ShortPieceCache::kMaxIds + 1, 1));
  EXPECT_EQ(cache.find(key), nullptr);
  cache.insert(key, std::vector<TokenId>{1, 1 << 20});
  EXPECT_EQ(cache.find(key), nullptr);
  const std::vector<TokenId> most(ShortPieceCache::kMaxIds, (1 << 20) - 1);
  cache.insert(key, most);
  ASSERT_NE(cache.find(key), nullptr);
  EXPECT_EQ(ids_of<ShortPieceCache>(*cache.find(key)), most);
}

TEST(PieceCacheTest, KeysDoNotDependOnWhatStandsBehind) {
  const std::string text = "a piece of text, and what stands behind it in memory";
  for (size_t size = 1; size <= LongPieceCache::kMaxBytes; ++size) {
    EXPECT_EQ(LongPieceCache::key_of(text.data(), size, text.size()),
              LongPieceCache::key_of(text.data(), size, size));
  }
}

// An entry that look_up found may move before it is used; then the piece is no longer known.
TEST(PieceBatchTest, AnEntryThatMovedIsNotTaken) {
  PieceCaches caches{ShortPieceCache(0), LongPieceCache(0)};
  const std::string text = "abcdefgh";
  for (size_t i = 0; i < 4; ++i) {
    const auto key = ShortPieceCache::key_of(&text[i], 1, 1);
    caches.short_pieces.insert(key, std::vector<TokenId>{static_cast<TokenId>(i)});
  }
  PieceBatch batch(caches, text.data() + text.size());
  for (size_t i = 0; i < 8; ++i) batch.add(&text[i], 1);
  batch.look_up();
  size_t n_known = 0;
  for (const PieceBatch::Piece& piece : batch.pieces()) {
    const TokenId id = static_cast<TokenId>(piece.text.data() - text.data());
    if (piece.is_known()) {
      ++n_known;
      EXPECT_EQ(ids_of<ShortPieceCache>(*piece.entry), std::vector<TokenId>{id});
    }
    // The others are brought into the line that look_up has pointers to.
    caches.short_pieces.find(ShortPieceCache::key_of(&text[2 + id % 2], 1, 1));
  }
  EXPECT_EQ(n_known, 1u) << "of a and b, b has moved after a's turn";
}

}  // namespace
}  // namespace limpid
