// Sixteen virtual float lanes, the same on every instruction set: one AVX-512 register, two of
// AVX2, four of NEON, sixteen floats where there is nothing. Kernels are written once over these
// types and give the same bits everywhere: fused multiply-add is explicit, sums end in one fixed
// tree, and nothing approximate (reciprocal, rsqrt) is used.
//
// Included only by kernels/*.cpp and other *-inl.h; everything is always_inline, in the namespace
// of the instruction set, so that no symbol is shared between objects of different sets.
#pragma once

#include <cstddef>
#include <cstdint>

#if !LIMPID_ISA_scalar
#define HWY_COMPILE_ONLY_STATIC  // the target is what the compiler's flags give
#define HWY_DISABLE_PCLMUL_AES
#include <hwy/highway.h>
#endif

#define LIMPID_INLINE inline __attribute__((always_inline))

namespace limpid::LIMPID_ISA {

inline constexpr int kLanes = 16;

// ---- one native register
// ---------------------------------------------------------------------------------------------

template <class V>
struct Ops;

#if LIMPID_ISA_scalar

using NativeF32 = float;
using NativeI32 = int32_t;

LIMPID_INLINE float f16_bits_to_f32(uint16_t half) {
  const uint32_t sign = static_cast<uint32_t>(half & 0x8000U) << 16;
  const uint32_t magnitude = half & 0x7FFFU;
  if (magnitude >= 0x7C00U) {  // infinity, or NaN made quiet as the hardware does
    const uint32_t quiet = magnitude > 0x7C00U ? 0x0040'0000U : 0U;
    return __builtin_bit_cast(float, sign | 0x7F80'0000U | ((magnitude & 0x3FFU) << 13) | quiet);
  }
  // A half with 0x70 less in its exponent, read as f32; the product is exact, also for subnormals.
  const float scaled = __builtin_bit_cast(float, magnitude << 13) * 0x1p112F;
  return __builtin_bit_cast(float, __builtin_bit_cast(uint32_t, scaled) | sign);
}

LIMPID_INLINE uint16_t f32_to_f16_bits(float value) {
  const uint32_t bits = __builtin_bit_cast(uint32_t, value);
  const uint32_t sign = (bits >> 16) & 0x8000U;
  const uint32_t magnitude = bits & 0x7FFF'FFFFU;
  uint32_t half = 0;
  if (magnitude > 0x7F80'0000U) {
    half = 0x7E00U | ((magnitude >> 13) & 0x3FFU);
  } else if (magnitude >= 0x4780'0000U) {  // >= 2^16
    half = 0x7C00U;
  } else if (magnitude < 0x3880'0000U) {  // < 2^-14: the sum leaves units of 2^-24, rounded to
                                          // even, in the low bits
    const float sum = __builtin_bit_cast(float, magnitude) + 0.5F;
    half = __builtin_bit_cast(uint32_t, sum) - 0x3F00'0000U;
  } else {
    const uint32_t odd = (magnitude >> 13) & 1U;
    half = (magnitude - 0x3800'0000U + 0xFFFU + odd) >> 13;
  }
  return static_cast<uint16_t>(sign | half);
}

template <>
struct Ops<float> {
  static constexpr int kSize = 1;
  static LIMPID_INLINE float set(float x) { return x; }
  static LIMPID_INLINE float load(const float* p) { return *p; }
  static LIMPID_INLINE float load_partial(const float* p, int64_t n) { return n > 0 ? *p : 0.0F; }
  static LIMPID_INLINE float load_f16(const uint16_t* p) { return f16_bits_to_f32(*p); }
  static LIMPID_INLINE float load_bf16(const uint16_t* p) {
    return __builtin_bit_cast(float, static_cast<uint32_t>(*p) << 16);
  }
  static LIMPID_INLINE void store(float v, float* p) { *p = v; }
  static LIMPID_INLINE void store_partial(float v, float* p, int64_t n) {
    if (n > 0) *p = v;
  }
  static LIMPID_INLINE void store_f16(float v, uint16_t* p) { *p = f32_to_f16_bits(v); }
  static LIMPID_INLINE float add(float a, float b) { return a + b; }
  static LIMPID_INLINE float sub(float a, float b) { return a - b; }
  static LIMPID_INLINE float mul(float a, float b) { return a * b; }
  static LIMPID_INLINE float div(float a, float b) { return a / b; }
  static LIMPID_INLINE float fma(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
  static LIMPID_INLINE float max(float a, float b) { return a > b ? a : b; }
  static LIMPID_INLINE float min(float a, float b) { return a < b ? a : b; }
  static LIMPID_INLINE float sqrt(float a) { return __builtin_sqrtf(a); }
  static LIMPID_INLINE float abs(float a) { return __builtin_fabsf(a); }
  static LIMPID_INLINE float copy_sign(float magnitude, float sign) {
    return __builtin_copysignf(magnitude, sign);
  }
  static LIMPID_INLINE float select_less(float a, float b, float yes, float no) {
    return a < b ? yes : no;
  }
  static LIMPID_INLINE float reduce_add(float a) { return a; }
  static LIMPID_INLINE float reduce_max(float a) { return a; }
  static LIMPID_INLINE int32_t to_int(float a) { return static_cast<int32_t>(__builtin_lrintf(a)); }
  static LIMPID_INLINE int32_t bits(float a) { return __builtin_bit_cast(int32_t, a); }
};

template <>
struct Ops<int32_t> {
  static constexpr int kSize = 1;
  static LIMPID_INLINE int32_t set(int32_t x) { return x; }
  static LIMPID_INLINE int32_t load(const int32_t* p) { return *p; }
  static LIMPID_INLINE void store(int32_t v, int32_t* p) { *p = v; }
  static LIMPID_INLINE void store_i8(int32_t v, int8_t* p) {
    *p = static_cast<int8_t>(v < -128 ? -128 : v > 127 ? 127 : v);
  }
  static LIMPID_INLINE int32_t add(int32_t a, int32_t b) {
    return static_cast<int32_t>(static_cast<uint32_t>(a) + static_cast<uint32_t>(b));
  }
  static LIMPID_INLINE int32_t sub(int32_t a, int32_t b) {
    return static_cast<int32_t>(static_cast<uint32_t>(a) - static_cast<uint32_t>(b));
  }
  static LIMPID_INLINE int32_t mul(int32_t a, int32_t b) {
    return static_cast<int32_t>(static_cast<uint32_t>(a) * static_cast<uint32_t>(b));
  }
  template <int kBits>
  static LIMPID_INLINE int32_t shift_left(int32_t a) {
    return static_cast<int32_t>(static_cast<uint32_t>(a) << kBits);
  }
  template <int kBits>
  static LIMPID_INLINE int32_t shift_right(int32_t a) {
    return a >> kBits;
  }
  static LIMPID_INLINE int32_t reduce_add(int32_t a) { return a; }
  static LIMPID_INLINE float to_float(int32_t a) { return static_cast<float>(a); }
  static LIMPID_INLINE float as_float(int32_t a) { return __builtin_bit_cast(float, a); }
};

#else

namespace hn = hwy::HWY_NAMESPACE;
using TagF32 = hn::CappedTag<float, kLanes>;
using TagI32 = hn::Rebind<int32_t, TagF32>;
using NativeF32 = hn::Vec<TagF32>;
using NativeI32 = hn::Vec<TagI32>;
inline constexpr int kNative = static_cast<int>(hn::MaxLanes(TagF32()));

// Adds the upper half to the lower half until one lane is left: (l, l+8), (l, l+4), (l, l+2), (l,
// l+1).
template <class D>
LIMPID_INLINE auto fold_add([[maybe_unused]] D d, hn::Vec<D> v) {
  if constexpr (hn::MaxLanes(D()) == 1) {
    return hn::GetLane(v);
  } else {
    const hn::Half<D> half;
    return fold_add(half, hn::Add(hn::LowerHalf(half, v), hn::UpperHalf(half, v)));
  }
}

template <>
struct Ops<NativeF32> {
  using V = NativeF32;
  using Tag = TagF32;
  using Tag16 = hn::Rebind<uint16_t, TagF32>;
  using TagHalf = hn::Rebind<hwy::float16_t, TagF32>;
  static constexpr int kSize = kNative;
  static LIMPID_INLINE V set(float x) { return hn::Set(Tag(), x); }
  static LIMPID_INLINE V load(const float* p) { return hn::LoadU(Tag(), p); }
  static LIMPID_INLINE V load_partial(const float* p, int64_t n) {
#if LIMPID_ISA_neon  // has no masked load
    float buffer[kNative] = {};
    for (int64_t i = 0; i < n && i < kNative; ++i) buffer[i] = p[i];
    return hn::LoadU(Tag(), buffer);
#else
    return hn::MaskedLoad(hn::FirstN(Tag(), n > 0 ? static_cast<size_t>(n) : 0), Tag(), p);
#endif
  }
  static LIMPID_INLINE V load_f16(const uint16_t* p) {
    return hn::PromoteTo(Tag(), hn::BitCast(TagHalf(), hn::LoadU(Tag16(), p)));
  }
  static LIMPID_INLINE V load_bf16(const uint16_t* p) {
    const hn::Rebind<uint32_t, Tag> wide;
    return hn::BitCast(Tag(), hn::ShiftLeft<16>(hn::PromoteTo(wide, hn::LoadU(Tag16(), p))));
  }
  static LIMPID_INLINE void store(V v, float* p) { hn::StoreU(v, Tag(), p); }
  static LIMPID_INLINE void store_partial(V v, float* p, int64_t n) {
    if (n >= kNative) {
      hn::StoreU(v, Tag(), p);
      return;
    }
    float buffer[kNative];
    hn::StoreU(v, Tag(), buffer);
    for (int64_t i = 0; i < n; ++i) p[i] = buffer[i];
  }
  static LIMPID_INLINE void store_f16(V v, uint16_t* p) {
    hn::StoreU(hn::BitCast(Tag16(), hn::DemoteTo(TagHalf(), v)), Tag16(), p);
  }
  static LIMPID_INLINE V add(V a, V b) { return hn::Add(a, b); }
  static LIMPID_INLINE V sub(V a, V b) { return hn::Sub(a, b); }
  static LIMPID_INLINE V mul(V a, V b) { return hn::Mul(a, b); }
  static LIMPID_INLINE V div(V a, V b) { return hn::Div(a, b); }
  static LIMPID_INLINE V fma(V a, V b, V c) { return hn::MulAdd(a, b, c); }
#if LIMPID_ISA_neon  // vmaxq treats NaN and zeros otherwise
  static LIMPID_INLINE V max(V a, V b) { return hn::IfThenElse(hn::Gt(a, b), a, b); }
  static LIMPID_INLINE V min(V a, V b) { return hn::IfThenElse(hn::Lt(a, b), a, b); }
#else
  static LIMPID_INLINE V max(V a, V b) { return hn::Max(a, b); }
  static LIMPID_INLINE V min(V a, V b) { return hn::Min(a, b); }
#endif
  static LIMPID_INLINE V sqrt(V a) { return hn::Sqrt(a); }
  static LIMPID_INLINE V abs(V a) { return hn::Abs(a); }
  static LIMPID_INLINE V copy_sign(V magnitude, V sign) { return hn::CopySign(magnitude, sign); }
  static LIMPID_INLINE V select_less(V a, V b, V yes, V no) {
    return hn::IfThenElse(hn::Lt(a, b), yes, no);
  }
  static LIMPID_INLINE float reduce_add(V a) { return fold_add(Tag(), a); }
  static LIMPID_INLINE float reduce_max(V a) { return hn::GetLane(hn::MaxOfLanes(Tag(), a)); }
  static LIMPID_INLINE NativeI32 to_int(V a) { return hn::NearestInt(a); }
  static LIMPID_INLINE NativeI32 bits(V a) { return hn::BitCast(TagI32(), a); }
};

template <>
struct Ops<NativeI32> {
  using V = NativeI32;
  using Tag = TagI32;
  static constexpr int kSize = kNative;
  static LIMPID_INLINE V set(int32_t x) { return hn::Set(Tag(), x); }
  static LIMPID_INLINE V load(const int32_t* p) { return hn::LoadU(Tag(), p); }
  static LIMPID_INLINE void store(V v, int32_t* p) { hn::StoreU(v, Tag(), p); }
  static LIMPID_INLINE void store_i8(V v, int8_t* p) {
    const hn::Rebind<int8_t, Tag> narrow;
    hn::StoreU(hn::DemoteTo(narrow, v), narrow, p);
  }
  static LIMPID_INLINE V add(V a, V b) { return hn::Add(a, b); }
  static LIMPID_INLINE V sub(V a, V b) { return hn::Sub(a, b); }
  static LIMPID_INLINE V mul(V a, V b) { return hn::Mul(a, b); }
  template <int kBits>
  static LIMPID_INLINE V shift_left(V a) {
    return hn::ShiftLeft<kBits>(a);
  }
  template <int kBits>
  static LIMPID_INLINE V shift_right(V a) {
    return hn::ShiftRight<kBits>(a);
  }
  static LIMPID_INLINE int32_t reduce_add(V a) { return fold_add(Tag(), a); }
  static LIMPID_INLINE NativeF32 to_float(V a) { return hn::ConvertTo(TagF32(), a); }
  static LIMPID_INLINE NativeF32 as_float(V a) { return hn::BitCast(TagF32(), a); }
};

#endif

// ---- sixteen lanes from native registers
// -----------------------------------------------------------------------------

// Lanes [0, n) in lo, [n, 2n) in hi. Nested until sixteen lanes are reached.
template <class H>
struct Pair {
  H lo, hi;
};

template <class H>
struct Ops<Pair<H>> {
  using V = Pair<H>;
  using O = Ops<H>;
  static constexpr int kHalf = O::kSize;
  static constexpr int kSize = 2 * kHalf;
  template <class T>
  static LIMPID_INLINE V set(T x) {
    return {O::set(x), O::set(x)};
  }
  template <class T>
  static LIMPID_INLINE V load(const T* p) {
    return {O::load(p), O::load(p + kHalf)};
  }
  static LIMPID_INLINE V load_partial(const float* p, int64_t n) {
    return {O::load_partial(p, n), O::load_partial(n > kHalf ? p + kHalf : p, n - kHalf)};
  }
  static LIMPID_INLINE V load_f16(const uint16_t* p) {
    return {O::load_f16(p), O::load_f16(p + kHalf)};
  }
  static LIMPID_INLINE V load_bf16(const uint16_t* p) {
    return {O::load_bf16(p), O::load_bf16(p + kHalf)};
  }
  template <class T>
  static LIMPID_INLINE void store(V v, T* p) {
    O::store(v.lo, p);
    O::store(v.hi, p + kHalf);
  }
  static LIMPID_INLINE void store_partial(V v, float* p, int64_t n) {
    O::store_partial(v.lo, p, n);
    if (n > kHalf) O::store_partial(v.hi, p + kHalf, n - kHalf);
  }
  static LIMPID_INLINE void store_f16(V v, uint16_t* p) {
    O::store_f16(v.lo, p);
    O::store_f16(v.hi, p + kHalf);
  }
  static LIMPID_INLINE void store_i8(V v, int8_t* p) {
    O::store_i8(v.lo, p);
    O::store_i8(v.hi, p + kHalf);
  }
  static LIMPID_INLINE V add(V a, V b) { return {O::add(a.lo, b.lo), O::add(a.hi, b.hi)}; }
  static LIMPID_INLINE V sub(V a, V b) { return {O::sub(a.lo, b.lo), O::sub(a.hi, b.hi)}; }
  static LIMPID_INLINE V mul(V a, V b) { return {O::mul(a.lo, b.lo), O::mul(a.hi, b.hi)}; }
  static LIMPID_INLINE V div(V a, V b) { return {O::div(a.lo, b.lo), O::div(a.hi, b.hi)}; }
  static LIMPID_INLINE V fma(V a, V b, V c) {
    return {O::fma(a.lo, b.lo, c.lo), O::fma(a.hi, b.hi, c.hi)};
  }
  static LIMPID_INLINE V max(V a, V b) { return {O::max(a.lo, b.lo), O::max(a.hi, b.hi)}; }
  static LIMPID_INLINE V min(V a, V b) { return {O::min(a.lo, b.lo), O::min(a.hi, b.hi)}; }
  static LIMPID_INLINE V sqrt(V a) { return {O::sqrt(a.lo), O::sqrt(a.hi)}; }
  static LIMPID_INLINE V abs(V a) { return {O::abs(a.lo), O::abs(a.hi)}; }
  static LIMPID_INLINE V copy_sign(V a, V b) {
    return {O::copy_sign(a.lo, b.lo), O::copy_sign(a.hi, b.hi)};
  }
  static LIMPID_INLINE V select_less(V a, V b, V yes, V no) {
    return {O::select_less(a.lo, b.lo, yes.lo, no.lo), O::select_less(a.hi, b.hi, yes.hi, no.hi)};
  }
  template <int kBits>
  static LIMPID_INLINE V shift_left(V a) {
    return {O::template shift_left<kBits>(a.lo), O::template shift_left<kBits>(a.hi)};
  }
  template <int kBits>
  static LIMPID_INLINE V shift_right(V a) {
    return {O::template shift_right<kBits>(a.lo), O::template shift_right<kBits>(a.hi)};
  }
  static LIMPID_INLINE auto reduce_add(V a) { return O::reduce_add(O::add(a.lo, a.hi)); }
  static LIMPID_INLINE auto reduce_max(V a) { return O::reduce_max(O::max(a.lo, a.hi)); }
  static LIMPID_INLINE auto to_int(V a) {
    return Pair<decltype(O::to_int(a.lo))>{O::to_int(a.lo), O::to_int(a.hi)};
  }
  static LIMPID_INLINE auto bits(V a) {
    return Pair<decltype(O::bits(a.lo))>{O::bits(a.lo), O::bits(a.hi)};
  }
  static LIMPID_INLINE auto to_float(V a) {
    return Pair<decltype(O::to_float(a.lo))>{O::to_float(a.lo), O::to_float(a.hi)};
  }
  static LIMPID_INLINE auto as_float(V a) {
    return Pair<decltype(O::as_float(a.lo))>{O::as_float(a.lo), O::as_float(a.hi)};
  }
};

template <class V, bool kDone>
struct Widen {
  using Type = V;
};
template <class V>
struct Widen<V, false> {
  using Type = typename Widen<Pair<V>, Ops<Pair<V>>::kSize == kLanes>::Type;
};

using F32x16 = typename Widen<NativeF32, Ops<NativeF32>::kSize == kLanes>::Type;
using I32x16 = typename Widen<NativeI32, Ops<NativeI32>::kSize == kLanes>::Type;

// ---- what kernels call
// -----------------------------------------------------------------------------------------------

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
LIMPID_INLINE void store_f16(F32x16 v, uint16_t* p) {
  OpsF::store_f16(v, p);
}  // rounds to nearest even
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
LIMPID_INLINE F32x16 fma(F32x16 a, F32x16 b, F32x16 c) {
  return OpsF::fma(a, b, c);
}  // a * b + c, rounded once
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

#if LIMPID_ISA_avx512 || LIMPID_ISA_avx512vnni
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
#if LIMPID_ISA_avx512 || LIMPID_ISA_avx512vnni
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

}  // namespace limpid::LIMPID_ISA
