// The limits that kernels are compared with: how fast memory can be read, and how many products of
// f32, bf16 and int8 a CPU can compute on registers.
//
// A limit is the best of several ways of doing the same, because the best way differs from CPU to
// CPU. One stream of lines per thread keeps some hardware prefetchers busy, others want several;
// software prefetching helps the first CPU and slows the second. So a kernel that reaches 100 %
// cannot become faster. A kernel above 100 % reads in a way that is missing here.
//
// A peak is measured in passes of at least 10 ms: the number of rounds doubles until the fastest of
// several passes takes that long, because threads need some microseconds to start together.
// Whatever else the machine does can only make a pass slower. So the fastest pass is nearest to the
// limit, and a pass that was interrupted does not count as a long one.
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <limits>

#include "base/aligned_buffer.h"
#include "base/system_limits.h"
#include "base/thread_pool.h"
#include "cli/machine.h"
#include "executor/cpu/isa.h"

namespace limpid::cli {
namespace {

// Beyond any cache of today; or a quarter of the free memory, if that is less, because a control
// group would end a program that takes more than all.
constexpr uint64_t kReadBytes = uint64_t{512} << 20;
constexpr int kReadPasses = 4;
constexpr int kPeakPasses = 6;
constexpr double kPeakSeconds = 0.01;  // of one pass, at least

// Operations a second of `peak`, which does a number of products per round and returns their sum.
double measure_peak(int64_t (*peak)(int64_t rounds), ThreadPool& pool) {
  double best = 0;
  double least_seconds = 0;
  for (int64_t rounds = 1000; least_seconds < kPeakSeconds; rounds *= 2) {
    least_seconds = std::numeric_limits<double>::infinity();
    for (int pass = 0; pass < kPeakPasses; ++pass) {
      std::atomic<int64_t> n_products{0};
      const Stopwatch watch;
      pool.run([&](int /*thread*/) { n_products += peak(rounds); });
      const double seconds = watch.seconds();
      best = std::max(best, 2 * static_cast<double>(n_products) / seconds);
      least_seconds = std::min(least_seconds, seconds);
    }
  }
  return best;
}

}  // namespace

// Bytes a second, of the best way to read: one, two or four streams per thread, with software
// prefetching and without.
double measure_read_limit(int n_threads) {
  ThreadPool pool(std::max(n_threads, 0));
  const Kernels& kernels = *choose_isa("").kernels;
  const uint64_t available = available_memory();
  const uint64_t n_bytes = available > 0 ? std::min(kReadBytes, available / 4) : kReadBytes;
  AlignedBuffer buffer(n_bytes);                 // asks for huge pages
  std::memset(buffer.data(), 1, buffer.size());  // every page is really there
  const auto share = static_cast<int64_t>(n_bytes) / pool.size() / 64 * 64;
  double best = 0;
  for (int pass = 0; pass < kReadPasses; ++pass) {
    for (const int n_streams : {1, 2, 4}) {
      for (const int64_t ahead : {0, 4096}) {
        const Stopwatch watch;
        pool.run([&](int t) {
          kernels.read_streams(buffer.data() + t * share, share, n_streams, ahead);
        });
        best = std::max(best, static_cast<double>(share * pool.size()) / watch.seconds());
      }
    }
  }
  return best;
}

double measure_f32_limit(int n_threads) {
  ThreadPool pool(std::max(n_threads, 0));
  return measure_peak(choose_isa("").kernels->fma_peak, pool);
}

// Weights of four bits are unpacked before the product, weights of eight bits are not. The limit
// for int8 is the faster of the two kernels.
MachineLimits measure_limits(int n_threads, std::string_view products) {
  ThreadPool pool(std::max(n_threads, 0));
  const Kernels& kernels = *choose_isa("").kernels;
  const double f32 = measure_peak(kernels.fma_peak, pool);
  return {
      .n_threads = pool.size(),
      .read_bytes_per_second = measure_read_limit(pool.size()),
      .flops_per_second = {.f32 = f32,
                           .bf16 = products == "bf16" ? measure_peak(kernels.bf16_peak, pool) : f32,
                           .int8 = std::max(measure_peak(kernels.dot4_peak_nibble, pool),
                                            measure_peak(kernels.dot4_peak_byte, pool))}};
}

std::string rates_text(const MachineLimits& limits) {
  const auto& [f32, bf16, int8] = limits.flops_per_second;
  return fmt::format("{:.1f} GB/s read, {:.0f} GFLOP/s f32{}, {:.0f} GOP/s int8",
                     limits.read_bytes_per_second / 1e9, f32 / 1e9,
                     limits.has_bf16() ? fmt::format(", {:.0f} GFLOP/s bf16", bf16 / 1e9) : "",
                     int8 / 1e9);
}

std::string limits_text(const MachineLimits& limits) {
  if (limits.read_bytes_per_second == 0) return "limits not measured";
  return "limits measured: " + rates_text(limits);
}

}  // namespace limpid::cli
