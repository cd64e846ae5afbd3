// The quantised product, written once for all formats and instruction sets. docs/numerics.md has
// the order of its sums; each linear_quantized_*.cpp beside this file compiles it for some formats.
//
// With weight = scale (code - zero) + minimum, and activation = s q (int8 q, a scale s per 16
// columns), the product of a row and a token over a block is
//   scale s (sum code q  -  zero sum q)  +  minimum s sum q
// The sums over q alone do not depend on the row, so quantize_activations.cpp has computed them.
// For each row this file computes an exact integer sum of code times q, which starts from -zero sum
// q, converts it to f32, and adds it with one or two fused multiply-adds.
#pragma once

#include <cstddef>
#include <cstdint>

#include "executor/cpu/kernels/dot4-inl.h"
#include "executor/cpu/quantized_linear.h"

namespace limpid::LIMPID_ISA {

// With VNNI, the sums of two row groups are interleaved for 4 and more tokens. Each product reads 4
// activations of a token, the same for all rows, and a core begins two such loads in a cycle, as
// many as products. Two groups share the load. On Zen 5 (L1 hot), 16 rows x 32 columns of Q4_0 take
// 94 cycles in place of 115 for 16 tokens, and 23 in place of 30 for 4. With 1 or 2 tokens the time
// of reading the weights decides, and one stream is best. Without VNNI, where a product takes more
// instructions than its load, pairs are slower.
inline constexpr bool kHasPairs = kHasVnni;
inline constexpr int64_t kFewestPairedTokens = 4;

// Bytes of weights that stay in a core's second-level cache while they are multiplied with all
// tokens.
inline constexpr int64_t kPanelBytes = 256 << 10;

// A record of quantised activations: one block of a tile (kActivationRecord has its fields). The
// methods return the fields of the tokens from `first` on.
struct TileCursor {
  const std::byte* record;
  int64_t slots;  // of the tile
  int64_t first;

  LIMPID_INLINE const int8_t* codes() const {
    return reinterpret_cast<const int8_t*>(record) + first * kScaleBlock;
  }
  LIMPID_INLINE const std::byte* field(int i) const {
    return record + slots * (kScaleBlock + 4 * i) + first * 4;
  }
  LIMPID_INLINE const float* scales(int half) const {
    return reinterpret_cast<const float*>(field(half));
  }
  LIMPID_INLINE const float* half_sums(int half) const {
    return reinterpret_cast<const float*>(field(2 + half));
  }
  LIMPID_INLINE const float* block_sums() const { return reinterpret_cast<const float*>(field(4)); }
  // -zero times the sum of a half's integers. Records have it for 8, 32 and 128.
  template <int kZero>
  LIMPID_INLINE int32_t start(int half, int t) const {
    if constexpr (kZero == 0) {
      return 0;
    } else if constexpr (kZero == 4 || kZero == 16) {
      return start<2 * kZero>(half, t) / 2;
    } else {
      static_assert(kZero == 8 || kZero == 32 || kZero == 128);
      constexpr int kField = kZero == 8 ? 5 : kZero == 32 ? 7 : 9;
      return reinterpret_cast<const int32_t*>(field(kField + half))[t];
    }
  }
  LIMPID_INLINE void next_block() { record += slots * kActivationRecord; }
};

// Writes the sums of a row group, with the bias, for tokens first_token .. first_token + n_tokens
// - 1.
static __attribute__((noinline)) void store_sums(const LinearTask& task, int64_t group,
                                                 int64_t first_token, int64_t n_tokens,
                                                 const float (*sums)[kGroupRows]) {
  const int64_t first_row = group * kGroupRows;
  const int64_t n_left = task.rows - first_row;
  const int64_t n_rows = n_left < kGroupRows ? n_left : kGroupRows;
  const float* bias = task.bias != nullptr ? task.bias + first_row : nullptr;
  for (int64_t t = 0; t < n_tokens; ++t) {
    float* y = task.y + (first_token + t) * task.y_stride + first_row;
    if (bias == nullptr && n_rows == kGroupRows) {
      __builtin_memcpy(y, sums[t], sizeof(sums[t]));
    } else if (bias == nullptr) {
      for (int64_t r = 0; r < n_rows; ++r) y[r] = sums[t][r];
    } else {
      for (int64_t r = 0; r < n_rows; ++r) y[r] = sums[t][r] + bias[r];
    }
  }
}

// Row groups that are multiplied together: one, or two that are `apart` groups from each other. A
// pair has a group of each half of a panel, so that each half is read from its beginning to its
// end. Neighbours as a pair were slower (SmolLM2 on Zen 5, prompts of 8 to 16 tokens: 0.93 times):
// prefetching ahead in one of them fetches the other.
struct RowGroups {
  int64_t first;
  int64_t apart;
};

template <DType kType>
struct BlockKernel {
  static constexpr PackedLayout kLayout = packed_layout(kType);
  static constexpr int kBits = kLayout.low_bits + kLayout.high_bits;
  static constexpr int kMaxCode = kLayout.has_levels || kBits == 8 ? 255 : kBits <= 4 ? 15 : 63;
  using Group = Codes<kMaxCode>;
  using Sum = DotSum<kMaxCode>;

