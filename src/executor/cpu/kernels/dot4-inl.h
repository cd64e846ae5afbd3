// The integer product that quantised layers are made of: four u8 x s8 products summed into an i32,
// for as many rows as one native register has 32-bit lanes. Exact on every instruction set:
//  - VNNI has it as an instruction (vpdpbusd, which does not saturate), for registers of AVX-512,
//    and on Intel's desktop CPUs since 2021, which lack those, for registers of AVX2 (AVX-VNNI).
//  - Without it, vpmaddubsw adds two products in 16 bits *and saturates*: 255 * 127 * 2 > 32,767.
//    So codes above 63 are split into two nibbles, whose products stay small (15 * 128 * 2 = 3,840;
//    eight of them fit into 16 bits), and only then widened.
//  - Elsewhere plain loops.
// A row group is 16 rows: one register of AVX-512, two of AVX2, four elsewhere ("parts").
#pragma once

#include "executor/cpu/kernels/registers-inl.h"
#include "executor/cpu/quantized_linear.h"

#if !defined(__AVX2__)  // plain loops are for reading, and compile slowly when unrolled
#define LIMPID_UNROLL
#elif defined(__clang__)
#define LIMPID_UNROLL _Pragma("clang loop unroll(full)")
#else
#define LIMPID_UNROLL _Pragma("GCC unroll 16")
#endif

namespace limpid::LIMPID_ISA {

// ---- registers: kRows lanes of 32 bits, or 4 kRows bytes ----------------------------------------

inline constexpr int kRows = kNative;
inline constexpr int kParts = 16 / kRows;  // registers that hold a row group
inline constexpr int kPartBytes = 4 * kRows;

using Floats = NativeF32;
using Ints = NativeI32;
using Bytes = uint8_t __attribute__((vector_size(kPartBytes)));
using Words = uint16_t __attribute__((vector_size(kPartBytes)));

LIMPID_INLINE Bytes load_bytes(const uint8_t* p) { return load_native<Bytes>(p); }
LIMPID_INLINE void store_floats(float* p, Floats v) { store_native(v, p); }
LIMPID_INLINE void store_ints(int32_t* p, Ints v) { store_native(v, p); }
LIMPID_INLINE Floats load_halves(const uint8_t* p) {
  return native::from_halves(load_native<NativeU16>(p));
}
// Bytes as numbers.
template <bool kSigned>
LIMPID_INLINE Floats load_byte_floats(const uint8_t* p) {
#if defined(__AVX512BW__)
  const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
  const __m512i wide = kSigned ? _mm512_cvtepi8_epi32(bytes) : _mm512_cvtepu8_epi32(bytes);
  return __builtin_convertvector(Ints(wide), Floats);
#elif defined(__AVX2__)
  const __m128i bytes = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(p));
  const __m256i wide = kSigned ? _mm256_cvtepi8_epi32(bytes) : _mm256_cvtepu8_epi32(bytes);
  return __builtin_convertvector(Ints(wide), Floats);
#else
  Floats result{};
  for (int r = 0; r < kRows; ++r)
    result[r] = static_cast<float>(kSigned ? static_cast<int8_t>(p[r]) : p[r]);
  return result;
#endif
}
LIMPID_INLINE Floats set_floats(float x) { return x - Floats{}; }
LIMPID_INLINE Ints set_ints(int32_t x) { return x - Ints{}; }

// Four activations, the same for every row.
LIMPID_INLINE int32_t load_four(const int8_t* x) {
  int32_t four = 0;
  __builtin_memcpy(&four, x, 4);
  return four;
}

// ---- bits of codes ------------------------------------------------------------------------------

// kBits bits of every byte, from bit `shift` on.
template <int kBits>
LIMPID_INLINE Bytes bits_of_bytes(Bytes a, int shift) {
  return Bytes(Words(a) >> shift) & static_cast<uint8_t>((1 << kBits) - 1);
}
// low + 2^shift * high, where no bits meet.
LIMPID_INLINE Bytes join_bits(Bytes low, Bytes high, int shift) {
  return low | Bytes(Words(high) << shift);
}
// table[c] for every byte c < 16.
LIMPID_INLINE Bytes look_up(const uint8_t (&table)[16], Bytes codes) {
#if defined(__AVX512BW__)
  const __m128i entries = _mm_loadu_si128(reinterpret_cast<const __m128i*>(table));
  return Bytes(_mm512_shuffle_epi8(_mm512_broadcast_i32x4(entries), __m512i(codes)));
#elif defined(__AVX2__)
  const __m128i entries = _mm_loadu_si128(reinterpret_cast<const __m128i*>(table));
  return Bytes(_mm256_shuffle_epi8(_mm256_broadcastsi128_si256(entries), __m256i(codes)));
#elif LIMPID_ISA_neon
  return Bytes(vqtbl1q_u8(vld1q_u8(table), uint8x16_t(codes)));
#else
  Bytes found{};
  for (int i = 0; i < kPartBytes; ++i) found[i] = table[codes[i]];
  return found;
#endif
}

// ---- the product --------------------------------------------------------------------------------

