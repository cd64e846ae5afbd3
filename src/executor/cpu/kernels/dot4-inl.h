// The integer product that quantised layers are made of: four u8 x s8 products summed into an i32,
// for as many rows as one native register has 32-bit lanes. Exact on every instruction set:
//  - AVX-512 VNNI has it as an instruction (vpdpbusd, which does not saturate).
//  - Without it, vpmaddubsw adds two products in 16 bits *and saturates*: 255 * 127 * 2 > 32,767.
//  So
//    codes above 63 are split into two nibbles, whose products stay small (15 * 128 * 2 = 3,840;
//    eight of them fit into 16 bits), and only then widened.
//  - Elsewhere plain loops.
// A row group is 16 rows: one register of AVX-512, two of AVX2 ("parts").
#pragma once

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
#endif

#if !defined(LIMPID_INLINE)
#define LIMPID_INLINE inline __attribute__((always_inline))
#endif
#if !defined(__AVX2__)  // plain loops are for reading, and compile slowly when unrolled
#define LIMPID_UNROLL
#elif defined(__clang__)
#define LIMPID_UNROLL _Pragma("clang loop unroll(full)")
#else
#define LIMPID_UNROLL _Pragma("GCC unroll 16")
#endif

namespace limpid::LIMPID_ISA {

// ---- native registers: kRows lanes of 32 bits, or 4 kRows bytes ---------------------------------

#if defined(__AVX512BW__)

inline constexpr int kRows = 16;
using Bytes = __m512i;
using Ints = __m512i;
using Floats = __m512;

LIMPID_INLINE Bytes load_bytes(const uint8_t* p) { return _mm512_loadu_si512(p); }
LIMPID_INLINE Bytes and_bytes(Bytes a, Bytes b) { return _mm512_and_si512(a, b); }
LIMPID_INLINE Bytes or_bytes(Bytes a, Bytes b) { return _mm512_or_si512(a, b); }
LIMPID_INLINE Bytes set_bytes(char x) { return _mm512_set1_epi8(x); }
template <int kBits>
LIMPID_INLINE Bytes shift_right_16(Bytes a) {
  return _mm512_srli_epi16(a, kBits);
}
template <int kBits>
LIMPID_INLINE Bytes shift_left_16(Bytes a) {
  return _mm512_slli_epi16(a, kBits);
}
LIMPID_INLINE Bytes multiply_add_bytes(Bytes u, Bytes s) { return _mm512_maddubs_epi16(u, s); }
LIMPID_INLINE Bytes add_16(Bytes a, Bytes b) { return _mm512_add_epi16(a, b); }
LIMPID_INLINE Ints multiply_add_16(Bytes a, Bytes b) { return _mm512_madd_epi16(a, b); }
LIMPID_INLINE Bytes set_16(int16_t x) { return _mm512_set1_epi16(x); }
LIMPID_INLINE Ints add_ints(Ints a, Ints b) { return _mm512_add_epi32(a, b); }
LIMPID_INLINE Ints set_ints(int32_t x) { return _mm512_set1_epi32(x); }
LIMPID_INLINE Floats set_floats(float x) { return _mm512_set1_ps(x); }
LIMPID_INLINE Floats to_floats(Ints a) { return _mm512_cvtepi32_ps(a); }
LIMPID_INLINE Floats multiply(Floats a, Floats b) { return _mm512_mul_ps(a, b); }
LIMPID_INLINE Floats fused(Floats a, Floats b, Floats c) { return _mm512_fmadd_ps(a, b, c); }
LIMPID_INLINE Floats fused_minus(Floats a, Floats b, Floats c) { return _mm512_fnmadd_ps(a, b, c); }
LIMPID_INLINE Floats load_floats(const float* p) { return _mm512_loadu_ps(p); }
LIMPID_INLINE void store_floats(float* p, Floats v) { _mm512_storeu_ps(p, v); }
LIMPID_INLINE Ints load_ints(const int32_t* p) { return _mm512_loadu_si512(p); }
LIMPID_INLINE void store_ints(int32_t* p, Ints v) { _mm512_storeu_si512(p, v); }
LIMPID_INLINE Floats load_halves(const uint8_t* p) {
  return _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
}
LIMPID_INLINE Floats load_u8_floats(const uint8_t* p) {
  return to_floats(_mm512_cvtepu8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p))));
}
LIMPID_INLINE Floats load_i8_floats(const uint8_t* p) {
  return to_floats(_mm512_cvtepi8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p))));
}
LIMPID_INLINE void prefetch(const uint8_t* p) { _mm_prefetch(p, _MM_HINT_T0); }

