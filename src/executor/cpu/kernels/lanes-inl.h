// Sixteen virtual float lanes, the same on every instruction set: one AVX-512 register, two of
// AVX2, four of NEON, sixteen floats without vector registers. Kernels are written once over these
// types and give the same bits everywhere: fused multiply-add is explicit, sums end in one fixed
// tree, and nothing approximate (reciprocal, rsqrt) is used.
//
// Included only by kernels/*.cpp and other *-inl.h; everything is always_inline, in the namespace
// of the instruction set, so that no symbol is shared between objects of different sets.
#pragma once

#include "executor/cpu/kernels/registers-inl.h"

namespace limpid::LIMPID_ISA {

inline constexpr int kLanes = 16;

// Lanes [0, n) in lo, [n, 2n) in hi: pairs of pairs until there are sixteen lanes. What is done to
// a pair is done to both halves.
template <class H>
struct Pair {
  H lo, hi;
};
template <class V, int kN = kNative>
struct Widen : Widen<Pair<V>, 2 * kN> {};
template <class V>
struct Widen<V, kLanes> {
  using Type = V;
};
using F32x16 = Widen<NativeF32>::Type;
using I32x16 = Widen<NativeI32>::Type;
using U32x16 = Widen<NativeU32>::Type;

template <class V>
inline constexpr bool kIsPair = false;
template <class H>
inline constexpr bool kIsPair<Pair<H>> = true;

// f(a, …), register by register.
template <class F, class V, class... More>
LIMPID_INLINE auto lanewise(F f, const V& a, const More&... more) {
  if constexpr (kIsPair<V>) {
    const auto lo = lanewise(f, a.lo, more.lo...);
    return Pair<decltype(lanewise(f, a.lo, more.lo...))>{lo, lanewise(f, a.hi, more.hi...)};
  } else {
    return f(a, more...);
  }
}
// The register of lanes [at, at + kNative) is make(at).
template <class V, class Make>
LIMPID_INLINE V make_lanes(Make make, int at = 0) {
  if constexpr (kIsPair<V>) {
    using H = decltype(V::lo);
    constexpr int kHalf = sizeof(H) / sizeof(float);
    return {make_lanes<H>(make, at), make_lanes<H>(make, at + kHalf)};
  } else {
    return make(at);
  }
}
// take(register, at) for each register, whose lanes are [at, at + kNative).
template <class V, class Take>
LIMPID_INLINE void take_lanes(const V& v, Take take, int at = 0) {
  if constexpr (kIsPair<V>) {
    take_lanes(v.lo, take, at);
    take_lanes(v.hi, take, at + static_cast<int>(sizeof(v.lo) / sizeof(float)));
  } else {
    take(v, at);
  }
}

LIMPID_INLINE F32x16 broadcast(float x) {
  return make_lanes<F32x16>([x](int) { return x - NativeF32{}; });
}
LIMPID_INLINE F32x16 zero() { return F32x16{}; }
LIMPID_INLINE I32x16 broadcast_i32(int32_t x) {
  return make_lanes<I32x16>([x](int) { return x - NativeI32{}; });
}

// Pointers need no alignment beyond that of their type.
LIMPID_INLINE F32x16 load(const float* p) {
  return make_lanes<F32x16>([p](int at) { return load_native<NativeF32>(p + at); });
}
LIMPID_INLINE I32x16 load(const int32_t* p) {
  return make_lanes<I32x16>([p](int at) { return load_native<NativeI32>(p + at); });
}
LIMPID_INLINE F32x16 load_f16(const uint16_t* p) {
  return make_lanes<F32x16>(
      [p](int at) { return native::from_halves(load_native<NativeU16>(p + at)); });
}
LIMPID_INLINE F32x16 load_bf16(const uint16_t* p) {
  return make_lanes<F32x16>(
      [p](int at) { return native::from_bfloats(load_native<NativeU16>(p + at)); });
}
LIMPID_INLINE void store(F32x16 v, float* p) {
  take_lanes(v, [p](NativeF32 part, int at) { store_native(part, p + at); });
}
LIMPID_INLINE void store(I32x16 v, int32_t* p) {
  take_lanes(v, [p](NativeI32 part, int at) { store_native(part, p + at); });
}
// Rounds to nearest even.
LIMPID_INLINE void store_f16(F32x16 v, uint16_t* p) {
  take_lanes(v, [p](NativeF32 part, int at) { store_native(native::to_halves(part), p + at); });
}
LIMPID_INLINE void store_bf16(F32x16 v, uint16_t* p) {
  take_lanes(v, [p](NativeF32 part, int at) { store_native(native::to_bfloats(part), p + at); });
}
// Of numbers from -128 to 127.
LIMPID_INLINE void store_i8(I32x16 v, int8_t* p) {
  take_lanes(v, [p](NativeI32 part, int at) { store_native(native::to_bytes(part), p + at); });
}

// The first n < 16 elements; lanes from n on are zero. Touches no memory beyond them.
LIMPID_INLINE F32x16 load_partial(const float* p, int64_t n) {
  return make_lanes<F32x16>([p, n](int at) { return load_first(p + at, n - at); });
}
LIMPID_INLINE void store_partial(F32x16 v, float* p, int64_t n) {
  take_lanes(v, [p, n](NativeF32 part, int at) { store_first(part, p + at, n - at); });
}
// kStore: store_f16 or store_bf16.
template <void (*kStore)(F32x16, uint16_t*)>
LIMPID_INLINE void store_partial(F32x16 v, uint16_t* p, int64_t n) {
  uint16_t buffer[kLanes];
  kStore(v, buffer);
  for (int64_t i = 0; i < n; ++i) p[i] = buffer[i];
}

// The types in which weights and caches are stored, for kernels that are templates over them.
struct StoredF32 {
  using Element = float;
  static LIMPID_INLINE NativeF32 load_register(const float* p) { return load_native<NativeF32>(p); }
  static LIMPID_INLINE F32x16 load(const float* p) { return LIMPID_ISA::load(p); }
  static LIMPID_INLINE F32x16 load_partial(const float* p, int64_t n) {
    return LIMPID_ISA::load_partial(p, n);
  }
};
template <F32x16 (*kLoad)(const uint16_t*), NativeF32 (*kWiden)(NativeU16)>
struct Stored16 {
  using Element = uint16_t;
  static LIMPID_INLINE NativeF32 load_register(const uint16_t* p) {
    return kWiden(load_native<NativeU16>(p));
  }
  static LIMPID_INLINE F32x16 load(const uint16_t* p) { return kLoad(p); }
  static LIMPID_INLINE F32x16 load_partial(const uint16_t* p, int64_t n) {
    uint16_t buffer[kLanes] = {};
    for (int64_t i = 0; i < n; ++i) buffer[i] = p[i];
    return kLoad(buffer);
  }
};
using StoredF16 = Stored16<load_f16, native::from_halves>;
using StoredBf16 = Stored16<load_bf16, native::from_bfloats>;

// Arithmetic of F32x16 and of I32x16.
template <class V>
LIMPID_INLINE V add(V a, V b) {
  return lanewise([](auto x, auto y) { return x + y; }, a, b);
}
template <class V>
LIMPID_INLINE V sub(V a, V b) {
  return lanewise([](auto x, auto y) { return x - y; }, a, b);
}
template <class V>
LIMPID_INLINE V mul(V a, V b) {
  return lanewise([](auto x, auto y) { return x * y; }, a, b);
}
LIMPID_INLINE F32x16 div(F32x16 a, F32x16 b) {
  return lanewise([](auto x, auto y) { return x / y; }, a, b);
}
// a * b + c, rounded once.
LIMPID_INLINE F32x16 fma(F32x16 a, F32x16 b, F32x16 c) {
  return lanewise([](auto x, auto y, auto z) { return native::fma(x, y, z); }, a, b, c);
}
// The same for chains of multiply-adds.
LIMPID_INLINE F32x16 add_product(F32x16 a, F32x16 b, F32x16 sum) {
  return lanewise([](auto x, auto y, auto z) { return native::add_product(x, y, z); }, a, b, sum);
}
// sum + the products of the lanes' pairs of bfloats.
LIMPID_INLINE F32x16 add_pair_products(I32x16 a, I32x16 b, F32x16 sum) {
  return lanewise([](auto x, auto y, auto z) { return native::add_pair_products(x, y, z); }, a, b,
                  sum);
}
// a > b ? a : b and a < b ? a : b: the second operand when either is NaN or both are zeros.
LIMPID_INLINE F32x16 max(F32x16 a, F32x16 b) {
  return lanewise([](auto x, auto y) { return native::max(x, y); }, a, b);
}
LIMPID_INLINE F32x16 min(F32x16 a, F32x16 b) {
  return lanewise([](auto x, auto y) { return native::min(x, y); }, a, b);
}
LIMPID_INLINE F32x16 sqrt(F32x16 a) {
  return lanewise([](auto x) { return native::sqrt(x); }, a);
}
LIMPID_INLINE F32x16 abs(F32x16 a) {
  return lanewise([](auto x) { return NativeF32(NativeI32(x) & INT32_MAX); }, a);
}
LIMPID_INLINE F32x16 negate(F32x16 a) {
  return lanewise([](auto x) { return -x; }, a);
}
LIMPID_INLINE F32x16 select_less(F32x16 a, F32x16 b, F32x16 yes, F32x16 no) {
  return lanewise([](auto x, auto y, auto p, auto q) { return x < y ? p : q; }, a, b, yes, no);
}
// Bit i is set unless a[i] < b[i].
template <class V>
LIMPID_INLINE uint32_t not_less(const V& a, const V& b) {
  if constexpr (kIsPair<V>) {
    constexpr int kHalf = sizeof(a.lo) / sizeof(float);
    return not_less(a.lo, b.lo) | not_less(a.hi, b.hi) << kHalf;
  } else {
    return native::not_less(a, b);
  }
}
template <int kBits>
LIMPID_INLINE I32x16 shift_left(I32x16 a) {
  return lanewise([](auto x) { return x << kBits; }, a);
}
template <int kBits>
LIMPID_INLINE I32x16 shift_right(I32x16 a) {  // arithmetic
  return lanewise([](auto x) { return x >> kBits; }, a);
}
LIMPID_INLINE I32x16 to_int(F32x16 a) {  // to nearest even; |a| < 2^31
  return lanewise([](auto x) { return native::to_int(x); }, a);
}
LIMPID_INLINE F32x16 to_float(I32x16 a) {
  return lanewise([](auto x) { return __builtin_convertvector(x, NativeF32); }, a);
}
LIMPID_INLINE F32x16 float_of_bits(I32x16 a) {
  return lanewise([](auto x) { return NativeF32(x); }, a);
}
LIMPID_INLINE I32x16 bits_of_float(F32x16 a) {
  return lanewise([](auto x) { return NativeI32(x); }, a);
}
// Their sums wrap around, where those of signed numbers would be undefined.
LIMPID_INLINE U32x16 as_unsigned(I32x16 a) {
  return lanewise([](auto x) { return NativeU32(x); }, a);
}

inline constexpr auto kAdd = [](auto x, auto y) { return x + y; };
inline constexpr auto kLarger = [](auto x, auto y) { return x > y ? x : y; };

// Adds, or what `op` does, the upper half to the lower half until one lane is left.
template <class V, class Op>
LIMPID_INLINE auto fold(const V& v, Op op) {
  if constexpr (kIsPair<V>) {
    return fold(lanewise(op, v.lo, v.hi), op);
  } else if constexpr (sizeof(V) == 64) {
    return fold(op(__builtin_shufflevector(v, v, 0, 1, 2, 3, 4, 5, 6, 7),
                   __builtin_shufflevector(v, v, 8, 9, 10, 11, 12, 13, 14, 15)),
                op);
  } else if constexpr (sizeof(V) == 32) {
    return fold(
        op(__builtin_shufflevector(v, v, 0, 1, 2, 3), __builtin_shufflevector(v, v, 4, 5, 6, 7)),
        op);
  } else {
    const V two = op(v, __builtin_shufflevector(v, v, 2, 3, 0, 1));
    return op(two[0], two[1]);
  }
}
// The sum of the lanes in one order: (l, l+8), (l, l+4), (l, l+2), (l, l+1).
template <class V>
LIMPID_INLINE auto reduce_add(const V& a) {
  return fold(a, kAdd);
}
// The largest lane; no lane may be NaN (and of zeros either sign may come back).
LIMPID_INLINE float reduce_max(const F32x16& a) { return fold(a, kLarger); }

#if defined(__AVX512F__)
// Blocks of four lanes of a, then of b; and pairs of lanes within each block.
template <int kWhich, class V>
LIMPID_INLINE V join_blocks(const V& a, const V& b) {
  return V(_mm512_shuffle_f32x4(__m512(a), __m512(b), kWhich));
}
template <int kWhich, class V>
LIMPID_INLINE V join_lanes(const V& a, const V& b) {
  return V(_mm512_shuffle_ps(__m512(a), __m512(b), kWhich));
}

// Eight interleaved folds, except for the last step: lanes 2j, 2j + 1 of each block of four hold
// what is left of one.
template <class V, class Op>
LIMPID_INLINE V fold_eight(const V* v, Op op) {
  V eights[4];  // lanes l and l + 8 of two vectors each
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    eights[i] = op(join_blocks<0x44>(v[i], v[i + 4]), join_blocks<0xEE>(v[i], v[i + 4]));
  }
  V fours[2];  // of four vectors each: i, i + 4, i + 2, i + 6
#pragma GCC unroll 2
  for (int i = 0; i < 2; ++i) {
    fours[i] = op(join_blocks<0x88>(eights[i], eights[i + 2]),
                  join_blocks<0xDD>(eights[i], eights[i + 2]));
  }
  return op(join_lanes<0x44>(fours[0], fours[1]), join_lanes<0xEE>(fours[0], fours[1]));
}
#endif

