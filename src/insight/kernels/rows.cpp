// The loops of row_kernels.h over sixteen lanes.
#include <numbers>

#include "executor/cpu/kernels/math-inl.h"
#include "insight/row_kernels.h"

namespace limpid::LIMPID_ISA {
namespace {

// Sums in f32 lanes of up to so many numbers go to the sums in f64: longer ones would lose digits.
constexpr int64_t kSummedAtOnce = kPartNumbers;

// Lanes [i, i + 16) of x [n], filled up with -infinity.
LIMPID_INLINE F32x16 load_or_least(const float* x, int64_t i, int64_t n) {
  if (i + kLanes <= n) return load(x + i);
  float rest[kLanes];
  for (int64_t j = 0; j < kLanes; ++j) rest[j] = i + j < n ? x[i + j] : -__builtin_inff();
  return load(rest);
}

// Four maxima side by side, so that a comparison need not wait for the one before.
float maximum(const float* x, int64_t n) {
  constexpr int kTogether = 4;
  F32x16 most[kTogether];
  for (F32x16& each : most) each = broadcast(-__builtin_inff());
  int64_t i = 0;
  for (; i + kTogether * kLanes <= n; i += kTogether * kLanes) {
    for (int j = 0; j < kTogether; ++j) most[j] = max(most[j], load(x + i + j * kLanes));
  }
  for (; i < n; i += kLanes) most[0] = max(most[0], load_or_least(x, i, n));
  return reduce_max(max(max(most[0], most[1]), max(most[2], most[3])));
}

// Lane l has the largest of x[l], x[l + 16], x[l + 32], … The kth largest of the lanes is reached
// by k of them, and so by k numbers of x. It is close to the kth largest of x when large numbers
// lie scattered: the 5th of 16 lanes is reached by 6 of 512 numbers. NaN counts as least.
float reached_by(const float* x, int64_t n, int64_t k) {
  const F32x16 least = broadcast(-__builtin_inff());
  if (k > kLanes) return -__builtin_inff();
  F32x16 even = least;
  F32x16 odd = least;
  int64_t i = 0;
  for (; i + 2 * kLanes <= n; i += 2 * kLanes) {
    even = max(load(x + i), even);
    odd = max(load(x + i + kLanes), odd);
  }
  for (; i < n; i += kLanes) even = max(load_or_least(x, i, n), even);
  F32x16 lanes = max(even, odd);
  float bound = reduce_max(lanes);
  for (int64_t nth = 1; nth < k; ++nth) {  // equal ones go together, which makes the bound lower
    lanes = select_less(lanes, broadcast(bound), lanes, least);
    bound = reduce_max(lanes);
  }
  return bound;
}

// Few numbers reach the bound, so 64 are compared before one branch passes them over.
int64_t not_below(const float* x, int64_t n, float bound, int32_t* indices) {
  constexpr int kTogether = 4;
  const F32x16 least = broadcast(bound);
  int64_t n_found = 0;
  const auto add_indices = [&](int64_t i, uint64_t bits) {
    for (; bits != 0; bits &= bits - 1)
      indices[n_found++] = static_cast<int32_t>(i) + __builtin_ctzll(bits);
  };
  int64_t i = 0;
  for (; i + kTogether * kLanes <= n; i += kTogether * kLanes) {
    uint64_t bits = 0;
    for (int j = 0; j < kTogether; ++j)
      bits |= uint64_t{not_less(load(x + i + j * kLanes), least)} << (j * kLanes);
    add_indices(i, bits);
  }
  for (; i < n; i += kLanes) {
    const uint32_t bits = not_less(load_or_least(x, i, n), least);
    add_indices(i, i + kLanes > n ? bits & ((1U << (n - i)) - 1) : bits);
  }
  return n_found;
}

// 2^y for -125 <= y <= 0, exactly 1 for 0.
//
// A page of 512 tokens takes the exponentials of 0.8 billion logits, and exp of math-inl.h is more
// exact than their sums need. y = n + f with n = floor(y), and 2^f is the polynomial of degree 4
// with 2^0 = 1 whose largest relative error over 0 <= f <= 1 is least: 2.9e-6 of either sign,
// -1.5e-8 on average. AVX-512 has instructions for n and for the product with 2^floor(y); elsewhere
// n comes from rounding, and is added to the exponent, since the result is never subnormal.
LIMPID_INLINE F32x16 power_of_two(F32x16 y) {
#if defined(__AVX512F__)
  const F32x16 n = _mm512_roundscale_ps(y, _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC);
#else
  const F32x16 nearest = to_float(to_int(y));
  const F32x16 n = sub(nearest, select_less(y, nearest, broadcast(1.0F), zero()));
#endif
  const F32x16 f = sub(y, n);
  F32x16 p = broadcast(0x1.b7f754p-7F);
  p = fma(p, f, broadcast(0x1.abf85ap-5F));
  p = fma(p, f, broadcast(0x1.ee2452p-3F));
  p = fma(p, f, broadcast(0x1.62d6c6p-1F));
  p = fma(p, f, broadcast(1.0F));
#if defined(__AVX512F__)
  return _mm512_scalef_ps(p, y);
#else
  return float_of_bits(add(bits_of_float(p), shift_left<23>(to_int(n))));
#endif
}

// Of up to 16 numbers: the sum of 2^y, and the sum of 2^y y, for y the differences in bits.
struct SumsInBits {
  F32x16 sum = zero();
  F32x16 weighted = zero();

