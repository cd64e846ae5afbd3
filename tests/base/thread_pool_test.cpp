#include "base/thread_pool.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "limpid/error.hpp"

namespace limpid {
namespace {

class ThreadPoolTest : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Threads, ThreadPoolTest, testing::Values(1, 2, 3, 7, 16));

TEST_P(ThreadPoolTest, MakesEachCallOncePerJob) {
  ThreadPool pool(GetParam());
  ASSERT_EQ(pool.size(), GetParam());
  std::vector<int> calls(static_cast<size_t>(pool.size()));
  for (int job = 0; job < 500; ++job) pool.run([&](int thread) { ++calls[thread]; });
  for (const int n : calls) EXPECT_EQ(n, 500);
}

TEST_P(ThreadPoolTest, SignalsGoToTheThreadsOfTheApplication) {
  ThreadPool pool(GetParam());
  sigset_t one;
  sigset_t before;
  sigemptyset(&one);
  sigaddset(&one, SIGUSR1);
  ASSERT_EQ(pthread_sigmask(SIG_BLOCK, &one, &before), 0);
  ASSERT_EQ(kill(getpid(), SIGUSR1), 0);  // a thread that took it would end the process
  pool.run([](int) {});
  const timespec no_time{};
  EXPECT_EQ(sigtimedwait(&one, nullptr, &no_time), SIGUSR1) << "somebody else took it";
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

TEST_P(ThreadPoolTest, WritesOfOneJobAreSeenByTheNext) {
  ThreadPool pool(GetParam());
  const int n = pool.size();
  std::vector<int64_t> values(static_cast<size_t>(n), 1);
  std::vector<int64_t> next(values);
  for (int job = 0; job < 200; ++job) {
    pool.run([&](int t) { next[t] = (values[t] + values[(t + 1) % n]) % 1'000'003; });
    pool.run([&](int t) { values[t] = next[t]; });
  }
  for (const int64_t v : values) EXPECT_EQ(v, values[0]);
  EXPECT_NE(values[0], 1);
}

TEST_P(ThreadPoolTest, RangesCoverAllOnceInWholeGrains) {
  ThreadPool pool(GetParam());
  for (const int64_t n : {0, 1, 5, 16, 17, 100, 1001}) {
    for (const int64_t grain : {1, 4, 16}) {
      std::vector<std::atomic<int>> hits(static_cast<size_t>(n));
      pool.for_ranges(n, grain, [&](int64_t begin, int64_t end, int) {
        EXPECT_EQ(begin % grain, 0);
        if (end != n) {
          EXPECT_EQ(end % grain, 0);
        }
        for (int64_t i = begin; i < end; ++i) ++hits[i];
      });
      for (const auto& hit : hits) EXPECT_EQ(hit.load(), 1) << n << " " << grain;
    }
  }
}

TEST_P(ThreadPoolTest, ExceptionOfAnyThreadIsRethrownAndThePoolGoesOn) {
  ThreadPool pool(GetParam());
  std::atomic<int> finished{0};
  try {
    pool.run([&](int thread) {
      if (thread == pool.size() - 1) throw std::runtime_error("thread " + std::to_string(thread));
      ++finished;
    });
    FAIL() << "nothing was thrown";
  } catch (const std::runtime_error& error) {
    EXPECT_EQ(error.what(), "thread " + std::to_string(pool.size() - 1));
  }
  EXPECT_EQ(finished.load(), pool.size() - 1);
  std::atomic<int> calls{0};
  pool.run([&](int) { ++calls; });
  EXPECT_EQ(calls.load(), pool.size());
}

TEST(ThreadPool, WakesFromSleep) {
  ThreadPool pool(2);
  for (int i = 0; i < 5; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));  // far beyond the time of spinning
    int sum = 0;
    std::atomic<int> other{0};
    pool.run([&](int thread) { thread == 0 ? sum = 1 : other = 2; });
    EXPECT_EQ(sum + other.load(), 3);
  }
}

TEST(ThreadPool, ZeroMeansAllCoresAndNonsenseIsRefused) {
  EXPECT_GE(ThreadPool(0).size(), 1);
  EXPECT_THROW(ThreadPool(-1), ArgumentError);
  EXPECT_THROW(ThreadPool(1 << 20), ArgumentError);
}

}  // namespace
}  // namespace limpid
