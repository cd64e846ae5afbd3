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
  // The sums of n parts together, which lie `stride` apart; n > 0.
  ExponentialSums (*join_sums)(const ExponentialSums* parts, int64_t n, int64_t stride);
  // A bound that at least k of x [n] are not less than, -infinity for k > 16.
  float (*reached_by)(const float* x, int64_t n, int64_t k);
  // Writes the indices of those of x [n] that are not less than `bound`, and returns their number.
  int64_t (*not_below)(const float* x, int64_t n, float bound, int32_t* indices);
  // The sum of x_i^2.
  double (*squares)(const float* x, int64_t n);
  // The largest |x_i|.
  float (*largest_size)(const float* x, int64_t n);
  // largest[i] = max(largest[i], scale |x_i|)
  void (*raise)(const float* x, int64_t n, float scale, float* largest);
};
inline constexpr int64_t kPartNumbers = 512;

// The kernels of the instruction set `isa`, or of the one that choose_isa chooses. The bits are the
// same for all sets.
const RowKernels& row_kernels(const char* isa);
const RowKernels& row_kernels();

struct RankedNumber {
  float value = 0;
  int64_t index = 0;
};

// The n largest of the numbers that are offered, in any order; of equal ones those of the smaller
// index. If some of the numbers are NaN, the n kept may be others, but never fewer.
class Ranking {
 public:
  explicit Ranking(int64_t n) { begin(n); }

  // Forgets all numbers.
  void begin(int64_t n) {
    n_ = static_cast<size_t>(n);
    floor_ = -std::numeric_limits<float>::infinity();
    kept_.clear();
    kept_.reserve(n_);
  }

  // Most numbers are too small, and one comparison shows it.
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

  size_t n_ = 0;
  float floor_ = 0;
  std::vector<RankedNumber> kept_;
};

inline size_t size_of(int64_t n) { return static_cast<size_t>(n); }

// Row i of values [n_rows, n_cols].
inline std::span<const float> row_of(std::span<const float> values, int64_t i, int64_t n_cols) {
  return values.subspan(static_cast<size_t>(i * n_cols), static_cast<size_t>(n_cols));
}

// x . y in f64, as four sums side by side, so that an addition need not wait for the one before.
double dot_f64(std::span<const float> x, std::span<const float> y);

}  // namespace limpid
