// The loops of row_kernels.h over sixteen lanes.
#include "executor/cpu/kernels/math-inl.h"
#include "insight/row_kernels.h"

namespace limpid::LIMPID_ISA {
namespace {

// Sums in f32 lanes of up to so many numbers go to the sums in f64: longer ones would lose digits.
constexpr int64_t kSummedAtOnce = kPartNumbers;

// A last part of fewer than 16 numbers is filled up with ones so small that their exponential is 0.
LIMPID_INLINE F32x16 below(const float* x, int64_t i, int64_t n, float largest) {
  if (i + kLanes <= n) return sub(load(x + i), broadcast(largest));
  float rest[kLanes];
  for (int64_t j = 0; j < kLanes; ++j) rest[j] = i + j < n ? x[i + j] - largest : -200.0F;
  return load(rest);
}

float maximum(const float* x, int64_t n) {
  if (n < kLanes) {
    float most = x[0];
    for (int64_t i = 1; i < n; ++i) most = x[i] > most ? x[i] : most;
    return most;
  }
  F32x16 most = load(x);
  // The last sixteen numbers are read whole, so some of them twice.
  for (int64_t i = kLanes; i < n; i += kLanes)
    most = max(most, load(x + (i + kLanes <= n ? i : n - kLanes)));
  return reduce_max(most);
}

void block_maxima(const float* x, int64_t n, int64_t block, float* maxima) {
  for (int64_t begin = 0; begin < n; begin += block)
    *maxima++ = maximum(x + begin, n - begin < block ? n - begin : block);
}

// x is read for its largest number first; the exponentials then find it in the nearest cache.
ExponentialSums exponential_sums(const float* x, int64_t n) {
  const float largest = maximum(x, n);
  F32x16 sum = zero();
  F32x16 weighted = zero();
  for (int64_t i = 0; i < n; i += kLanes) {
    const F32x16 difference = below(x, i, n, largest);
    const F32x16 e = exp(difference);
    sum = add(sum, e);
    weighted = fma(e, difference, weighted);
  }
  return {largest, reduce_add(sum), reduce_add(weighted)};
}

// The sums of a part relative to another largest number M: with f = exp(largest - M),
//   sum e^(x - M) = f sum        sum e^(x - M) (x - M) = f (weighted + sum (largest - M))
ExponentialSums join_sums(const ExponentialSums* parts, int64_t n) {
  ExponentialSums all = parts[0];
  for (int64_t i = 1; i < n; ++i)
    all.largest = parts[i].largest > all.largest ? parts[i].largest : all.largest;
  all.sum = all.weighted = 0;
  for (int64_t i = 0; i < n; ++i) {
    const float difference = parts[i].largest - all.largest;
    const auto factor = static_cast<double>(reduce_max(exp(broadcast(difference))));
    all.sum += factor * parts[i].sum;
    all.weighted += factor * (parts[i].weighted + parts[i].sum * static_cast<double>(difference));
  }
  return all;
}

double squares(const float* x, int64_t n) {
  double sum = 0;
  for (int64_t begin = 0; begin < n; begin += kSummedAtOnce) {
    const int64_t end = begin + kSummedAtOnce < n ? begin + kSummedAtOnce : n;
    F32x16 part = zero();
    for (int64_t i = begin; i < end; i += kLanes) {
      const F32x16 each = load_at(x, i, end);
      part = fma(each, each, part);
    }
    sum += reduce_add(part);
  }
  return sum;
}

float largest_size(const float* x, int64_t n) {
  F32x16 most = zero();
  for (int64_t i = 0; i < n; i += kLanes) most = max(most, abs(load_at(x, i, n)));
  return reduce_max(most);
}

void raise(const float* x, int64_t n, float* largest) {
  for (int64_t i = 0; i < n; i += kLanes)
    store_at(max(load_at(largest, i, n), abs(load_at(x, i, n))), largest, i, n);
}

}  // namespace

extern const RowKernels kRowKernels;
const RowKernels kRowKernels = {exponential_sums, join_sums,    block_maxima, maximum,
                                squares,          largest_size, raise};

}  // namespace limpid::LIMPID_ISA
