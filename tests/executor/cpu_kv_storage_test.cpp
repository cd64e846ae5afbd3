// Where keys and values lie: every block has memory of its own, and a block of all layers lies
// together, so that a short session touches few pages of a long cache.
#include "executor/cpu/cpu_kv_storage.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <vector>

#include "executor/executors.h"
#include "limpid/error.hpp"

namespace limpid {
namespace {

// The shape of SmolLM2-135M at a context of 8,192: 180 MiB.
constexpr KvLayout kLongContext{30, 3, 64, 128, DType::kF16, DType::kF16};
constexpr uint64_t kHugePage = 2U << 20;

struct Range {
  uintptr_t begin;
  uintptr_t end;
};

// Of the keys and values of all layers and heads of one block.
std::vector<Range> ranges_of(CpuKvStorage& storage, int64_t block) {
  const KvLayout& layout = storage.layout();
  const auto bytes = [&](DType dtype, int64_t head_dim) {
    return tensor_bytes(dtype, Shape{kKvBlock, head_dim});
  };
  std::vector<Range> ranges;
  for (int64_t layer = 0; layer < layout.n_layers; ++layer) {
    for (int64_t head = 0; head < layout.n_kv_heads; ++head) {
      const auto k = reinterpret_cast<uintptr_t>(storage.k_block(layer, block, head));
      const auto v = reinterpret_cast<uintptr_t>(storage.v_block(layer, block, head));
      ranges.push_back({k, k + bytes(layout.k_dtype, layout.head_dim)});
      ranges.push_back({v, v + bytes(layout.v_dtype, padded_head_dim(layout.head_dim))});
    }
  }
  return ranges;
}

TEST(CpuKvStorage, AShortSessionTouchesThePagesOfItsBlocksOnly) {
  CpuKvStorage storage(kLongContext);
  std::set<uintptr_t> pages;
  uint64_t n_bytes = 0;
  for (int64_t block = 0; block < 10; ++block) {
    for (const Range& range : ranges_of(storage, block)) {
      n_bytes += range.end - range.begin;
      for (uintptr_t page = range.begin / kHugePage; page <= (range.end - 1) / kHugePage; ++page) {
        pages.insert(page);
      }
    }
    // As many as the bytes fill, and one that they begin within.
    EXPECT_LE(pages.size(), (n_bytes + kHugePage - 1) / kHugePage + 1) << block + 1 << " blocks";
  }
}

TEST(CpuKvStorage, BlocksDoNotOverlap) {
  for (const KvLayout& layout : {KvLayout{3, 2, 40, 5, DType::kF32, DType::kF16},
                                 KvLayout{2, 3, 8, 4, DType::kF16, DType::kF32}}) {
    CpuKvStorage storage(layout);
    std::vector<Range> all;
    for (int64_t block = 0; block < layout.n_blocks; ++block) {
      const std::vector<Range> ranges = ranges_of(storage, block);
      all.insert(all.end(), ranges.begin(), ranges.end());
    }
    std::ranges::sort(all, {}, &Range::begin);
    for (size_t i = 0; i + 1 < all.size(); ++i) EXPECT_LE(all[i].end, all[i + 1].begin);
    for (const Range& range : all) EXPECT_EQ(range.begin % 64, 0U);
  }
}

TEST(CpuKvStorage, PadsValuesAndNotKeys) {
  const KvLayout layout{3, 2, 40, 5, DType::kF32, DType::kF16};
  const CpuKvStorage storage(layout);
  EXPECT_EQ(storage.block_bytes(), 3U * 2 * (64 * 40 * 4 + 64 * 48 * 2));
  EXPECT_EQ(make_cpu_executor({.n_threads = 1})->kv_bytes(layout), 5 * storage.block_bytes());
}

TEST(CpuKvStorage, RefusesOtherTypes) {
  EXPECT_THROW(CpuKvStorage({1, 1, 8, 1, DType::kBF16, DType::kF32}), UnsupportedError);
  EXPECT_THROW(CpuKvStorage({1, 1, 8, 1, DType::kF32, DType::kQ8_0}), UnsupportedError);
}

}  // namespace
}  // namespace limpid
