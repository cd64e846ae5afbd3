// Sixteen virtual float lanes, the same on every instruction set: one AVX-512 register, two of
// AVX2, four of NEON, sixteen floats where there is nothing. Kernels are written once over these
// types and give the same bits everywhere: fused multiply-add is explicit, sums end in one fixed
// tree, and nothing approximate (reciprocal, rsqrt) is used.
//
// Included only by kernels/*.cpp and other *-inl.h; everything is always_inline, in the namespace
// of the instruction set, so that no symbol is shared between objects of different sets.
#pragma once

#include "executor/cpu/kernels/lanes_sixteen-inl.h"

namespace limpid::LIMPID_ISA {

using OpsF = Ops<F32x16>;
using OpsI = Ops<I32x16>;

LIMPID_INLINE F32x16 broadcast(float x) { return OpsF::set(x); }
LIMPID_INLINE F32x16 zero() { return OpsF::set(0.0F); }
LIMPID_INLINE I32x16 broadcast_i32(int32_t x) { return OpsI::set(x); }

// Pointers need no alignment beyond that of their type.
LIMPID_INLINE F32x16 load(const float* p) { return OpsF::load(p); }
LIMPID_INLINE I32x16 load(const int32_t* p) { return OpsI::load(p); }
LIMPID_INLINE F32x16 load_f16(const uint16_t* p) { return OpsF::load_f16(p); }
LIMPID_INLINE F32x16 load_bf16(const uint16_t* p) { return OpsF::load_bf16(p); }
LIMPID_INLINE void store(F32x16 v, float* p) { OpsF::store(v, p); }
LIMPID_INLINE void store(I32x16 v, int32_t* p) { OpsI::store(v, p); }
// Rounds to nearest even.
LIMPID_INLINE void store_f16(F32x16 v, uint16_t* p) { OpsF::store_f16(v, p); }
LIMPID_INLINE void store_i8(I32x16 v, int8_t* p) { OpsI::store_i8(v, p); }  // saturates

// The first n < 16 elements; lanes from n on are zero. Touches no memory beyond them.
LIMPID_INLINE F32x16 load_partial(const float* p, int64_t n) { return OpsF::load_partial(p, n); }
LIMPID_INLINE F32x16 load_f16_partial(const uint16_t* p, int64_t n) {
  uint16_t buffer[kLanes] = {};
  for (int64_t i = 0; i < n; ++i) buffer[i] = p[i];
  return load_f16(buffer);
}
LIMPID_INLINE F32x16 load_bf16_partial(const uint16_t* p, int64_t n) {
  uint16_t buffer[kLanes] = {};
  for (int64_t i = 0; i < n; ++i) buffer[i] = p[i];
  return load_bf16(buffer);
}
LIMPID_INLINE void store_partial(F32x16 v, float* p, int64_t n) { OpsF::store_partial(v, p, n); }
LIMPID_INLINE void store_f16_partial(F32x16 v, uint16_t* p, int64_t n) {
  uint16_t buffer[kLanes];
  store_f16(v, buffer);
  for (int64_t i = 0; i < n; ++i) p[i] = buffer[i];
}

LIMPID_INLINE F32x16 add(F32x16 a, F32x16 b) { return OpsF::add(a, b); }
LIMPID_INLINE F32x16 sub(F32x16 a, F32x16 b) { return OpsF::sub(a, b); }
LIMPID_INLINE F32x16 mul(F32x16 a, F32x16 b) { return OpsF::mul(a, b); }
LIMPID_INLINE F32x16 div(F32x16 a, F32x16 b) { return OpsF::div(a, b); }
// a * b + c, rounded once.
LIMPID_INLINE F32x16 fma(F32x16 a, F32x16 b, F32x16 c) { return OpsF::fma(a, b, c); }
// a > b ? a : b and a < b ? a : b: the second operand when either is NaN or both are zeros.
LIMPID_INLINE F32x16 max(F32x16 a, F32x16 b) { return OpsF::max(a, b); }
LIMPID_INLINE F32x16 min(F32x16 a, F32x16 b) { return OpsF::min(a, b); }
LIMPID_INLINE F32x16 sqrt(F32x16 a) { return OpsF::sqrt(a); }
LIMPID_INLINE F32x16 abs(F32x16 a) { return OpsF::abs(a); }
LIMPID_INLINE F32x16 copy_sign(F32x16 magnitude, F32x16 sign) {
  return OpsF::copy_sign(magnitude, sign);
}
LIMPID_INLINE F32x16 select_less(F32x16 a, F32x16 b, F32x16 yes, F32x16 no) {
  return OpsF::select_less(a, b, yes, no);
}

LIMPID_INLINE I32x16 add(I32x16 a, I32x16 b) { return OpsI::add(a, b); }
LIMPID_INLINE I32x16 sub(I32x16 a, I32x16 b) { return OpsI::sub(a, b); }
LIMPID_INLINE I32x16 mul(I32x16 a, I32x16 b) { return OpsI::mul(a, b); }
template <int kBits>
LIMPID_INLINE I32x16 shift_left(I32x16 a) {
  return OpsI::shift_left<kBits>(a);
}
template <int kBits>
LIMPID_INLINE I32x16 shift_right(I32x16 a) {  // arithmetic
  return OpsI::shift_right<kBits>(a);
}

LIMPID_INLINE I32x16 to_int(F32x16 a) { return OpsF::to_int(a); }  // to nearest even; |a| < 2^31
LIMPID_INLINE F32x16 to_float(I32x16 a) { return OpsI::to_float(a); }
LIMPID_INLINE I32x16 bits_of(F32x16 a) { return OpsF::bits(a); }
LIMPID_INLINE F32x16 float_of_bits(I32x16 a) { return OpsI::as_float(a); }

// The sum of the lanes in one order: (l, l+8), (l, l+4), (l, l+2), (l, l+1).
LIMPID_INLINE float reduce_add(F32x16 a) { return OpsF::reduce_add(a); }
LIMPID_INLINE int32_t reduce_add(I32x16 a) { return OpsI::reduce_add(a); }

#if defined(__AVX512F__)
// Eight sums whose trees grow side by side, but for the last addition: lanes 2j, 2j + 1 of each
// block of four hold what is left of one.
LIMPID_INLINE __m512 fold_eight(const F32x16* v) {
  __m512 eights[4];  // lanes l + (l + 8) of two sums each
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    const __m512 a = v[i].raw;
    const __m512 b = v[i + 4].raw;
    eights[i] = _mm512_add_ps(_mm512_shuffle_f32x4(a, b, 0x44), _mm512_shuffle_f32x4(a, b, 0xEE));
  }
  __m512 fours[2];  // of four sums each: i, i + 4, i + 2, i + 6
#pragma GCC unroll 2
  for (int i = 0; i < 2; ++i) {
    const __m512 a = eights[i];
    const __m512 b = eights[i + 2];
    fours[i] = _mm512_add_ps(_mm512_shuffle_f32x4(a, b, 0x88), _mm512_shuffle_f32x4(a, b, 0xDD));
  }
  return _mm512_add_ps(_mm512_shuffle_ps(fours[0], fours[1], 0x44),
                       _mm512_shuffle_ps(fours[0], fours[1], 0xEE));
}
#endif

