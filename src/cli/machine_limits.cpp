// The two limits that a kernel can be held against: how fast memory is read, and how many fused
// multiply-adds the registers take.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <thread>
#include <vector>

#include "base/aligned_buffer.h"
#include "cli/machine.h"

#if defined(__x86_64__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

namespace limpid::cli {
namespace {

constexpr uint64_t kReadBytes = uint64_t{512} << 20;  // beyond any cache of today
constexpr int kPasses = 3;
constexpr int kChains = 12;  // independent accumulators: more than latency times units
constexpr int64_t kFmaRounds = 4'000'000;

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// Runs body(thread) on n threads that start together; gives the seconds until the last is done.
template <typename Body>
double timed_together(int n_threads, Body body) {
  std::atomic<int> n_ready{0};
  std::atomic<bool> go{false};
  std::vector<std::thread> threads;
  threads.reserve(static_cast<size_t>(n_threads));
  for (int t = 0; t < n_threads; ++t) {
    threads.emplace_back([&, t] {
      n_ready.fetch_add(1);
      while (!go.load(std::memory_order_acquire)) std::this_thread::yield();
      body(t);
    });
  }
  while (n_ready.load() < n_threads) std::this_thread::yield();
  const auto start = Clock::now();
  go.store(true, std::memory_order_release);
  for (std::thread& thread : threads) thread.join();
  return seconds_since(start);
}

// Four chains of plain 64-bit adds: the compiler vectorises them, and memory is what they wait for.
uint64_t sum_words(const uint64_t* words, size_t n) {
  uint64_t sums[4] = {};
  for (size_t i = 0; i + 4 <= n; i += 4) {
    for (size_t j = 0; j < 4; ++j) sums[j] += words[i + j];
  }
  return sums[0] + sums[1] + sums[2] + sums[3];
}

double measure_read(int n_threads) {
  AlignedBuffer buffer(kReadBytes);
  std::memset(buffer.data(), 1, buffer.size());  // every page is really there
  const auto words = buffer.as<uint64_t>();
  std::atomic<uint64_t> kept{0};
  double best = 0;
  for (int pass = 0; pass < kPasses; ++pass) {
    const double seconds = timed_together(n_threads, [&](int t) {
      const size_t begin = words.size() * static_cast<size_t>(t) / static_cast<size_t>(n_threads);
      const size_t end = words.size() * static_cast<size_t>(t + 1) / static_cast<size_t>(n_threads);
      kept.fetch_add(sum_words(words.data() + begin, end - begin));
    });
    best = std::max(best, static_cast<double>(kReadBytes) / seconds);
  }
  return kept.load() == 0 ? 0 : best;
}

// One function per register width: `rounds` times kChains multiply-adds; gives back their sum so
// that none can be left out.
#if defined(__x86_64__)
__attribute__((target("avx512f"))) float fma_wide(int64_t rounds) {
  __m512 sums[kChains];
  for (auto& sum : sums) sum = _mm512_set1_ps(1.0F);
  const __m512 factor = _mm512_set1_ps(0.999F);
  const __m512 term = _mm512_set1_ps(0.001F);
  for (int64_t i = 0; i < rounds; ++i) {
#pragma GCC unroll 12
    for (auto& sum : sums) sum = _mm512_fmadd_ps(sum, factor, term);
  }
  float total = 0;
  for (const auto& sum : sums) total += _mm512_cvtss_f32(sum);
  return total;
}

__attribute__((target("avx2,fma"))) float fma_narrow(int64_t rounds) {
  __m256 sums[kChains];
  for (auto& sum : sums) sum = _mm256_set1_ps(1.0F);
  const __m256 factor = _mm256_set1_ps(0.999F);
  const __m256 term = _mm256_set1_ps(0.001F);
  for (int64_t i = 0; i < rounds; ++i) {
#pragma GCC unroll 12
    for (auto& sum : sums) sum = _mm256_fmadd_ps(sum, factor, term);
  }
  float total = 0;
  for (const auto& sum : sums) total += _mm256_cvtss_f32(sum);
  return total;
}

struct FmaLoop {
  float (*run)(int64_t);
  int lanes;
};

FmaLoop best_fma_loop() {
  if (__builtin_cpu_supports("avx512f")) return {fma_wide, 16};
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return {fma_narrow, 8};
  return {nullptr, 0};
}
#elif defined(__aarch64__)
float fma_neon(int64_t rounds) {
  float32x4_t sums[kChains];
  for (auto& sum : sums) sum = vdupq_n_f32(1.0F);
  const float32x4_t factor = vdupq_n_f32(0.999F);
  const float32x4_t term = vdupq_n_f32(0.001F);
  for (int64_t i = 0; i < rounds; ++i) {
#pragma GCC unroll 12
    for (auto& sum : sums) sum = vfmaq_f32(term, sum, factor);
  }
  float total = 0;
  for (const auto& sum : sums) total += vgetq_lane_f32(sum, 0);
  return total;
}

struct FmaLoop {
  float (*run)(int64_t);
  int lanes;
};

FmaLoop best_fma_loop() { return {fma_neon, 4}; }
#else
struct FmaLoop {
  float (*run)(int64_t);
  int lanes;
};

FmaLoop best_fma_loop() { return {nullptr, 0}; }
#endif

double measure_fma(int n_threads) {
  const FmaLoop loop = best_fma_loop();
  if (loop.run == nullptr) return 0;
  std::atomic<bool> sane{true};
  double best = 0;
  for (int pass = 0; pass < kPasses; ++pass) {
    const double seconds = timed_together(n_threads, [&](int /*thread*/) {
      if (!(loop.run(kFmaRounds) > 0)) sane = false;
    });
    const double n_flops = 2.0 * loop.lanes * kChains * static_cast<double>(kFmaRounds) * n_threads;
    best = std::max(best, n_flops / seconds);
  }
  return sane ? best : 0;
}

}  // namespace

MachineLimits measure_limits(int n_threads) {
  return {n_threads, measure_read(n_threads), measure_fma(n_threads)};
}

}  // namespace limpid::cli