// out[i] = fold(v[i], op), many at once where that is faster. Of unsigned lanes, `out` may be
// signed: it gets their bits.
template <int kN, class V, class Element, class Op>
LIMPID_INLINE void fold_all(const V* v, Element* out, Op op) {
  int i = 0;
#if defined(__AVX512F__)
  // Where each result ends up: blocks of four are vectors 0, 4, 2, 6 of eight, in them 0, 1 of the
  // first eight, then of the second.
  const __m512i order = _mm512_setr_epi32(0, 1, 8, 9, 4, 5, 12, 13, 2, 3, 10, 11, 6, 7, 14, 15);
#pragma GCC unroll 4
  for (; i + 8 <= kN; i += 16) {
    const V a = fold_eight(v + i, op);
    const bool whole = i + 16 <= kN;
    const V b = whole ? fold_eight(v + i + 8, op) : a;
    const V results = op(join_lanes<0x88>(a, b), join_lanes<0xDD>(a, b));
    const __m512i sorted = _mm512_permutexvar_epi32(order, __m512i(results));
    if (whole) {
      _mm512_storeu_si512(out + i, sorted);
    } else {
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(out + i), _mm512_castsi512_si256(sorted));
    }
  }
  i = kN % 16 >= 8 ? kN / 16 * 16 + 8 : kN / 16 * 16;
