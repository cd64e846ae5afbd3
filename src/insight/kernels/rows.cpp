// The loops of row_kernels.h over sixteen lanes.
#include "executor/cpu/kernels/math-inl.h"
#include "insight/row_kernels.h"

namespace limpid::LIMPID_ISA {
namespace {

// Sums in f32 lanes of up to so many numbers go to the sums in f64: longer ones would lose digits.
constexpr int64_t kSummedAtOnce = 1024;

// A last part of fewer than 16 numbers is filled up with ones so small that their exponential is 0.
LIMPID_INLINE F32x16 below(const float* x, int64_t i, int64_t n, float largest) {
  if (i + kLanes <= n) return sub(load(x + i), broadcast(largest));
  float rest[kLanes];
  for (int64_t j = 0; j < kLanes; ++j) rest[j] = i + j < n ? x[i + j] - largest : -200.0F;
  return load(rest);
}

ExponentialSums exponential_sums(const float* x, int64_t n, float largest) {
  ExponentialSums sums;
  for (int64_t begin = 0; begin < n; begin += kSummedAtOnce) {
    const int64_t end = begin + kSummedAtOnce < n ? begin + kSummedAtOnce : n;
    F32x16 sum = zero();
    F32x16 weighted = zero();
    for (int64_t i = begin; i < end; i += kLanes) {
      const F32x16 difference = below(x, i, end, largest);
      const F32x16 e = exp(difference);
      sum = add(sum, e);
      weighted = fma(e, difference, weighted);
    }
    sums.sum += reduce_add(sum);
    sums.weighted += reduce_add(weighted);
  }
  return sums;
}

void block_maxima(const float* x, int64_t n, float* maxima) {
  for (int64_t begin = 0; begin < n; begin += kBlockNumbers) {
    const int64_t end = begin + kBlockNumbers < n ? begin + kBlockNumbers : n;
    if (end - begin < kLanes) {
      float most = x[begin];
      for (int64_t i = begin + 1; i < end; ++i) most = x[i] > most ? x[i] : most;
      *maxima++ = most;
      continue;
    }
    F32x16 most = load(x + begin);
    // The last sixteen numbers of the block are read whole, so some of them twice.
    for (int64_t i = begin + kLanes; i < end; i += kLanes)
      most = max(most, load(x + (i + kLanes <= end ? i : end - kLanes)));
    *maxima++ = reduce_max(most);
  }
}

}  // namespace

extern const RowKernels kRowKernels;
const RowKernels kRowKernels = {exponential_sums, block_maxima};

}  // namespace limpid::LIMPID_ISA
