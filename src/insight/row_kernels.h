// Loops over rows of numbers, compiled once per instruction set: a page of 512 tokens of
// SmolLM2 looks at 0.8 billion logits and 35 million attention weights.
#pragma once

#include <cstdint>
#include <span>

namespace limpid {

// With e_i = exp(x_i - largest): the sum of e_i, and the sum of e_i (x_i - largest).
struct ExponentialSums {
  double sum = 0;
  double weighted = 0;
};

struct RowKernels {
  // `largest` is that of x [n].
  ExponentialSums (*exponential_sums)(const float* x, int64_t n, float largest);
  // The largest of each kBlockNumbers numbers of x [n]; the last block may be shorter.
  void (*block_maxima)(const float* x, int64_t n, float* maxima);
};
inline constexpr int64_t kBlockNumbers = 64;
constexpr int64_t block_count(int64_t n) { return (n + kBlockNumbers - 1) / kBlockNumbers; }

// The kernels of the instruction set `isa`; "": as choose_isa. The bits are the same for all sets.
const RowKernels& row_kernels(const char* isa = "");

// Calls take(i) for numbers of x [n] that may be among the largest, in order: for all that exceed
// what least() says then. Whole blocks are passed over by their maxima, so that of a row of 49,152
// logits about 3,000 are looked at for the ten largest. x must hold no NaN.
template <typename Least, typename Take>
void for_candidates(std::span<const float> x, std::span<const float> maxima, Least least,
                    Take take) {
  const auto n = static_cast<int64_t>(x.size());
  for (int64_t block = 0; block < block_count(n); ++block) {
    if (!(maxima[static_cast<size_t>(block)] > least())) continue;
    const int64_t begin = block * kBlockNumbers;
    const int64_t end = begin + kBlockNumbers < n ? begin + kBlockNumbers : n;
    for (int64_t i = begin; i < end; ++i)
      if (x[static_cast<size_t>(i)] > least()) take(i);
  }
}

// x . y in f64, as four sums side by side, so that an addition need not wait for the one before.
double dot_f64(std::span<const float> x, std::span<const float> y);

}  // namespace limpid