#elif defined(__AVX2__)

inline constexpr int kRows = 8;
using Bytes = __m256i;
using Ints = __m256i;
using Floats = __m256;

LIMPID_INLINE Bytes load_bytes(const uint8_t* p) {
  return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
}
LIMPID_INLINE Bytes and_bytes(Bytes a, Bytes b) { return _mm256_and_si256(a, b); }
LIMPID_INLINE Bytes or_bytes(Bytes a, Bytes b) { return _mm256_or_si256(a, b); }
LIMPID_INLINE Bytes set_bytes(char x) { return _mm256_set1_epi8(x); }
template <int kBits>
LIMPID_INLINE Bytes shift_right_16(Bytes a) {
  return _mm256_srli_epi16(a, kBits);
}
template <int kBits>
LIMPID_INLINE Bytes shift_left_16(Bytes a) {
  return _mm256_slli_epi16(a, kBits);
}
LIMPID_INLINE Bytes multiply_add_bytes(Bytes u, Bytes s) { return _mm256_maddubs_epi16(u, s); }
LIMPID_INLINE Bytes add_16(Bytes a, Bytes b) { return _mm256_add_epi16(a, b); }
LIMPID_INLINE Ints multiply_add_16(Bytes a, Bytes b) { return _mm256_madd_epi16(a, b); }
LIMPID_INLINE Bytes set_16(int16_t x) { return _mm256_set1_epi16(x); }
LIMPID_INLINE Ints add_ints(Ints a, Ints b) { return _mm256_add_epi32(a, b); }
LIMPID_INLINE Ints set_ints(int32_t x) { return _mm256_set1_epi32(x); }
LIMPID_INLINE Floats set_floats(float x) { return _mm256_set1_ps(x); }
LIMPID_INLINE Floats to_floats(Ints a) { return _mm256_cvtepi32_ps(a); }
LIMPID_INLINE Floats multiply(Floats a, Floats b) { return _mm256_mul_ps(a, b); }
LIMPID_INLINE Floats fused(Floats a, Floats b, Floats c) { return _mm256_fmadd_ps(a, b, c); }
LIMPID_INLINE Floats fused_minus(Floats a, Floats b, Floats c) { return _mm256_fnmadd_ps(a, b, c); }
LIMPID_INLINE Floats load_floats(const float* p) { return _mm256_loadu_ps(p); }
LIMPID_INLINE void store_floats(float* p, Floats v) { _mm256_storeu_ps(p, v); }
LIMPID_INLINE Ints load_ints(const int32_t* p) {
  return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
}
LIMPID_INLINE void store_ints(int32_t* p, Ints v) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), v);
}
LIMPID_INLINE Floats load_halves(const uint8_t* p) {
  return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
}
LIMPID_INLINE Floats load_u8_floats(const uint8_t* p) {
  return to_floats(_mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(p))));
}
LIMPID_INLINE Floats load_i8_floats(const uint8_t* p) {
  return to_floats(_mm256_cvtepi8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(p))));
}
LIMPID_INLINE void prefetch(const uint8_t* p) { _mm_prefetch(p, _MM_HINT_T0); }

#else

#define LIMPID_PLAIN_ROWS 1

inline constexpr int kRows = 16;
struct Bytes {
  uint8_t v[4 * kRows];
};
struct Ints {
  int32_t v[kRows];
};
struct Floats {
  float v[kRows];
};

template <class To, class From, class Function>
LIMPID_INLINE To map_lanes(const From& a, Function function) {
  To out;
  for (int i = 0; i < static_cast<int>(sizeof(a.v) / sizeof(a.v[0])); ++i)
    out.v[i] = function(a.v[i]);
  return out;
}
template <class T, class Function>
LIMPID_INLINE T zip_lanes(const T& a, const T& b, Function function) {
  T out;
  for (int i = 0; i < static_cast<int>(sizeof(a.v) / sizeof(a.v[0])); ++i) {
    out.v[i] = function(a.v[i], b.v[i]);
  }
  return out;
}