  // Integer sums that are interleaved: with 8, those of 8 tokens and a row group, or of 4 tokens
  // and a pair. A sum is a chain of products, each of which waits for the one before, so a core
  // needs several chains to be busy. On an Intel Xeon with VNNI, 8 and 16 tokens are 1.12 to 1.28
  // times as fast as one chain after another. Codes that take two registers, and pairs in 16
  // registers, leave room for fewer sums.
  static constexpr int kSideBySide = sizeof(Group) > sizeof(Bytes) || (kHasPairs && kParts > 1) ? 4
                                                                                                : 8;

  // The most tokens of one call of groups_times_tokens; larger tiles are divided.
  static constexpr int kMaxTokens = kHasPairs ? 8 : kParts == 1 ? 16 : kMaxCode == 15 ? 8 : 4;

  // K group g (constant once loops are unrolled) of kBitsOfCode bits, for the rows of one part.
  template <int kBitsOfCode>
  static LIMPID_INLINE Bytes load_bits(const uint8_t* codes, int g) {
    constexpr int kGroups = 8 / kBitsOfCode;  // in a register
    const Bytes bytes = load_bytes(codes + 64 * (g / kGroups));
    return kGroups == 1 ? bytes : bits_of_bytes<kBitsOfCode>(bytes, kBitsOfCode * (g % kGroups));
  }
  // K group g of a block's codes.
  static LIMPID_INLINE Group load_group(const uint8_t* codes, int g) {
    Bytes bytes = load_bits<kLayout.low_bits>(codes, g);
    if constexpr (kLayout.high_bits > 0) {
      const Bytes high = load_bits<kLayout.high_bits>(codes + 64 * kLayout.low_bits, g);
      bytes = join_bits(bytes, high, kLayout.low_bits);
    }
    if constexpr (kLayout.has_levels) {
      return ready_levels(bytes);
    } else {
      return ready<kMaxCode>(bytes);
    }
  }

  // Scale i of the superblock as f32, for the rows of one part.
  static LIMPID_INLINE Floats scale(const uint8_t* super, int i, int part) {
    if constexpr (kLayout.scales_are_f16) {
      return load_halves(super + kLayout.scale_offset + i * 32 + part * kRows * 2);
    } else {
      const Floats factor = load_halves(super + kLayout.scale_offset + part * kRows * 2);
      const uint8_t* p = super + kLayout.int_scale_offset + i * 16 + part * kRows;
      return factor * load_byte_floats<!kLayout.has_minimum>(p);
    }
  }
  // Minimum i of the superblock as f32. It is added if scales are f16, and subtracted if they are
  // integers (the K formats).
  static LIMPID_INLINE Floats minimum(const uint8_t* super, int i, int part) {
    if constexpr (kLayout.scales_are_f16) {
      return load_halves(super + kLayout.minimum_offset + i * 32 + part * kRows * 2);
    } else {
      const uint8_t* p = super + kLayout.int_minimum_offset + i * 16 + part * kRows;
      return load_halves(super + kLayout.minimum_offset + part * kRows * 2) *
             load_byte_floats<false>(p);
    }
  }

