// Loops over rows of numbers, compiled once per instruction set: a page of 512 tokens of
// SmolLM2 looks at 0.8 billion logits and 35 million attention weights.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace limpid {

// With e_i = exp(x_i - largest): the sum of e_i, and the sum of e_i (x_i - largest).
struct ExponentialSums {
  float largest = 0;
  double sum = 0;
  double weighted = 0;
};

struct RowKernels {
  // The sums of x [n], and block_maxima of kBlockNumbers on the way: memory is read once.
  ExponentialSums (*exponential_sums)(const float* x, int64_t n, float* maxima);
  // The largest of each `block` numbers of x [n]; the last block may be shorter.
  void (*block_maxima)(const float* x, int64_t n, int64_t block, float* maxima);
  // The largest of x [n], n > 0.
  float (*maximum)(const float* x, int64_t n);
  // The sum of x_i^2.
  double (*squares)(const float* x, int64_t n);
  // The largest |x_i|.
  float (*largest_size)(const float* x, int64_t n);
  // largest[i] = max(largest[i], |x_i|)
  void (*raise)(const float* x, int64_t n, float* largest);
};
inline constexpr int64_t kBlockNumbers = 64;
static constexpr int64_t block_count(int64_t n) { return (n + kBlockNumbers - 1) / kBlockNumbers; }

// The kernels of the instruction set `isa`, or of the one that choose_isa chooses. The bits are the
// same for all sets.
const RowKernels& row_kernels(const char* isa);
const RowKernels& row_kernels();

struct RankedNumber {
  float value = 0;
  int64_t index = 0;
};

// The n largest of x, descending; of equal ones the smaller index comes first. x must hold no NaN.
std::vector<RankedNumber> largest_numbers(std::span<const float> x, int64_t n);
// The same where the maxima of the blocks of kBlockNumbers are known.
std::vector<RankedNumber> largest_numbers(std::span<const float> x, std::span<const float> maxima,
                                          int64_t n);

// x . y in f64, as four sums side by side, so that an addition need not wait for the one before.
double dot_f64(std::span<const float> x, std::span<const float> y);

}  // namespace limpid
