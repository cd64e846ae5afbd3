// Sixteen lanes of native registers: pairs of pairs until there are sixteen. Used through
// lanes-inl.h.
#pragma once

#include "executor/cpu/kernels/lanes_native-inl.h"

namespace limpid::LIMPID_ISA {

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

}  // namespace limpid::LIMPID_ISA
