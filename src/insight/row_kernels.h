// Loops over rows of numbers, compiled once per instruction set: a page of 512 tokens of
// SmolLM2 looks at 0.8 billion logits and 35 million attention weights.
#pragma once

#include <cstdint>
#include <limits>
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
  // The sums of x [n], 0 < n <= kPartNumbers.
  ExponentialSums (*exponential_sums)(const float* x, int64_t n);
  // The sums of n parts together, n > 0.
  ExponentialSums (*join_sums)(const ExponentialSums* parts, int64_t n);
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
inline constexpr int64_t kPartNumbers = 1024;

// The kernels of the instruction set `isa`, or of the one that choose_isa chooses. The bits are the
// same for all sets.
const RowKernels& row_kernels(const char* isa);
const RowKernels& row_kernels();

struct RankedNumber {
  float value = 0;
  int64_t index = 0;
};

// The n largest of the numbers that are offered, in any order; of equal ones those of the smaller
// index. With NaN among them it is n others, never fewer.
class Ranking {
 public:
  // Numbers below `floor` are known not to be among them.
  explicit Ranking(int64_t n, float floor = -std::numeric_limits<float>::infinity())
      : n_(static_cast<size_t>(n)), floor_(floor) {
    kept_.reserve(n_);
  }

  // Most numbers are too small, which is seen at once.
  void offer(float value, int64_t index) {
    if (!(value < floor_)) insert({value, index});
  }
  // All of x [n], whose indices begin at `first`.
  void offer_all(const float* x, int64_t n, int64_t first);
  // A smaller number would not be kept.
  float floor() const { return floor_; }
  std::span<const RankedNumber> kept() const { return kept_; }  // descending

 private:
  void insert(const RankedNumber& number);

  size_t n_;
  float floor_;
  std::vector<RankedNumber> kept_;
};

// The n largest of x, descending; of equal ones the smaller index comes first.
std::vector<RankedNumber> largest_numbers(std::span<const float> x, int64_t n);

// x . y in f64, as four sums side by side, so that an addition need not wait for the one before.
double dot_f64(std::span<const float> x, std::span<const float> y);

}  // namespace limpid
