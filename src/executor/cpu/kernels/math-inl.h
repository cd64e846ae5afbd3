// Transcendental functions of our own, over sixteen lanes: the same bits on every machine. The
// error against the true value is stated per function and checked by tests/executor/lanes_test.cpp.
#pragma once

#include "executor/cpu/kernels/lanes-inl.h"

namespace limpid::LIMPID_ISA {

// a 2^n, rounded once; n from -150 to 128.
LIMPID_INLINE F32x16 times_power_of_two(F32x16 a, I32x16 n) {
#if defined(__AVX512F__)
  return _mm512_scalef_ps(a, to_float(n));
#else  // 2^n in two factors, of which only the last product rounds
  const I32x16 first = shift_right<1>(n);
  const I32x16 second = sub(n, first);
  const I32x16 bias = broadcast_i32(127);
  return mul(mul(a, float_of_bits(shift_left<23>(add(first, bias)))),
             float_of_bits(shift_left<23>(add(second, bias))));
#endif
}

// e^x within 1.1 ulp, also where it is subnormal. exp(0) == 1 exactly, +inf above 88.73, exactly 0
// below -103.98, NaN for NaN.
//
// x = n ln 2 + r with |r| <= ln 2 / 2; ln 2 is the sum of two floats, and the first fma is exact.
// e^r = 1 + r + r^2 q(r), q of degree 4 interpolated at Chebyshev nodes (relative error 8e-9).
LIMPID_INLINE F32x16 exp(F32x16 x) {
  x = min(broadcast(89.0F), max(broadcast(-104.0F), x));  // NaN stays: it is the second operand
  const I32x16 n = to_int(mul(x, broadcast(0x1.715476p+0F)));
  F32x16 r = fma(to_float(n), broadcast(-0x1.62e43p-1F), x);
  r = fma(to_float(n), broadcast(0x1.05c61p-29F), r);
  F32x16 q = broadcast(0x1.6d10fcp-10F);
  q = fma(q, r, broadcast(0x1.120b62p-7F));
  q = fma(q, r, broadcast(0x1.55551ap-5F));
  q = fma(q, r, broadcast(0x1.5554dep-3F));
  q = fma(q, r, broadcast(0.5F));
  const F32x16 power = add(fma(q, mul(r, r), r), broadcast(1.0F));
  return times_power_of_two(power, n);
}

// x / (1 + e^-x)
LIMPID_INLINE F32x16 silu(F32x16 x) { return div(x, add(broadcast(1.0F), exp(negate(x)))); }

// x/2 (1 + tanh(u)) with u = sqrt(2/pi) (x + 0.044715 x^3), which is x / (1 + e^-2u).
LIMPID_INLINE F32x16 gelu_tanh(F32x16 x) {
  const F32x16 cubic = fma(mul(mul(x, x), broadcast(0.044715F)), x, x);
  return div(x, add(broadcast(1.0F), exp(mul(cubic, broadcast(-1.5957691216F)))));
}

// The upper tail of the normal distribution, erfc(x / sqrt 2) / 2, for 0 <= x <= 15.
// With z = x / sqrt 2: erfc(z) = e^(-z^2) t p(t), t = 1 / (1 + 0.3 z), p of degree 8 interpolated
// at Chebyshev nodes (relative error 3e-8).
LIMPID_INLINE F32x16 normal_tail(F32x16 x) {
  const F32x16 one = broadcast(1.0F);
  const F32x16 t = div(one, fma(x, broadcast(0.2121320344F), one));
  F32x16 p = broadcast(-0.1307708773F);
  p = fma(p, t, broadcast(0.4919342706F));
  p = fma(p, t, broadcast(-0.5261516628F));
  p = fma(p, t, broadcast(0.5645142422F));
  p = fma(p, t, broadcast(-0.1069833625F));
  p = fma(p, t, broadcast(0.2205391691F));
  p = fma(p, t, broadcast(0.1467960222F));
  p = fma(p, t, broadcast(0.1709491199F));
  p = fma(p, t, broadcast(0.1691730577F));
  // What rounding z^2 = x^2 / 2 loses is given back: e^-(s + d) = e^-s (1 - d).
  const F32x16 half = mul(x, broadcast(0.5F));
  const F32x16 minus_square = negate(mul(half, x));
  const F32x16 lost = fma(half, x, minus_square);
  const F32x16 e = exp(minus_square);
  return mul(mul(mul(t, p), broadcast(0.5F)), fma(negate(lost), e, e));
}

// x Phi(x): the exact GELU.
LIMPID_INLINE F32x16 gelu_erf(F32x16 x) {
  const F32x16 tail = normal_tail(min(broadcast(15.0F), abs(x)));  // beyond 15 it is 0
  return mul(x, select_less(x, zero(), tail, sub(broadcast(1.0F), tail)));
}

// NaN stays, being the second operand.
LIMPID_INLINE F32x16 relu(F32x16 x) { return max(zero(), x); }

}  // namespace limpid::LIMPID_ISA