// out[i] = reduce_add(v[i]), many at once where that is faster.
template <int kN>
LIMPID_INLINE void reduce_add_all(const F32x16* v, float* out) {
  int i = 0;
#if defined(__AVX512F__)
  // Where each sum ends up: blocks of four are sums 0, 4, 2, 6 of eight, in them 0, 1 of the first
  // eight, then of the second.
  const __m512i order = _mm512_setr_epi32(0, 1, 8, 9, 4, 5, 12, 13, 2, 3, 10, 11, 6, 7, 14, 15);
#pragma GCC unroll 4
  for (; i + 8 <= kN; i += 16) {
    const __m512 a = fold_eight(v + i);
    const bool whole = i + 16 <= kN;
    const __m512 b = whole ? fold_eight(v + i + 8) : a;
    const __m512 sums = _mm512_add_ps(_mm512_shuffle_ps(a, b, 0x88), _mm512_shuffle_ps(a, b, 0xDD));
    const __m512 sorted = _mm512_permutexvar_ps(order, sums);
    if (whole) {
      _mm512_storeu_ps(out + i, sorted);
    } else {
      _mm256_storeu_ps(out + i, _mm512_castps512_ps256(sorted));
    }
  }
  i = kN % 16 >= 8 ? kN / 16 * 16 + 8 : kN / 16 * 16;
#endif
#pragma GCC unroll 8
  for (; i < kN; ++i) out[i] = reduce_add(v[i]);
}

// The largest lane; no lane may be NaN (and of zeros either sign may come back).
LIMPID_INLINE float reduce_max(F32x16 a) { return OpsF::reduce_max(a); }

// The next up to 16 elements at `i` of n.
LIMPID_INLINE F32x16 load_at(const float* p, int64_t i, int64_t n) {
  return i + kLanes <= n ? load(p + i) : load_partial(p + i, n - i);
}
LIMPID_INLINE void store_at(F32x16 v, float* p, int64_t i, int64_t n) {
  i + kLanes <= n ? store(v, p + i) : store_partial(v, p + i, n - i);
}

LIMPID_INLINE float inverse_root(float x) { return 1.0F / __builtin_sqrtf(x); }

}  // namespace limpid::LIMPID_ISA
