// What one native register can do, as Ops<V>: Highway's vector of the instruction set, or a single
// number where there is none. Used through lanes-inl.h.
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

}  // namespace limpid::LIMPID_ISA