#endif
#pragma GCC unroll 8
  for (; i < kN; ++i) out[i] = fold(v[i], op);
}

// Zips pairs of lanes, a0 b0 a1 b1 …: of the lower halves of a and b, and of the upper halves. With
// AVX2 each group of four lanes is zipped by itself, because moving lanes between the groups is
// slow.
inline constexpr int kZipped = kNative == 16 ? 16 : 4;
#if defined(__AVX512F__)
LIMPID_INLINE NativeF32 zip_low(NativeF32 a, NativeF32 b) {
  return __builtin_shufflevector(a, b, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
}
LIMPID_INLINE NativeF32 zip_high(NativeF32 a, NativeF32 b) {
  return __builtin_shufflevector(a, b, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15,
                                 31);
}
#elif defined(__AVX2__)
LIMPID_INLINE NativeF32 zip_low(NativeF32 a, NativeF32 b) {
  return __builtin_shufflevector(a, b, 0, 8, 1, 9, 4, 12, 5, 13);
}
LIMPID_INLINE NativeF32 zip_high(NativeF32 a, NativeF32 b) {
  return __builtin_shufflevector(a, b, 2, 10, 3, 11, 6, 14, 7, 15);
}
#else
LIMPID_INLINE NativeF32 zip_low(NativeF32 a, NativeF32 b) {
  return __builtin_shufflevector(a, b, 0, 4, 1, 5);
}
LIMPID_INLINE NativeF32 zip_high(NativeF32 a, NativeF32 b) {
  return __builtin_shufflevector(a, b, 2, 6, 3, 7);
}
#endif

// Lane i of rows[j] becomes lane j of rows[i]. Each round zips the first half of kZipped rows with
// the second half: two rounds for 4 lanes, four for 16. For the 8 lanes of AVX2, rows j and j + 4
// exchange halves first. Then four registers hold two blocks of 4 x 4 lanes side by side, and the
// rounds need not move a lane from one block to the other.
LIMPID_INLINE void transpose(NativeF32 (&rows)[kNative]) {
#if defined(__AVX2__) && !defined(__AVX512F__)
#pragma GCC unroll 4
  for (int j = 0; j < 4; ++j) {
    const NativeF32 a = rows[j];
    const NativeF32 b = rows[j + 4];
    rows[j] = __builtin_shufflevector(a, b, 0, 1, 2, 3, 8, 9, 10, 11);
    rows[j + 4] = __builtin_shufflevector(a, b, 4, 5, 6, 7, 12, 13, 14, 15);
  }
#endif
#pragma GCC unroll 2
  for (int first = 0; first < kNative; first += kZipped) {
#pragma GCC unroll 4
    for (int n = 1; n < kZipped; n *= 2) {
      NativeF32 zipped[kZipped];
#pragma GCC unroll 8
      for (int i = 0; i < kZipped / 2; ++i) {
        zipped[2 * i] = zip_low(rows[first + i], rows[first + i + kZipped / 2]);
        zipped[2 * i + 1] = zip_high(rows[first + i], rows[first + i + kZipped / 2]);
      }
#pragma GCC unroll 16
      for (int i = 0; i < kZipped; ++i) rows[first + i] = zipped[i];
    }
  }
}

// The next up to 16 elements at `i` of n.
LIMPID_INLINE F32x16 load_at(const float* p, int64_t i, int64_t n) {
  return i + kLanes <= n ? load(p + i) : load_partial(p + i, n - i);
}
LIMPID_INLINE void store_at(F32x16 v, float* p, int64_t i, int64_t n) {
  i + kLanes <= n ? store(v, p + i) : store_partial(v, p + i, n - i);
}

LIMPID_INLINE float inverse_root(float x) { return 1.0F / __builtin_sqrtf(x); }

}  // namespace limpid::LIMPID_ISA
