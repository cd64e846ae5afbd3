// Vectors of the current instruction set, written with the vector types of GCC and clang.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

namespace limpid::LIMPID_ISA {

#if defined(__AVX512F__)
inline constexpr int kVectorBytes = 64;
#elif defined(__AVX2__)
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

// Loads from an unaligned address.
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

// The compiler turns this loop into one instruction.
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

// A register consists of parts of 16 bytes. Shuffles within the parts are cheaper than across them.
template <typename T>
inline constexpr int kPerPart = 16 / static_cast<int>(sizeof(T));
template <typename T>
inline constexpr int kParts = kLanes<T> / kPerPart<T>;

// Interleaves, in each part, the first (or the second) halves of a and b, in units of kUnit lanes.
template <typename T, int kUnit, bool kSecond, int... kLane>
inline Vector<T> interleave(Vector<T> a, Vector<T> b, std::integer_sequence<int, kLane...>) {
  constexpr auto kFrom = [](int lane) {
    const int unit = lane % kPerPart<T> / kUnit;
    return (unit % 2 == 1 ? kLanes<T> : 0) + lane / kPerPart<T> * kPerPart<T> +
           (kSecond ? kPerPart<T> / 2 : 0) + unit / 2 * kUnit + lane % kUnit;
  };
  return __builtin_shufflevector(a, b, (kFrom(kLane))...);
}

// Takes half of the parts of a, then as many of b: parts kFirst, kFirst + kStep, …
template <typename T, int kFirst, int kStep, int... kLane>
inline Vector<T> parts(Vector<T> a, Vector<T> b, std::integer_sequence<int, kLane...>) {
  constexpr auto kFrom = [](int lane) {
    const int part = lane / kPerPart<T>;
    const int half = kParts<T> / 2;
    return (part >= half ? kLanes<T> : 0) + (kFirst + part % half * kStep) * kPerPart<T> +
           lane % kPerPart<T>;
  };
  return __builtin_shufflevector(a, b, (kFrom(kLane))...);
}

// Transposes the square of kPerPart lanes in each part of kPerPart rows. Example with rows a, b, c,
// d of 4 lanes, as two rounds of interleaving:
//   a0 b0 a1 b1 | a2 b2 a3 b3 | c0 d0 c1 d1 | c2 d2 c3 d3     units of one lane
//   a0 b0 c0 d0 | a1 b1 c1 d1 | a2 b2 c2 d2 | a3 b3 c3 d3     units of two lanes
template <typename T>
inline void turn_within_parts(Vector<T>* rows) {
  constexpr auto kAll = std::make_integer_sequence<int, kLanes<T>>();
  if constexpr (kPerPart<T> == 2) {
    const Vector<T> first = interleave<T, 1, false>(rows[0], rows[1], kAll);
    rows[1] = interleave<T, 1, true>(rows[0], rows[1], kAll);
    rows[0] = first;
  } else {
    static_assert(kPerPart<T> == 4);
    const Vector<T> a = interleave<T, 1, false>(rows[0], rows[1], kAll);
    const Vector<T> b = interleave<T, 1, true>(rows[0], rows[1], kAll);
    const Vector<T> c = interleave<T, 1, false>(rows[2], rows[3], kAll);
    const Vector<T> d = interleave<T, 1, true>(rows[2], rows[3], kAll);
    rows[0] = interleave<T, 2, false>(a, c, kAll);
    rows[1] = interleave<T, 2, true>(a, c, kAll);
    rows[2] = interleave<T, 2, false>(b, d, kAll);
    rows[3] = interleave<T, 2, true>(b, d, kAll);
  }
}

// Transposes the square of parts in rows 0, kPerPart, 2 kPerPart, …
template <typename T>
inline void turn_parts(Vector<T>* rows) {
  constexpr auto kAll = std::make_integer_sequence<int, kLanes<T>>();
  constexpr int kN = kPerPart<T>;
  if constexpr (kParts<T> == 2) {
    const Vector<T> first = parts<T, 0, 1>(rows[0], rows[kN], kAll);
    rows[kN] = parts<T, 1, 1>(rows[0], rows[kN], kAll);
    rows[0] = first;
  } else if constexpr (kParts<T> == 4) {
    const Vector<T> a = parts<T, 0, 1>(rows[0], rows[kN], kAll);
    const Vector<T> b = parts<T, 2, 1>(rows[0], rows[kN], kAll);
    const Vector<T> c = parts<T, 0, 1>(rows[2 * kN], rows[3 * kN], kAll);
    const Vector<T> d = parts<T, 2, 1>(rows[2 * kN], rows[3 * kN], kAll);
    rows[0] = parts<T, 0, 2>(a, c, kAll);
    rows[kN] = parts<T, 1, 2>(a, c, kAll);
    rows[2 * kN] = parts<T, 0, 2>(b, d, kAll);
    rows[3 * kN] = parts<T, 1, 2>(b, d, kAll);
  }
}

// A square block: as many rows as a vector has lanes. First transposes within the parts, then
// exchanges whole parts. Example with 8 lanes: 4 x 4 squares are transposed in each half of each
// group of 4 rows, then the off-diagonal squares are exchanged.
template <typename T>
inline void turn_block(Vector<T>* rows) {
#pragma GCC unroll 4
  for (int i = 0; i < kParts<T>; ++i) turn_within_parts<T>(rows + i * kPerPart<T>);
#pragma GCC unroll 4
  for (int i = 0; i < kPerPart<T>; ++i) turn_parts<T>(rows + i);
}

// to[c][r] = from[r][c] for a square of whole vectors.
template <typename T>
inline void turn_square(const T* from, int64_t from_stride, T* to, int64_t to_stride) {
  Vector<T> block[kLanes<T>];
#pragma GCC unroll 16
  for (int i = 0; i < kLanes<T>; ++i) block[i] = at(from + i * from_stride);
  turn_block<T>(block);
#pragma GCC unroll 16
  for (int i = 0; i < kLanes<T>; ++i) at(to + i * to_stride) = block[i];
}

// Like above for a matrix of `rows` by `cols`, both multiples of the vector length.
template <typename T>
inline void turn(const T* from, int64_t from_stride, int64_t rows, int64_t cols, T* to,
                 int64_t to_stride) {
  for (int64_t r = 0; r < rows; r += kLanes<T>) {
    for (int64_t c = 0; c < cols; c += kLanes<T>) {
      turn_square<T>(from + r * from_stride + c, from_stride, to + c * to_stride + r, to_stride);
    }
  }
}

// 1 / n!, the coefficients of the Taylor series of e^x.
template <typename T>
constexpr T one_over_factorial(int n) {
  double factorial = 1;
  for (int i = 2; i <= n; ++i) factorial *= i;
  return static_cast<T>(1 / factorial);
}

// Returns e^x for x <= 0, accurate to about one unit in the last place. Writes x = n ln 2 + r with
// |r| <= ln 2 / 2, so that e^x = 2^n e^r; 2^n only changes the exponent bits, and e^r is a short
// Taylor series. x below kLeastExponent gives the value for kLeastExponent.
template <typename T>
inline Vector<T> exp_of(Vector<T> x) {
  using Of = VectorOf<T>;
  using Bits = typename Of::Bits;
  constexpr T kLog2e = static_cast<T>(1.4426950408889634074);
  // ln 2 as a sum of two numbers. The first has so few digits that its product with n is exact.
  constexpr T kLn2High =
      sizeof(T) == 4 ? static_cast<T>(0x1.62e4p-1) : static_cast<T>(0x1.62e42fefa38p-1);
  constexpr T kLn2Low = sizeof(T) == 4 ? static_cast<T>(1.4286068203094172321e-6)
                                       : static_cast<T>(5.4979230187083711552e-14);
  constexpr T kRound = static_cast<T>(sizeof(T) == 4 ? 0x1.8p23 : 0x1.8p52);
  const Vector<T> least = Vector<T>{} + Of::kLeastExponent;
  x = x > least ? x : least;
  const Vector<T> shifted = x * kLog2e + kRound;  // the integer n is in the low bits
  const Vector<T> n = shifted - kRound;
  const Vector<T> rest = (x - n * kLn2High) - n * kLn2Low;
  Vector<T> series = Vector<T>{} + one_over_factorial<T>(Of::kExpTerms - 1);
#pragma GCC unroll 16
  for (int i = Of::kExpTerms - 2; i >= 0; --i) series = series * rest + one_over_factorial<T>(i);
  const Bits whole = reinterpret_cast<Bits>(shifted);
  const Bits power = (whole + Of::kExponentBias) << Of::kMantissaBits;
  return series * reinterpret_cast<Vector<T>>(power);
}

}  // namespace limpid::LIMPID_ISA