  LIMPID_INLINE void add_below(F32x16 differences) {
    const F32x16 bits = mul(differences, broadcast(std::numbers::log2e_v<float>));
    const F32x16 y = max(broadcast(-125.0F), bits);  // NaN stays: it is the second operand
    const F32x16 e = power_of_two(y);
    sum = add(sum, e);
    weighted = fma(e, y, weighted);
  }
};

// x is read for its largest number first; the exponentials then find it in the nearest cache. Two
// chains of additions, so that one need not wait for the other.
ExponentialSums exponential_sums(const float* x, int64_t n) {
  const float largest = maximum(x, n);
  const F32x16 top = broadcast(largest);
  SumsInBits even;
  SumsInBits odd;
  int64_t i = 0;
  for (; i + 2 * kLanes <= n; i += 2 * kLanes) {
    even.add_below(sub(load(x + i), top));
    odd.add_below(sub(load(x + i + kLanes), top));
  }
  for (; i < n; i += kLanes) even.add_below(sub(load_or_least(x, i, n), top));
  return {largest, reduce_add(add(even.sum, odd.sum)),
          reduce_add(add(even.weighted, odd.weighted)) * std::numbers::ln2};
}

// The sums of a part relative to another largest number M: with f = exp(largest - M),
//   sum e^(x - M) = f sum        sum e^(x - M) (x - M) = f (weighted + sum (largest - M))
ExponentialSums join_sums(const ExponentialSums* parts, int64_t n, int64_t stride) {
  ExponentialSums all = parts[0];
  for (int64_t i = 1; i < n; ++i) {
    const float largest = parts[i * stride].largest;
    all.largest = largest > all.largest ? largest : all.largest;
  }
  all.sum = all.weighted = 0;
  for (int64_t begin = 0; begin < n; begin += kLanes) {
    const int64_t end = begin + kLanes < n ? begin + kLanes : n;
    float differences[kLanes] = {};
    float factors[kLanes];
    for (int64_t i = begin; i < end; ++i)
      differences[i - begin] = parts[i * stride].largest - all.largest;
    store(exp(load(differences)), factors);
    for (int64_t i = begin; i < end; ++i) {
      const auto& [largest, sum, weighted] = parts[i * stride];
      const auto factor = static_cast<double>(factors[i - begin]);
      all.sum += factor * sum;
      all.weighted += factor * (weighted + sum * static_cast<double>(differences[i - begin]));
    }
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

void raise(const float* x, int64_t n, float scale, float* largest) {
  for (int64_t i = 0; i < n; i += kLanes) {
    const auto size = mul(broadcast(scale), abs(load_at(x, i, n)));
    store_at(max(load_at(largest, i, n), size), largest, i, n);
  }
}

}  // namespace

extern const RowKernels kRowKernels;
const RowKernels kRowKernels = {exponential_sums, join_sums,    reached_by, not_below,
                                squares,          largest_size, raise};

}  // namespace limpid::LIMPID_ISA
