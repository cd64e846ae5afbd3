// Vectors of the current instruction set, written with the vector types of GCC and clang.
#pragma once

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

inline float root(float x) { return __builtin_sqrtf(x); }
inline double root(double x) { return __builtin_sqrt(x); }

// The compiler turns this loop into one instruction.
template <typename T>
inline Vector<T> root_of(Vector<T> x) {
  Vector<T> roots = {};
  for (int i = 0; i < kLanes<T>; ++i) roots[i] = root(x[i]);
  return roots;
}

// Returns v[lane ^ kBy] in each lane.
template <typename T, int kBy, int... kLane>
inline Vector<T> swap_lanes(Vector<T> v, std::integer_sequence<int, kLane...>) {
  return __builtin_shufflevector(v, v, (kLane ^ kBy)...);
}

// Combines the halves of a vector, then the halves of that half, and so on.
template <typename T, int kBy = kLanes<T> / 2, typename Combine>
inline T combine_lanes(Vector<T> v, const Combine& combine) {
  v = combine(v, swap_lanes<T, kBy>(v, std::make_integer_sequence<int, kLanes<T>>()));
  if constexpr (kBy > 1) {
    return combine_lanes<T, kBy / 2>(v, combine);
  } else {
    return v[0];
  }
}
template <typename T>
inline T sum_of_lanes(Vector<T> v) {
  return combine_lanes<T>(v, [](Vector<T> a, Vector<T> b) { return a + b; });
}
template <typename T>
inline T max_of_lanes(Vector<T> v) {
  return combine_lanes<T>(v, [](Vector<T> a, Vector<T> b) { return a > b ? a : b; });
}

// Half of the lanes of a pair of rows: new row a takes b's lanes without the bit kBy for its own
// lanes with that bit, and new row b (kSecond) takes a's lanes with the bit. Example with kBy = 1:
//   a0 a1 a2 a3 | b0 b1 b2 b3   to   a0 b0 a2 b2 | a1 b1 a3 b3
template <typename T, int kBy, bool kSecond, int... kLane>
inline Vector<T> exchange(Vector<T> a, Vector<T> b, std::integer_sequence<int, kLane...>) {
  constexpr auto kFrom = [](int lane) {
    if ((lane & kBy) != 0) return kLanes<T> + (kSecond ? lane : lane - kBy);
    return kSecond ? lane + kBy : lane;
  };
  return __builtin_shufflevector(a, b, (kFrom(kLane))...);
}

// Transposes a square block: as many rows as a vector has lanes. For each bit, the rows that differ
// only in that bit exchange the lanes that differ in it.
template <typename T, int kBy = kLanes<T> / 2>
inline void turn_block(Vector<T>* rows) {
  constexpr auto kAll = std::make_integer_sequence<int, kLanes<T>>();
#pragma GCC unroll 16
  for (int i = 0; i < kLanes<T>; ++i) {
    if ((i & kBy) != 0) continue;
    const Vector<T> a = rows[i];
    const Vector<T> b = rows[i + kBy];
    rows[i] = exchange<T, kBy, false>(a, b, kAll);
    rows[i + kBy] = exchange<T, kBy, true>(a, b, kAll);
  }
  if constexpr (kBy > 1) turn_block<T, kBy / 2>(rows);
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
