// Vectors of the instruction set in hand, written with the vector types of GCC and clang.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

namespace limpid::LIMPID_ISA {

#if defined(LIMPID_ISA_avx512)
inline constexpr int kVectorBytes = 64;
#elif defined(LIMPID_ISA_avx2)
inline constexpr int kVectorBytes = 32;
#else
inline constexpr int kVectorBytes = 16;
#endif

template <typename T>
struct VectorOf;
template <>
struct VectorOf<float> {
  using Type [[gnu::vector_size(kVectorBytes), gnu::may_alias]] = float;
  using Bits [[gnu::vector_size(kVectorBytes)]] = int32_t;
  static constexpr int kMantissaBits = 23;
  static constexpr int kExponentBias = 127;
  static constexpr int kExpTerms = 8;  // 0.35^8 / 8! < 2^-27
  static constexpr float kLeastExponent = -87.0F;
};
template <>
struct VectorOf<double> {
  using Type [[gnu::vector_size(kVectorBytes), gnu::may_alias]] = double;
  using Bits [[gnu::vector_size(kVectorBytes)]] = int64_t;
  static constexpr int kMantissaBits = 52;
  static constexpr int kExponentBias = 1023;
  static constexpr int kExpTerms = 14;  // 0.35^14 / 14! < 2^-57
  static constexpr double kLeastExponent = -708.0;
};
template <typename T>
using Vector = typename VectorOf<T>::Type;
template <typename T>
inline constexpr int kLanes = kVectorBytes / static_cast<int>(sizeof(T));

template <typename T>
inline Vector<T>& at(T* memory) {
  return *reinterpret_cast<Vector<T>*>(memory);
}
template <typename T>
inline const Vector<T>& at(const T* memory) {
  return *reinterpret_cast<const Vector<T>*>(memory);
}

// Of memory on no boundary.
template <typename T>
inline Vector<T> load(const T* memory) {
  Vector<T> v;
  __builtin_memcpy(&v, memory, sizeof(v));
  return v;
}
template <typename T>
inline void store(T* memory, Vector<T> v) {
  __builtin_memcpy(memory, &v, sizeof(v));
}

// Compiles to one instruction.
template <typename T>
inline Vector<T> root_of(Vector<T> x) {
  Vector<T> root = {};
  for (int i = 0; i < kLanes<T>; ++i) {
    root[i] = sizeof(T) == 4 ? static_cast<T>(__builtin_sqrtf(static_cast<float>(x[i])))
                             : static_cast<T>(__builtin_sqrt(static_cast<double>(x[i])));
  }
  return root;
}

template <typename T, int kBy, int... kLane>
inline Vector<T> rotate(Vector<T> v, std::integer_sequence<int, kLane...>) {
  return __builtin_shufflevector(v, v, ((kLane + kBy) % kLanes<T>)...);
}

template <typename T, int kBy = kLanes<T> / 2>
inline T sum_of_lanes(Vector<T> v) {
  v += rotate<T, kBy>(v, std::make_integer_sequence<int, kLanes<T>>());
  if constexpr (kBy > 1) {
    return sum_of_lanes<T, kBy / 2>(v);
  } else {
    return v[0];
  }
}

template <typename T, int kBy = kLanes<T> / 2>
inline T max_of_lanes(Vector<T> v) {
  const Vector<T> other = rotate<T, kBy>(v, std::make_integer_sequence<int, kLanes<T>>());
  v = v > other ? v : other;
  if constexpr (kBy > 1) {
    return max_of_lanes<T, kBy / 2>(v);
  } else {
    return v[0];
  }
}

// Where the bit `kHalf` of the lane is set, the lane of `b` kHalf lower; else that of `a`.
template <typename T, int kHalf, int... kLane>
inline Vector<T> keep_low(Vector<T> a, Vector<T> b, std::integer_sequence<int, kLane...>) {
  return __builtin_shufflevector(a, b,
                                 ((kLane & kHalf) != 0 ? kLanes<T> + kLane - kHalf : kLane)...);
}
template <typename T, int kHalf, int... kLane>
inline Vector<T> keep_high(Vector<T> a, Vector<T> b, std::integer_sequence<int, kLane...>) {
  return __builtin_shufflevector(a, b,
                                 ((kLane & kHalf) != 0 ? kLanes<T> + kLane : kLane + kHalf)...);
}

// Swaps the off-diagonal quarters of blocks of 2 kHalf, then of their halves, and so on (Eklundh
// 1972).
template <typename T, int kHalf = kLanes<T> / 2>
inline void turn_block(Vector<T>* rows) {
  constexpr auto kAll = std::make_integer_sequence<int, kLanes<T>>();
#pragma GCC unroll 16
  for (int r = 0; r < kLanes<T>; ++r) {
    if ((r & kHalf) != 0) continue;
    const Vector<T> low = keep_low<T, kHalf>(rows[r], rows[r + kHalf], kAll);
    rows[r + kHalf] = keep_high<T, kHalf>(rows[r], rows[r + kHalf], kAll);
    rows[r] = low;
  }
  if constexpr (kHalf > 1) turn_block<T, kHalf / 2>(rows);
}

// to[c][r] = from[r][c]; `rows` and `cols` are whole vectors.
template <typename T>
inline void turn(const T* from, int64_t from_stride, int64_t rows, int64_t cols, T* to,
                 int64_t to_stride) {
  constexpr int kN = kLanes<T>;
  for (int64_t r = 0; r < rows; r += kN) {
    for (int64_t c = 0; c < cols; c += kN) {
      Vector<T> block[kN];
#pragma GCC unroll 16
      for (int i = 0; i < kN; ++i) block[i] = at(from + (r + i) * from_stride + c);
      turn_block<T>(block);
#pragma GCC unroll 16
      for (int i = 0; i < kN; ++i) at(to + (c + i) * to_stride + r) = block[i];
    }
  }
}

// e^x for x <= 0, to about one unit in the last place: 2^n times the Taylor series of the rest,
// which lies within half a logarithm of 2. Below kLeastExponent as at it.
template <typename T>
inline Vector<T> exp_of(Vector<T> x) {
  using Of = VectorOf<T>;
  using Bits = typename Of::Bits;
  constexpr T kLog2e = static_cast<T>(1.4426950408889634074);
  // ln 2 in two parts, the first with few enough digits that its product with n is exact.
  constexpr T kLn2High =
      sizeof(T) == 4 ? static_cast<T>(0x1.62e4p-1) : static_cast<T>(0x1.62e42fefa38p-1);
  constexpr T kLn2Low = sizeof(T) == 4 ? static_cast<T>(1.4286068203094172321e-6)
                                       : static_cast<T>(5.4979230187083711552e-14);
  constexpr T kRound = static_cast<T>(sizeof(T) == 4 ? 0x1.8p23 : 0x1.8p52);
  const Vector<T> least = Vector<T>{} + Of::kLeastExponent;
  x = x > least ? x : least;
  const Vector<T> shifted = x * kLog2e + kRound;  // the whole number lies in the low bits
  const Vector<T> n = shifted - kRound;
  const Vector<T> rest = (x - n * kLn2High) - n * kLn2Low;
  Vector<T> series = Vector<T>{} + T{1};
#pragma GCC unroll 16
  for (int i = Of::kExpTerms - 1; i > 0; --i) series = series * rest * (T{1} / i) + T{1};
  const Bits whole = reinterpret_cast<Bits>(shifted);
  const Bits power = (whole + Of::kExponentBias) << Of::kMantissaBits;
  return series * reinterpret_cast<Vector<T>>(power);
}

}  // namespace limpid::LIMPID_ISA
