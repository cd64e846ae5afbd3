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
#if defined(__clang__)
#define LIMPID_UNROLL _Pragma("clang loop unroll(full)")
#else
#define LIMPID_UNROLL _Pragma("GCC unroll 16")
#endif

namespace limpid::LIMPID_ISA {

// ---- native registers: kRows lanes of 32 bits, or 4 kRows bytes
// -------------------------------------

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
LIMPID_INLINE Floats add_floats(Floats a, Floats b) { return _mm512_add_ps(a, b); }
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
LIMPID_INLINE Floats add_floats(Floats a, Floats b) { return _mm256_add_ps(a, b); }
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
LIMPID_INLINE Floats add_floats(const Floats& a, const Floats& b) {
  return zip_lanes(a, b, [](float x, float y) { return x + y; });
}
LIMPID_INLINE Floats fused(const Floats& a, const Floats& b, const Floats& c) {
  Floats out;
  for (int i = 0; i < kRows; ++i) out.v[i] = __builtin_fmaf(a.v[i], b.v[i], c.v[i]);
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

// ---- codes ready to be multiplied
// -------------------------------------------------------------------

#if LIMPID_PLAIN_ROWS

template <int kMaxCode>
struct Codes {
  Bytes bytes;
};
template <int kMaxCode>
LIMPID_INLINE Codes<kMaxCode> ready(const Bytes& bytes) {
  return {bytes};
}

template <int kShift, int kMask>
LIMPID_INLINE Bytes bits_of_bytes(const Bytes& a) {
  return map_lanes<Bytes>(a, [](uint8_t x) { return static_cast<uint8_t>((x >> kShift) & kMask); });
}
// low + 16 * high, for nibbles and pairs of bits.
LIMPID_INLINE Bytes join_bits(const Bytes& low, const Bytes& high) {
  return zip_lanes(low, high,
                   [](uint8_t x, uint8_t y) { return static_cast<uint8_t>(x | (y << 4)); });
}

// start[r] + sum over kGroups K groups and i < 4 of codes[g].bytes[4r + i] * x[4g + i].
template <int kGroups, int kMaxCode>
LIMPID_INLINE Ints dot_groups(Ints start, const Codes<kMaxCode>* codes, const int8_t* x) {
  for (int g = 0; g < kGroups; ++g) {
    for (int r = 0; r < kRows; ++r) {
      const uint8_t* c = codes[g].bytes.v + 4 * r;
      start.v[r] +=
          c[0] * x[4 * g] + c[1] * x[4 * g + 1] + c[2] * x[4 * g + 2] + c[3] * x[4 * g + 3];
    }
  }
  return start;
}

#else

// Bits kShift .. of every byte, masked.
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

#if defined(__AVX512VNNI__)

template <int kMaxCode>
struct Codes {
  Bytes bytes;
};
template <int kMaxCode>
LIMPID_INLINE Codes<kMaxCode> ready(Bytes bytes) {
  return {bytes};
}

template <int kGroups, int kMaxCode>
LIMPID_INLINE Ints dot_groups(Ints start, const Codes<kMaxCode>* codes, const int8_t* x) {
  LIMPID_UNROLL
  for (int g = 0; g < kGroups; ++g) {
    start = _mm512_dpbusd_epi32(start, codes[g].bytes, set_ints(load_four(x + 4 * g)));
  }
  return start;
}

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

template <int kGroups, int kMaxCode>
LIMPID_INLINE Ints dot_groups(Ints start, const Codes<kMaxCode>* codes, const int8_t* x) {
  if constexpr (kMaxCode > 63) {
    static_assert(kGroups * 2 * 15 * 128 <= 32767);
    const Bytes first = set_ints(load_four(x));
    Bytes low = multiply_add_bytes(codes[0].low, first);
    Bytes high = multiply_add_bytes(codes[0].high, first);
    LIMPID_UNROLL
    for (int g = 1; g < kGroups; ++g) {
      const Bytes four = set_ints(load_four(x + 4 * g));
      low = add_16(low, multiply_add_bytes(codes[g].low, four));
      high = add_16(high, multiply_add_bytes(codes[g].high, four));
    }
    return add_ints(add_ints(start, multiply_add_16(low, set_16(1))),
                    multiply_add_16(high, set_16(16)));
  } else {
    constexpr int kSafe = 32767 / (2 * kMaxCode * 128);  // products of pairs that fit into 16 bits
    constexpr int kRun = kSafe < kGroups ? kSafe : kGroups;
    static_assert(kGroups % kRun == 0);
    LIMPID_UNROLL
    for (int g = 0; g < kGroups; g += kRun) {
      Bytes sum = multiply_add_bytes(codes[g].bytes, set_ints(load_four(x + 4 * g)));
      LIMPID_UNROLL
      for (int i = g + 1; i < g + kRun; ++i) {
        sum = add_16(sum, multiply_add_bytes(codes[i].bytes, set_ints(load_four(x + 4 * i))));
      }
      start = add_ints(start, multiply_add_16(sum, set_16(1)));
    }
    return start;
  }
}

#endif
#endif

}  // namespace limpid::LIMPID_ISA
