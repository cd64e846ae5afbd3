// What one native register can do. A register is a vector of GCC and Clang, whose operators
// (+, <<, <, ?:) become the CPU's instructions; what has no operator is a function here, with a
// body for each instruction set. Used through lanes-inl.h.
//
// The bodies without intrinsics serve the set `scalar`. They define what the others compute.
#pragma once

#include <cstddef>
#include <cstdint>

#if defined(__AVX2__)
#if defined(__GNUC__) && !defined(__clang__)  // GCC 12 warns of its own "undefined" registers
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC diagnostic ignored "-Wuninitialized"
#endif
#include <immintrin.h>
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic pop
#endif
#elif LIMPID_ISA_neon
#include <arm_neon.h>
#endif

#include "tensor/half.h"

#define LIMPID_INLINE inline __attribute__((always_inline))

namespace limpid::LIMPID_ISA {

// How many bytes ahead weights are prefetched: first into the second-level cache, then from there
// into the first-level cache. A cache tracks a limited number of lines that are on their way: few
// in the first level (16 on recent Intel CPUs), many more in the second. A line that the first
// level requests straight from memory would occupy one of these places for long, and the kernel
// waits when none is free. The two distances were found by measurement.
inline constexpr int kAheadInSecondCache = 4096;
inline constexpr int kAheadInFirstCache = 1024;

// Numbers of 32 bits in a register.
#if defined(__AVX512F__)
inline constexpr int kNative = 16;
#elif defined(__AVX2__)
inline constexpr int kNative = 8;
#else
inline constexpr int kNative = 4;
#endif

using NativeF32 = float __attribute__((vector_size(4 * kNative)));
using NativeI32 = int32_t __attribute__((vector_size(4 * kNative)));
using NativeU32 = uint32_t __attribute__((vector_size(4 * kNative)));
using NativeU16 = uint16_t __attribute__((vector_size(2 * kNative)));
using NativeI8 = int8_t __attribute__((vector_size(kNative)));

// Pointers need no alignment beyond that of their type. Not a memcpy: GCC 12 puts a load written
// like this into the instruction that uses it.
template <class V>
struct __attribute__((packed, may_alias)) Unaligned {
  V v;
};
template <class V>
LIMPID_INLINE V load_native(const void* p) {
  return static_cast<const Unaligned<V>*>(p)->v;
}
template <class V>
LIMPID_INLINE void store_native(const V& v, void* p) {
  static_cast<Unaligned<V>*>(p)->v = v;
}

// ---- half precision -----------------------------------------------------------------------------

// A NaN becomes quiet, as the hardware makes it.
LIMPID_INLINE float half_to_float(uint16_t half) {
  const auto bits = __builtin_bit_cast(uint32_t, limpid::f16_to_f32(half));
  return __builtin_bit_cast(float, (half & 0x7FFFU) > 0x7C00U ? bits | 0x0040'0000U : bits);
}

// ---- what has no operator -----------------------------------------------------------------------

// fma and fused_minus, a * b + c and c - a * b, are rounded once. max and min are a > b ? a : b and
// a < b ? a : b: the second operand when either is NaN or both are zeros. to_int and to_halves
// round to nearest even. to_bytes takes numbers from -128 to 127, and to_words below 2^16. Bit i of
// not_less is set unless a[i] < b[i], so also where either is NaN.
namespace native {

#if defined(__AVX512F__)

LIMPID_INLINE NativeF32 fma(NativeF32 a, NativeF32 b, NativeF32 c) {
  return _mm512_fmadd_ps(a, b, c);
}
LIMPID_INLINE NativeF32 fused_minus(NativeF32 a, NativeF32 b, NativeF32 c) {
  return _mm512_fnmadd_ps(a, b, c);
}
LIMPID_INLINE NativeF32 max(NativeF32 a, NativeF32 b) { return _mm512_max_ps(a, b); }
LIMPID_INLINE NativeF32 min(NativeF32 a, NativeF32 b) { return _mm512_min_ps(a, b); }
LIMPID_INLINE NativeF32 sqrt(NativeF32 a) { return _mm512_sqrt_ps(a); }
LIMPID_INLINE uint32_t not_less(NativeF32 a, NativeF32 b) {
  return _mm512_cmp_ps_mask(a, b, _CMP_NLT_UQ);
}
LIMPID_INLINE NativeI32 to_int(NativeF32 a) { return NativeI32(_mm512_cvtps_epi32(a)); }
LIMPID_INLINE NativeF32 from_halves(NativeU16 a) { return _mm512_cvtph_ps(__m256i(a)); }
LIMPID_INLINE NativeU16 to_halves(NativeF32 a) {
  return NativeU16(_mm512_cvtps_ph(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
}
LIMPID_INLINE NativeI8 to_bytes(NativeI32 a) { return __builtin_convertvector(a, NativeI8); }
LIMPID_INLINE NativeF32 from_bfloats(NativeU16 a) {
  return NativeF32(NativeU32(_mm512_cvtepu16_epi32(__m256i(a))) << 16);
}
LIMPID_INLINE NativeU16 to_words(NativeU32 a) { return __builtin_convertvector(a, NativeU16); }

#elif defined(__AVX2__)

LIMPID_INLINE NativeF32 from_bfloats(NativeU16 a) {
  return NativeF32(NativeU32(_mm256_cvtepu16_epi32(__m128i(a))) << 16);
}
LIMPID_INLINE NativeF32 fma(NativeF32 a, NativeF32 b, NativeF32 c) {
  return _mm256_fmadd_ps(a, b, c);
}
LIMPID_INLINE NativeF32 fused_minus(NativeF32 a, NativeF32 b, NativeF32 c) {
  return _mm256_fnmadd_ps(a, b, c);
}
LIMPID_INLINE NativeF32 max(NativeF32 a, NativeF32 b) { return _mm256_max_ps(a, b); }
LIMPID_INLINE NativeF32 min(NativeF32 a, NativeF32 b) { return _mm256_min_ps(a, b); }
LIMPID_INLINE NativeF32 sqrt(NativeF32 a) { return _mm256_sqrt_ps(a); }
LIMPID_INLINE uint32_t not_less(NativeF32 a, NativeF32 b) {
  return static_cast<uint32_t>(_mm256_movemask_ps(_mm256_cmp_ps(a, b, _CMP_NLT_UQ)));
}
LIMPID_INLINE NativeI32 to_int(NativeF32 a) { return NativeI32(_mm256_cvtps_epi32(a)); }
LIMPID_INLINE NativeF32 from_halves(NativeU16 a) { return _mm256_cvtph_ps(__m128i(a)); }
LIMPID_INLINE NativeU16 to_halves(NativeF32 a) {
  return NativeU16(_mm256_cvtps_ph(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
}
// GCC 12 takes the lanes one by one for a conversion.
LIMPID_INLINE NativeU16 to_words(NativeU32 a) {
  return NativeU16(_mm_packus_epi32(_mm256_castsi256_si128(__m256i(a)),
                                    _mm256_extracti128_si256(__m256i(a), 1)));
}
LIMPID_INLINE NativeI8 to_bytes(NativeI32 a) {
  const __m128i words =
      _mm_packs_epi32(_mm256_castsi256_si128(__m256i(a)), _mm256_extracti128_si256(__m256i(a), 1));
  return __builtin_bit_cast(NativeI8, _mm_cvtsi128_si64(_mm_packs_epi16(words, words)));
}

#else

LIMPID_INLINE NativeI8 to_bytes(NativeI32 a) { return __builtin_convertvector(a, NativeI8); }
LIMPID_INLINE NativeU16 to_words(NativeU32 a) { return __builtin_convertvector(a, NativeU16); }
LIMPID_INLINE NativeF32 from_bfloats(NativeU16 a) {
  return NativeF32(__builtin_convertvector(a, NativeU32) << 16);
}
LIMPID_INLINE NativeF32 max(NativeF32 a, NativeF32 b) { return a > b ? a : b; }
LIMPID_INLINE NativeF32 min(NativeF32 a, NativeF32 b) { return a < b ? a : b; }
LIMPID_INLINE uint32_t not_less(NativeF32 a, NativeF32 b) {
  uint32_t bits = 0;
  for (int i = 0; i < kNative; ++i) bits |= (a[i] < b[i] ? 0U : 1U) << i;
  return bits;
}
#if LIMPID_ISA_neon
LIMPID_INLINE NativeF32 fma(NativeF32 a, NativeF32 b, NativeF32 c) { return vfmaq_f32(c, a, b); }
LIMPID_INLINE NativeF32 sqrt(NativeF32 a) { return vsqrtq_f32(a); }
LIMPID_INLINE NativeI32 to_int(NativeF32 a) { return vcvtnq_s32_f32(a); }
LIMPID_INLINE NativeF32 from_halves(NativeU16 a) { return vcvt_f32_f16(float16x4_t(a)); }
LIMPID_INLINE NativeU16 to_halves(NativeF32 a) { return NativeU16(vcvt_f16_f32(a)); }
#else
LIMPID_INLINE NativeF32 fma(NativeF32 a, NativeF32 b, NativeF32 c) {
  for (int i = 0; i < kNative; ++i) c[i] = __builtin_fmaf(a[i], b[i], c[i]);
  return c;
}
LIMPID_INLINE NativeF32 sqrt(NativeF32 a) {
  for (int i = 0; i < kNative; ++i) a[i] = __builtin_sqrtf(a[i]);
  return a;
}
LIMPID_INLINE NativeI32 to_int(NativeF32 a) {
  NativeI32 result{};
  for (int i = 0; i < kNative; ++i) result[i] = static_cast<int32_t>(__builtin_lrintf(a[i]));
  return result;
}
LIMPID_INLINE NativeF32 from_halves(NativeU16 a) {
  NativeF32 result{};
  for (int i = 0; i < kNative; ++i) result[i] = half_to_float(a[i]);
  return result;
}
LIMPID_INLINE NativeU16 to_halves(NativeF32 a) {
  NativeU16 result{};
  for (int i = 0; i < kNative; ++i) result[i] = limpid::f32_to_f16(a[i]);
  return result;
}
#endif
LIMPID_INLINE NativeF32 fused_minus(NativeF32 a, NativeF32 b, NativeF32 c) { return fma(-a, b, c); }

#endif

// A bfloat16 is the upper half of an f32. Rounds to nearest even; a NaN keeps its upper half and
// becomes quiet.
LIMPID_INLINE NativeU16 to_bfloats(NativeF32 a) {
  const auto bits = NativeU32(a);
  const NativeU32 rounded = (bits + 0x7FFFU + ((bits >> 16) & 1U)) >> 16;
  const auto is_nan = NativeI32(bits & 0x7FFF'FFFFU) > 0x7F80'0000;
  return to_words(is_nan ? (bits >> 16) | 0x40U : rounded);
}

// Otherwise the compiler may read a value that several instructions use from memory for each.
LIMPID_INLINE NativeF32 in_register(NativeF32 v) {
#if defined(__AVX512F__)
  asm("" : "+v"(v));
#elif defined(__x86_64__)
  asm("" : "+x"(v));
#elif defined(__aarch64__)
  asm("" : "+w"(v));
#endif
  return v;
}

// sum + a * b, rounded once, for chains of multiply-adds. With AVX2 the instruction is written out:
// GCC 12 would choose the form that overwrites a factor, and then copy sums between registers and
// to the stack. A tile of 6 x 16 sums was 9 % slower that way.
LIMPID_INLINE NativeF32 add_product(NativeF32 a, NativeF32 b, NativeF32 sum) {
#if defined(__AVX2__) && !defined(__AVX512F__)
  asm("vfmadd231ps %2, %1, %0" : "+x"(sum) : "x"(a), "x"(b));
  return sum;
#else
  return fma(a, b, sum);
#endif
}

// Of a lane's two bfloats, those in the upper halves are multiplied and added first, then those in
// the lower halves. Each product is exact, and each sum is rounded. The instruction of
// AVX512_BF16 does the same, but treats numbers below 2^-126 as zeros.
LIMPID_INLINE NativeF32 add_pair_products(NativeI32 a, NativeI32 b, NativeF32 sum) {
#if defined(__AVX512BF16__)
  return _mm512_dpbf16_ps(sum, __builtin_bit_cast(__m512bh, a), __builtin_bit_cast(__m512bh, b));
#else
  constexpr int32_t kUpper = -0x10000;
  sum = add_product(NativeF32(a & kUpper), NativeF32(b & kUpper), sum);
  return add_product(NativeF32(a << 16), NativeF32(b << 16), sum);
#endif
}

}  // namespace native

// The first n lanes, none for a negative n; n < 32. Loading fills the other lanes with zeros.
// Neither touches memory beyond.
#if defined(__AVX512F__)
LIMPID_INLINE __mmask16 first_lanes(int64_t n) {
  return static_cast<__mmask16>(n < 0 ? 0 : (1U << static_cast<unsigned>(n)) - 1);
}
LIMPID_INLINE NativeF32 load_first(const float* p, int64_t n) {
  return _mm512_maskz_loadu_ps(first_lanes(n), p);
}
LIMPID_INLINE void store_first(NativeF32 v, float* p, int64_t n) {
  _mm512_mask_storeu_ps(p, first_lanes(n), v);
}
#elif defined(__AVX2__)
LIMPID_INLINE __m256i first_lanes(int64_t n) {
  return __m256i(NativeI32{0, 1, 2, 3, 4, 5, 6, 7} < static_cast<int32_t>(n));
}
LIMPID_INLINE NativeF32 load_first(const float* p, int64_t n) {
  return _mm256_maskload_ps(p, first_lanes(n));
}
LIMPID_INLINE void store_first(NativeF32 v, float* p, int64_t n) {
  _mm256_maskstore_ps(p, first_lanes(n), v);
}
#else
LIMPID_INLINE NativeF32 load_first(const float* p, int64_t n) {
  NativeF32 v{};
  for (int i = 0; i < n && i < kNative; ++i) v[i] = p[i];
  return v;
}
LIMPID_INLINE void store_first(NativeF32 v, float* p, int64_t n) {
  for (int i = 0; i < n && i < kNative; ++i) p[i] = v[i];
}
#endif

}  // namespace limpid::LIMPID_ISA