// Codes<kMaxCode> holds a K group of codes in the form that is multiplied; ready() makes it, and
// ready_levels() that of their levels (kLevels). A DotSum<kMaxCode> adds up to 8 K groups for one
// token:
//   begin(start); add(0, codes, x); add(1, codes, x + 4); …; end()
//   -> start + sum over g, i of codes[g].byte[4r + i] * x[4g + i], for each row r.

#if defined(__AVX512VNNI__) || defined(__AVXVNNI__)
inline constexpr bool kHasVnni = true;
#else
inline constexpr bool kHasVnni = false;
#endif

#if defined(__AVX512VNNI__) || defined(__AVXVNNI__) || !defined(__AVX2__)

template <int kMaxCode>
struct Codes {
  Bytes bytes;
};
template <int kMaxCode>
LIMPID_INLINE Codes<kMaxCode> ready(Bytes bytes) {
  return {bytes};
}
LIMPID_INLINE Codes<255> ready_levels(Bytes codes) { return {look_up(kLevels, codes)}; }

template <int kMaxCode>
struct DotSum {
  Ints sum;

  LIMPID_INLINE void begin(int32_t start) { sum = set_ints(start); }
  LIMPID_INLINE void add(int, const Codes<kMaxCode>& codes, const int8_t* x) {
#if defined(__AVX512VNNI__)
    sum = Ints(
        _mm512_dpbusd_epi32(__m512i(sum), __m512i(codes.bytes), __m512i(set_ints(load_four(x)))));
#elif defined(__AVXVNNI__)
    sum = Ints(_mm256_dpbusd_avx_epi32(__m256i(sum), __m256i(codes.bytes),
                                       __m256i(set_ints(load_four(x)))));
#else
    const Bytes& c = codes.bytes;
    for (int r = 0; r < kRows; ++r) {
      sum[r] += c[4 * r] * x[0] + c[4 * r + 1] * x[1] + c[4 * r + 2] * x[2] + c[4 * r + 3] * x[3];
    }
#endif
  }
  LIMPID_INLINE Ints end() const { return sum; }
};

#else

// Products u[2i] s[2i] + u[2i + 1] s[2i + 1] in 16 bits, and sums a[2i] + a[2i + 1] times `factor`
// in 32.
#if defined(__AVX512BW__)
LIMPID_INLINE Words multiply_pairs(Bytes u, Ints s) {
  return Words(_mm512_maddubs_epi16(__m512i(u), __m512i(s)));
}
LIMPID_INLINE Ints add_pairs(Words a, int16_t factor) {
  return Ints(_mm512_madd_epi16(__m512i(a), _mm512_set1_epi16(factor)));
}
#else
LIMPID_INLINE Words multiply_pairs(Bytes u, Ints s) {
  return Words(_mm256_maddubs_epi16(__m256i(u), __m256i(s)));
}
LIMPID_INLINE Ints add_pairs(Words a, int16_t factor) {
  return Ints(_mm256_madd_epi16(__m256i(a), _mm256_set1_epi16(factor)));
}
#endif

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
    return {bits_of_bytes<4>(bytes, 0), bits_of_bytes<4>(bytes, 4)};
  } else {
    return {bytes};
  }
}
LIMPID_INLINE Codes<255> ready_levels(Bytes codes) {
  return {look_up(kLowDigits, codes), look_up(kHighDigits, codes)};
}

// Fixes a sum in its register, where it is. GCC puts off all the additions of a block to its end,
// and for this spills every product to memory.
LIMPID_INLINE void settle([[maybe_unused]] Words& sum) {
#if !defined(__AVX512BW__)
  asm volatile("" : "+x"(sum));
#endif
}

template <int kMaxCode, bool kSplit = (kMaxCode > 63)>
struct DotSum {
  // Products of pairs that fit into 16 bits.
  static constexpr int kRun = 32767 / (2 * kMaxCode * 128);
  Ints sum;
  Words run;

  LIMPID_INLINE void begin(int32_t start) { sum = set_ints(start); }
  LIMPID_INLINE void add(int group, const Codes<kMaxCode>& codes, const int8_t* x) {
    const Words products = multiply_pairs(codes.bytes, set_ints(load_four(x)));
    if (group > 0 && group % kRun == 0) sum = end();
    run = group % kRun == 0 ? products : run + products;
    settle(run);
  }
  LIMPID_INLINE Ints end() const { return sum + add_pairs(run, 1); }
};

template <int kMaxCode>
struct DotSum<kMaxCode, true> {
  static_assert(8 * 2 * 15 * 128 <= 32767);
  Ints sum;
  Words low, high;

  LIMPID_INLINE void begin(int32_t start) { sum = set_ints(start); }
  LIMPID_INLINE void add(int group, const Codes<kMaxCode>& codes, const int8_t* x) {
    const Ints four = set_ints(load_four(x));
    const Words low_products = multiply_pairs(codes.low, four);
    const Words high_products = multiply_pairs(codes.high, four);
    low = group == 0 ? low_products : low + low_products;
    high = group == 0 ? high_products : high + high_products;
    settle(low);
    settle(high);
  }
  LIMPID_INLINE Ints end() const { return sum + add_pairs(low, 1) + add_pairs(high, 16); }
};

#endif

}  // namespace limpid::LIMPID_ISA