LIMPID_INLINE Bytes load_bytes(const uint8_t* p) {
  Bytes out;
  __builtin_memcpy(&out, p, sizeof(out));
  return out;
}
LIMPID_INLINE Ints set_ints(int32_t x) {
  return map_lanes<Ints>(Ints{}, [x](int32_t) { return x; });
}
LIMPID_INLINE Floats set_floats(float x) {
  return map_lanes<Floats>(Floats{}, [x](float) { return x; });
}
LIMPID_INLINE Floats to_floats(const Ints& a) {
  return map_lanes<Floats>(a, [](int32_t x) { return static_cast<float>(x); });
}
LIMPID_INLINE Floats multiply(const Floats& a, const Floats& b) {
  return zip_lanes(a, b, [](float x, float y) { return x * y; });
}
LIMPID_INLINE Floats fused(const Floats& a, const Floats& b, const Floats& c) {
  Floats out;
  for (int i = 0; i < kRows; ++i) out.v[i] = __builtin_fmaf(a.v[i], b.v[i], c.v[i]);
  return out;
}
LIMPID_INLINE Floats fused_minus(const Floats& a, const Floats& b, const Floats& c) {
  Floats out;
  for (int i = 0; i < kRows; ++i) out.v[i] = __builtin_fmaf(-a.v[i], b.v[i], c.v[i]);
  return out;
}
LIMPID_INLINE Floats load_floats(const float* p) {
  Floats out;
  __builtin_memcpy(&out, p, sizeof(out));
  return out;
}
LIMPID_INLINE void store_floats(float* p, const Floats& v) { __builtin_memcpy(p, &v, sizeof(v)); }
LIMPID_INLINE Ints load_ints(const int32_t* p) {
  Ints out;
  __builtin_memcpy(&out, p, sizeof(out));
  return out;
}
LIMPID_INLINE void store_ints(int32_t* p, const Ints& v) { __builtin_memcpy(p, &v, sizeof(v)); }
// A half read as f32 with 0x70 less in its exponent; the product is exact, for subnormals too.
LIMPID_INLINE float half_to_float(uint16_t half) {
  const uint32_t sign = static_cast<uint32_t>(half & 0x8000U) << 16;
  const uint32_t magnitude = half & 0x7fffU;
  if (magnitude >= 0x7c00U) {
    const uint32_t quiet = magnitude > 0x7c00U ? 0x400000U : 0U;
    return __builtin_bit_cast(float, sign | 0x7f800000U | ((magnitude & 0x3ffU) << 13) | quiet);
  }
  const float scaled = __builtin_bit_cast(float, magnitude << 13) * 0x1p112F;
  return __builtin_bit_cast(float, __builtin_bit_cast(uint32_t, scaled) | sign);
}
LIMPID_INLINE Floats load_halves(const uint8_t* p) {
  Floats out;
  for (int i = 0; i < kRows; ++i) {
    out.v[i] = half_to_float(static_cast<uint16_t>(p[2 * i] | (p[2 * i + 1] << 8)));
  }
  return out;
}
LIMPID_INLINE Floats load_u8_floats(const uint8_t* p) {
  Floats out;
  for (int i = 0; i < kRows; ++i) out.v[i] = static_cast<float>(p[i]);
  return out;
}
LIMPID_INLINE Floats load_i8_floats(const uint8_t* p) {
  Floats out;
  for (int i = 0; i < kRows; ++i) out.v[i] = static_cast<float>(static_cast<int8_t>(p[i]));
  return out;
}
LIMPID_INLINE void prefetch(const uint8_t*) {}

#endif

inline constexpr int kParts = 16 / kRows;  // registers that hold a row group
inline constexpr int kPartBytes = 4 * kRows;

// Four activations, the same for every row.
LIMPID_INLINE int32_t load_four(const int8_t* x) {
  int32_t four = 0;
  __builtin_memcpy(&four, x, 4);
  return four;
}

// ---- bits of codes ------------------------------------------------------------------------------

#if LIMPID_PLAIN_ROWS

// Bits kShift .. of every byte, masked.
template <int kShift, int kMask>
LIMPID_INLINE Bytes bits_of_bytes(const Bytes& a) {
  return map_lanes<Bytes>(a, [](uint8_t x) { return static_cast<uint8_t>((x >> kShift) & kMask); });
}
// low + 16 * high, for nibbles and pairs of bits.
LIMPID_INLINE Bytes join_bits(const Bytes& low, const Bytes& high) {
  return zip_lanes(low, high,
                   [](uint8_t x, uint8_t y) { return static_cast<uint8_t>(x | (y << 4)); });
}

#else