  // A span is the columns that share a scale: half a block, or both halves.
  static constexpr int kHalves = kLayout.scale_cols / kHalfBlock;
  static constexpr int kSpans = 2 / kHalves;

  // sum + s times the integer sums `dot` of a half. The first half of a span starts the sum.
  static LIMPID_INLINE Floats add_scaled(const TileCursor& x, int half, int t, Ints dot,
                                         Floats sum) {
    const Floats scale = set_floats(x.scales(half)[t]);
    const Floats products = __builtin_convertvector(dot, Floats);
    return half % kHalves == 0 ? scale * products : native::fma(scale, products, sum);
  }
  // sums[u][t] += s q . code over a half, for row group u and token first + t.
  template <int kStep, int kGroups>
  static LIMPID_INLINE void add_half(const uint8_t* codes, int64_t apart, const int8_t* q,
                                     const TileCursor& x, int half, int first,
                                     Floats (&sums)[kGroups][kStep]) {
    Sum dots[kGroups][kStep];
    LIMPID_UNROLL
    for (int t = 0; t < kStep; ++t) {
      const int32_t start_of_token = x.template start<kLayout.zero>(half, first + t);
      LIMPID_UNROLL
      for (int u = 0; u < kGroups; ++u) dots[u][t].begin(start_of_token);
    }
    LIMPID_UNROLL
    for (int i = 0; i < 4; ++i) {
      const int g = 4 * half + i;
      Group groups[kGroups];
      LIMPID_UNROLL
      for (int u = 0; u < kGroups; ++u) groups[u] = load_group(codes + u * apart, g);
      LIMPID_UNROLL
      for (int t = 0; t < kStep; ++t) {
        LIMPID_UNROLL
        for (int u = 0; u < kGroups; ++u)
          dots[u][t].add(i, groups[u], q + (first + t) * kScaleBlock + 4 * g);
      }
    }
    LIMPID_UNROLL
    for (int t = 0; t < kStep; ++t) {
      LIMPID_UNROLL
      for (int u = 0; u < kGroups; ++u)
        sums[u][t] = add_scaled(x, half, first + t, dots[u][t].end(), sums[u][t]);
    }
  }
  static LIMPID_INLINE Floats add_minimum(const TileCursor& x, int span, int t, Floats minimum,
                                          Floats acc) {
    const Floats sum = set_floats((kSpans == 1 ? x.block_sums() : x.half_sums(span))[t]);
    return kLayout.scales_are_f16 ? native::fma(minimum, sum, acc)
                                  : native::fused_minus(minimum, sum, acc);
  }

