// Quantised linear layers against the limits of this machine, measured in turns with them: decode
// beside the speed of reading memory, prefill beside the speed of the integer product. Times are
// the largest CPU time of any thread, so that a busy machine disturbs them little; the best round
// counts.
//
//   linear_quantized_bench [isa] [threads] [rounds] [type]
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "base/aligned_buffer.h"
#include "base/divide_up.h"
#include "base/thread_pool.h"
#include "executor/cpu/isa.h"
#include "executor/cpu/packed_weight.h"
#include "tensor/codec.h"
#include "thread_seconds.h"

namespace limpid {
namespace {

constexpr uint64_t kMemoryBytes = 256U << 20;  // far more than any cache

// Runs body(thread) on all threads; the largest CPU time of any.
template <class Body>
double run_timed(ThreadPool& pool, Body&& body) {
  std::vector<double> times(static_cast<size_t>(pool.size()));
  pool.run([&](int thread) {
    const double start = thread_seconds();
    body(thread);
    times[static_cast<size_t>(thread)] = thread_seconds() - start;
  });
  return std::ranges::max(times);
}

// Bytes a second that all threads together read from memory.
double memory_speed(ThreadPool& pool, const AlignedBuffer& buffer) {
  using Words = uint64_t __attribute__((vector_size(16)));
  const auto words = buffer.as<Words>();
  const int64_t share = static_cast<int64_t>(words.size()) / pool.size();
  const double time = run_timed(pool, [&](int thread) {
    Words a{}, b{}, c{}, d{};  // by hand: a loop over an array of sums would stay a loop
    for (int64_t i = thread * share; i + 4 <= (thread + 1) * share; i += 4) {
      const Words* p = words.data() + i;
      __builtin_prefetch(p + 256);  // 4 KiB ahead
      a += p[0];
      b += p[1];
      c += p[2];
      d += p[3];
    }
    a += b + c + d;
    volatile uint64_t sink = a[0] + a[1];
    static_cast<void>(sink);
  });
  return static_cast<double>(buffer.size()) / time;
}

// Multiplications a second of the product alone, all threads together.
double product_speed(ThreadPool& pool, int64_t (*peak)(int64_t)) {
  constexpr int64_t kRounds = 200'000;
  std::vector<int64_t> products(static_cast<size_t>(pool.size()));
  const double time = run_timed(pool, [&](int thread) { products[thread] = peak(kRounds); });
  double sum = 0;
  for (const int64_t n : products) sum += static_cast<double>(n);
  return sum / time;
}

Tensor small_weights(DType dtype, int64_t rows, int64_t cols) {
  Tensor tensor(dtype, Shape{rows, cols});
  uint32_t state = 1;
  const uint64_t n_bytes = tensor.view().n_bytes();
  for (uint64_t i = 0; i < n_bytes; ++i) {
    state = state * 1664525U + 1013904223U;
    tensor.data()[i] = static_cast<std::byte>((state >> 24) & 0x1f);  // halves stay small numbers
  }
  return tensor;
}

struct Bench {
  const Kernels& kernels;
  ThreadPool& pool;
  const AlignedBuffer& memory;
  int rounds;

  double linear(const std::vector<PackedWeight>& weights, const AlignedBuffer& x, int64_t n_tokens,
                std::vector<float>& y) const {
    return run_timed(pool, [&](int thread) {
      for (const PackedWeight& weight : weights) {
        LinearTask task = weight.task();
        task.x = x.data();
        task.n_tokens = n_tokens;
        task.y = y.data();
        task.y_stride = weight.rows();
        task.group_begin = weight.n_groups() * thread / pool.size();
        task.group_end = weight.n_groups() * (thread + 1) / pool.size();
        kernels.linear_quantized(task);
      }
    });
  }

  AlignedBuffer activations(int64_t n_tokens, int64_t cols) const {
    std::vector<float> values(static_cast<size_t>(n_tokens * cols));
    for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i % 17) - 8.0F;
    AlignedBuffer out(static_cast<uint64_t>(quantized_activations_bytes(n_tokens, cols)));
    kernels.quantize_activations(values.data(), n_tokens, cols, 0, n_tokens, out.data());
    return out;
  }