template <int kShift, int kMask>
LIMPID_INLINE Bytes bits_of_bytes(Bytes a) {
  if constexpr (kShift == 0) {
    return and_bytes(a, set_bytes(kMask));
  } else {
    return and_bytes(shift_right_16<kShift>(a), set_bytes(kMask));
  }
}
LIMPID_INLINE Bytes join_bits(Bytes low, Bytes high) {
  return or_bytes(low, shift_left_16<4>(high));
}

#endif

// ---- the product --------------------------------------------------------------------------------

// Codes<kMaxCode> holds a K group of codes in the form that is multiplied; ready() makes it. A
// DotSum<kMaxCode> adds up to 8 K groups for one token:
//   begin(start); add(0, codes, x); add(1, codes, x + 4); …; end()
//   -> start + sum over g, i of codes[g].byte[4r + i] * x[4g + i], for each row r.

#if LIMPID_PLAIN_ROWS || defined(__AVX512VNNI__)

template <int kMaxCode>
struct Codes {
  Bytes bytes;
};
template <int kMaxCode>
LIMPID_INLINE Codes<kMaxCode> ready(const Bytes& bytes) {
  return {bytes};
}

template <int kMaxCode>
struct DotSum {
  Ints sum;

  LIMPID_INLINE void begin(int32_t start) { sum = set_ints(start); }
  LIMPID_INLINE void add(int, const Codes<kMaxCode>& codes, const int8_t* x) {
#if LIMPID_PLAIN_ROWS
    for (int r = 0; r < kRows; ++r) {
      const uint8_t* c = codes.bytes.v + 4 * r;
      sum.v[r] += c[0] * x[0] + c[1] * x[1] + c[2] * x[2] + c[3] * x[3];
    }
#else
    sum = _mm512_dpbusd_epi32(sum, codes.bytes, set_ints(load_four(x)));
#endif
  }
  LIMPID_INLINE Ints end() const { return sum; }
};

#else

template <int kMaxCode, bool kSplit = (kMaxCode > 63)>
struct Codes {
  Bytes bytes;
};
template <int kMaxCode>
struct Codes<kMaxCode, true> {
  Bytes low, high;
};

template <int kMaxCode>
LIMPID_INLINE Codes<kMaxCode> ready(Bytes bytes) {
  if constexpr (kMaxCode > 63) {
    return {bits_of_bytes<0, 15>(bytes), bits_of_bytes<4, 15>(bytes)};
  } else {
    return {bytes};
  }
}

// Fixes a sum in its register, where it is. GCC puts off all the additions of a block to its end,
// and for this spills every product to memory.
LIMPID_INLINE void settle([[maybe_unused]] Bytes& sum) {
#if !defined(__AVX512BW__)
  asm volatile("" : "+x"(sum));
#endif
}

template <int kMaxCode, bool kSplit = (kMaxCode > 63)>
struct DotSum {
  // Products of pairs that fit into 16 bits.
  static constexpr int kRun = 32767 / (2 * kMaxCode * 128);
  Ints sum;
  Bytes run;

  LIMPID_INLINE void begin(int32_t start) { sum = set_ints(start); }
  LIMPID_INLINE void add(int group, const Codes<kMaxCode>& codes, const int8_t* x) {
    const Bytes products = multiply_add_bytes(codes.bytes, set_ints(load_four(x)));
    if (group > 0 && group % kRun == 0) sum = end();
    run = group % kRun == 0 ? products : add_16(run, products);
    settle(run);
  }
  LIMPID_INLINE Ints end() const { return add_ints(sum, multiply_add_16(run, set_16(1))); }
};

template <int kMaxCode>
struct DotSum<kMaxCode, true> {
  static_assert(8 * 2 * 15 * 128 <= 32767);
  Ints sum;
  Bytes low, high;

  LIMPID_INLINE void begin(int32_t start) { sum = set_ints(start); }
  LIMPID_INLINE void add(int group, const Codes<kMaxCode>& codes, const int8_t* x) {
    const Bytes four = set_ints(load_four(x));
    const Bytes low_products = multiply_add_bytes(codes.low, four);
    const Bytes high_products = multiply_add_bytes(codes.high, four);
    low = group == 0 ? low_products : add_16(low, low_products);
    high = group == 0 ? high_products : add_16(high, high_products);
    settle(low);
    settle(high);
  }
  LIMPID_INLINE Ints end() const {
    return add_ints(add_ints(sum, multiply_add_16(low, set_16(1))),
                    multiply_add_16(high, set_16(16)));
  }
};

#endif

}  // namespace limpid::LIMPID_ISA