  // acc[u][t] += the product of block `block` of the superblock, for the rows of `part` of row
  // group u, `apart` bytes after the one before, and kTokens tokens. kSideBySide sums are
  // interleaved.
  template <int kTokens, int kGroups>
  static LIMPID_INLINE void add_block(const uint8_t* super, int64_t apart, int block, int part,
                                      const TileCursor& x, Floats (*acc)[kTokens]) {
    constexpr int kMost = kSideBySide / kGroups;
    constexpr int kStep = kTokens < kMost ? kTokens : kMost;
    const uint8_t* codes =
        super + kLayout.codes_offset + block * kLayout.code_block_bytes + part * kPartBytes;
    const int8_t* q = x.codes();
    // Without this line the compiler keeps the activations of one part in registers for the next
    // part, and spills others to memory.
    if constexpr (kParts > 1 && kTokens > 1) asm volatile("" : "+r"(q));
    LIMPID_UNROLL
    for (int first = 0; first < kTokens; first += kStep) {
      LIMPID_UNROLL
      for (int span = 0; span < kSpans; ++span) {
        Floats sums[kGroups][kStep];
        LIMPID_UNROLL
        for (int half = kHalves * span; half < kHalves * (span + 1); ++half)
          add_half(codes, apart, q, x, half, first, sums);
        LIMPID_UNROLL
        for (int u = 0; u < kGroups; ++u) {
          const uint8_t* of_group = super + u * apart;
          const Floats w_scale = scale(of_group, kSpans * block + span, part);
          LIMPID_UNROLL
          for (int t = 0; t < kStep; ++t)
            acc[u][first + t] = native::fma(w_scale, sums[u][t], acc[u][first + t]);
          if constexpr (kLayout.has_minimum) {
            const Floats w_minimum = minimum(of_group, kSpans * block + span, part);
            LIMPID_UNROLL
            for (int t = 0; t < kStep; ++t)
              acc[u][first + t] = add_minimum(x, span, first + t, w_minimum, acc[u][first + t]);
          }
        }
      }
    }
  }

  // Prefetches one block's share of the weights that will be read later. The hardware's prefetcher
  // is not enough: it stops at the borders of a superblock's arrays, and does not look far ahead
  // while a block is multiplied with many tokens.
  static LIMPID_INLINE void prefetch_block(const uint8_t* super, int block) {
    constexpr int kShare = kLayout.n_bytes / kLayout.n_blocks;
    const uint8_t* p = super + block * kShare;
    LIMPID_UNROLL
    for (int i = 0; i < kShare; i += 64) {
      __builtin_prefetch(p + kAheadInSecondCache + i, 0, 2);
      __builtin_prefetch(p + kAheadInFirstCache + i, 0, 3);
    }
  }

  // Computes y[first_token + t][16 kGroups rows] for kGroups row groups and kTokens slots. The
  // first n_tokens slots are tokens, the rest is padding. Not inlined: several of these loops in
  // one function, for which GCC then has too few registers, take up to 1.8 times as long (AVX2,
  // Q4_0, 4 tokens).
  template <int kTokens, int kGroups>
  static __attribute__((noinline)) void groups_times_tokens(const LinearTask& task,
                                                            RowGroups groups, TileCursor x,
                                                            int64_t first_token, int64_t n_tokens) {
    const int64_t group_bytes = packed_group_bytes(kLayout, task.cols);
    const int64_t apart = groups.apart * group_bytes;
    const auto* super = reinterpret_cast<const uint8_t*>(task.weight) + groups.first * group_bytes;
    for (int t = 0; t < kTokens && t < n_tokens; ++t) {  // where the sums will be stored
      const float* y = task.y + (first_token + t) * task.y_stride + groups.first * kGroupRows;
      LIMPID_UNROLL
      for (int u = 0; u < kGroups; ++u) __builtin_prefetch(y + u * groups.apart * kGroupRows, 1, 3);
    }
    Floats acc[kParts][kGroups][kTokens];
    LIMPID_UNROLL
    for (int part = 0; part < kParts; ++part) {
      LIMPID_UNROLL
      for (int u = 0; u < kGroups; ++u) {
        LIMPID_UNROLL
        for (int t = 0; t < kTokens; ++t) acc[part][u][t] = set_floats(0);
      }
    }
    int64_t n_left = task.cols / kScaleBlock;
    for (; n_left >= kLayout.n_blocks; n_left -= kLayout.n_blocks, super += kLayout.n_bytes) {
      for (int block = 0; block < kLayout.n_blocks; ++block, x.next_block()) {
        if (task.prefetch) {
          LIMPID_UNROLL
          for (int u = 0; u < kGroups; ++u) prefetch_block(super + u * apart, block);
        }
        LIMPID_UNROLL
        for (int part = 0; part < kParts; ++part)
          add_block<kTokens, kGroups>(super, apart, block, part, x, acc[part]);
      }
    }
    for (int block = 0; block < n_left; ++block, x.next_block()) {
      LIMPID_UNROLL
      for (int part = 0; part < kParts; ++part)
        add_block<kTokens, kGroups>(super, apart, block, part, x, acc[part]);
    }
    LIMPID_UNROLL
    for (int u = 0; u < kGroups; ++u) {
      alignas(64) float sums[kTokens][kGroupRows];
      LIMPID_UNROLL
      for (int t = 0; t < kTokens; ++t) {
        LIMPID_UNROLL
        for (int part = 0; part < kParts; ++part)
          store_floats(sums[t] + part * kRows, acc[part][u][t]);
      }
      store_sums(task, groups.first + u * groups.apart, first_token,
                 n_tokens < kTokens ? n_tokens : kTokens, sums);
    }
  }

