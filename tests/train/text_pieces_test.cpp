#include "train/text_pieces.h"

#include <gtest/gtest.h>

#include <vector>

#include "limpid/error.hpp"

namespace limpid {
namespace {

const std::vector<std::string_view> kPieces = {"a", "bb", "ccc", "dddd", "eeeee"};

TEST(TextPieces, AreAllDoneOnce) {
  for (const int n_threads : {1, 3}) {
    ThreadPool pool(n_threads);
    std::vector<int> n_calls(kPieces.size());
    std::vector<uint64_t> done;
    const auto progress = [&](uint64_t n_done, uint64_t total) {
      EXPECT_EQ(total, 15U);
      done.push_back(n_done);
      return true;
    };
    for_each_piece(kPieces, pool, "work", progress, [&](size_t i, int thread) {
      EXPECT_TRUE(thread >= 0 && thread < n_threads);
      ++n_calls[i];
    });
    EXPECT_EQ(n_calls, std::vector<int>(kPieces.size(), 1));
    ASSERT_EQ(done.size(), kPieces.size());
    EXPECT_EQ(done.back(), 15U);
  }
}

TEST(TextPieces, GiveTheErrorOfTheFirstOneThatFails) {
  for (const int n_threads : {1, 3}) {
    ThreadPool pool(n_threads);
    try {
      for_each_piece(kPieces, pool, "work", {}, [](size_t i, int) {
        if (i > 0) throw ArgumentError(std::string(kPieces[i]));
      });
      FAIL();
    } catch (const ArgumentError& error) {
      EXPECT_STREQ(error.what(), "bb");
    }
  }
}

TEST(TextPieces, AreLeftOutAfterACancellation) {
  ThreadPool pool(1);
  size_t n_calls = 0;
  const auto cancels = [](uint64_t, uint64_t) { return false; };
  try {
    for_each_piece(kPieces, pool, "work", cancels, [&](size_t, int) { ++n_calls; });
    FAIL();
  } catch (const ResourceError& error) {
    EXPECT_STREQ(error.what(), "work was cancelled");
  }
  EXPECT_EQ(n_calls, 1U);
}

}  // namespace
}  // namespace limpid