  void run(DType dtype, int64_t rows, int64_t cols, int64_t n_tokens) const {
    const Tensor source = small_weights(dtype, rows, cols);
    const PackedWeight first(source, RowOrder::kHalfSplit, 0, pool);
    // Enough copies that no cache holds them, as in a model of many layers.
    const uint64_t n_copies = n_tokens > 32 ? 1 : divide_up(kMemoryBytes, first.n_bytes());
    std::vector<PackedWeight> weights;
    for (uint64_t i = 0; i < n_copies; ++i) {
      weights.emplace_back(source, RowOrder::kHalfSplit, 0, pool);
    }
    const AlignedBuffer x = activations(n_tokens, cols);
    std::vector<float> y(static_cast<size_t>(n_tokens * rows));
    const PackedLayout layout = packed_layout(first.dtype());
    const bool nibbles = layout.low_bits + layout.high_bits <= 4 && !layout.has_levels;
    double best_time = 1e9;
    double best_memory = 0;
    double best_product = 0;
    for (int round = 0; round < rounds; ++round) {
      if (n_tokens <= 32) best_memory = std::max(best_memory, memory_speed(pool, memory));
      best_product = std::max(best_product, product_speed(pool, nibbles ? kernels.dot4_peak_nibble
                                                                        : kernels.dot4_peak_byte));
      const double time = linear(weights, x, n_tokens, y);
      best_time = std::min(best_time, time / static_cast<double>(n_copies));
    }
    const double bytes = static_cast<double>(first.n_bytes()) / best_time;
    const double products = static_cast<double>(rows * cols * n_tokens) / best_time;
    fmt::print(
        "| {:6} | {:6} x {:5} | {:4} | {:8.1f} | {:6.1f} | {:5.1f} % | {:7.1f} | {:5.1f} % |\n",
        dtype_info(dtype).name, rows, cols, n_tokens, best_time * 1e6, bytes * 1e-9,
        best_memory > 0 ? 100 * bytes / best_memory : 0.0, 2e-9 * products,
        100 * products / best_product);
  }
};

int run(const std::string& isa, int n_threads, int rounds, const std::string& only) {
  const Kernels* kernels = choose_isa(isa).kernels;
  ThreadPool pool(n_threads);
  AlignedBuffer memory(kMemoryBytes);
  for (uint64_t& word : memory.as<uint64_t>()) word = 1;
  const Bench bench = {*kernels, pool, memory, rounds};
  fmt::print(
      "{} on {} threads; limits: {:.1f} GB/s read, {:.0f} (nibbles) and {:.0f} (bytes) GOP/s\n\n",
      isa, pool.size(), memory_speed(pool, memory) * 1e-9,
      2e-9 * product_speed(pool, kernels->dot4_peak_nibble),
      2e-9 * product_speed(pool, kernels->dot4_peak_byte));
  fmt::print("| type   | rows x columns | tokens | us | GB/s | of memory | GOP/s | of product |\n");
  fmt::print("|---|---|---|---|---|---|---|---|\n");
  for (const DType dtype : {DType::kQ8_0, DType::kQ4_0, DType::kQ4_1, DType::kQ4_K, DType::kQ6_K}) {
    if (!only.empty() && dtype_info(dtype).name != only) continue;
    bench.run(dtype, 2048, 2048, 1);
    bench.run(dtype, 8192, 2048, 1);
    bench.run(dtype, 2048, 8192, 1);
    bench.run(dtype, 8192, 2048, 4);
    bench.run(dtype, 8192, 2048, 16);
    bench.run(dtype, 8192, 2048, 512);
    bench.run(dtype, 2048, 8192, 512);
  }
  return 0;
}

}  // namespace
}  // namespace limpid

int main(int argc, char** argv) {
  return limpid::run(argc > 1 ? argv[1] : "scalar", argc > 2 ? std::atoi(argv[2]) : 0,
                     argc > 3 ? std::atoi(argv[3]) : 5, argc > 4 ? argv[4] : "");
}