  // The same for `slots` slots (16, 8, 4, 2 or 1), or kTokens if that is less.
  template <int kTokens, int kGroups>
  static void groups_times_slots(const LinearTask& task, RowGroups groups, TileCursor x,
                                 int64_t slots, int64_t first_token, int64_t n_tokens) {
    if constexpr (kTokens > (kGroups == 1 ? 1 : kFewestPairedTokens)) {
      if (slots < kTokens) {
        return groups_times_slots<kTokens / 2, kGroups>(task, groups, x, slots, first_token,
                                                        n_tokens);
      }
    }
    groups_times_tokens<kTokens, kGroups>(task, groups, x, first_token, n_tokens);
  }

  template <int kGroups>
  static void groups_times_tile(const LinearTask& task, RowGroups groups, TileCursor x,
                                int64_t first_token, int64_t n_tokens) {
    for (int64_t done = 0; done < n_tokens; done += kMaxTokens, x.first += kMaxTokens) {
      groups_times_slots<kMaxTokens, kGroups>(task, groups, x, x.slots - done, first_token + done,
                                              n_tokens - done);
    }
  }

  static void linear(const LinearTask& task) {
    const int64_t n_blocks = task.cols / kScaleBlock;
    const int64_t group_bytes = packed_group_bytes(kLayout, task.cols);
    int64_t panel = group_bytes > 0 ? kPanelBytes / group_bytes : 1;
    panel = panel < 2 ? 2 : panel / 2 * 2;  // pairs
    for (int64_t begin = task.group_begin; begin < task.group_end; begin += panel) {
      const int64_t end = begin + panel < task.group_end ? begin + panel : task.group_end;
      int64_t slot = 0;
      for (int64_t token = 0; token < task.n_tokens;) {
        const int64_t n_left = task.n_tokens - token;
        const int64_t slots = token_tile(n_left);
        const TileCursor x = {task.x + slot * n_blocks * kActivationRecord, slots, 0};
        const int64_t n_tokens = n_left < slots ? n_left : slots;
        const int64_t n_pairs = kHasPairs && slots >= kFewestPairedTokens ? (end - begin) / 2 : 0;
        if constexpr (kHasPairs) {
          for (int64_t i = 0; i < n_pairs; ++i)
            groups_times_tile<2>(task, {begin + i, n_pairs}, x, token, n_tokens);
        }
        for (int64_t group = begin + 2 * n_pairs; group < end; ++group)
          groups_times_tile<1>(task, {group, 0}, x, token, n_tokens);
        token += n_tokens;
        slot += slots;
      }
    }
  }
};

// What linear_quantized calls for a weight of this type.
template <DType kType>
void linear_packed(const LinearTask& task) {
  BlockKernel<kType>::linear(task);
}

}  // namespace limpid::LIMPID_ISA
