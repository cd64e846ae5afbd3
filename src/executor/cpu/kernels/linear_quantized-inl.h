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

// With 32 registers, a block's codes stay in registers. With 16, they are loaded for each half.
#if defined(__AVX512BW__)
inline constexpr bool kCodesStay = true;
#else
inline constexpr bool kCodesStay = false;
#endif

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
  // -zero times the sum of a half's integers.
  template <int kZero>
  LIMPID_INLINE const int32_t* starts(int half) const {
    static_assert(kZero == 0 || kZero == 8 || kZero == 32 || kZero == 128);
    return reinterpret_cast<const int32_t*>(field((kZero == 8 ? 5 : kZero == 32 ? 7 : 9) + half));
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

template <PackedFormat kFormat>
struct BlockKernel {
  static constexpr PackedLayout kLayout = packed_layout(kFormat);
  static constexpr int kMaxCode = kLayout.code_kind == CodeKind::kByte     ? 255
                                  : kLayout.code_kind == CodeKind::kNibble ? 15
                                                                           : 63;
  using Group = Codes<kMaxCode>;
  using Sum = DotSum<kMaxCode>;

  // Tokens whose integer sums grow side by side. The sum of one token is a chain of products, each
  // of which waits for the one before, so a core needs the chains of several tokens to be busy.
  // On an Intel Xeon with VNNI, 8 and 16 tokens are 1.12 to 1.28 times as fast as one chain after
  // another. Codes that take two registers leave room for fewer sums.
  static constexpr int kSideBySide = sizeof(Group) > sizeof(Bytes) ? 4 : 8;

  // The most tokens of one call of group_times_tokens; larger tiles are divided.
  static constexpr int kMaxTokens = kCodesStay ? 16 : kMaxCode == 15 ? 8 : 4;

  // K group g (constant once loops are unrolled) of a block's codes, for the rows of one part.
  static LIMPID_INLINE Group load_group(const uint8_t* codes, int g) {
    if constexpr (kLayout.code_kind == CodeKind::kByte) {
      return ready<kMaxCode>(load_bytes(codes + 64 * g));
    } else {
      const Bytes both = load_bytes(codes + 64 * (g % 4));
      const Bytes low = g < 4 ? bits_of_bytes<0, 15>(both) : bits_of_bytes<4, 15>(both);
      if constexpr (kLayout.code_kind == CodeKind::kNibble) {
        return ready<kMaxCode>(low);
      } else {
        const Bytes pairs = load_bytes(codes + 256 + 64 * (g / 4));
        const Bytes high = g % 4 == 0   ? bits_of_bytes<0, 3>(pairs)
                           : g % 4 == 1 ? bits_of_bytes<2, 3>(pairs)
                           : g % 4 == 2 ? bits_of_bytes<4, 3>(pairs)
                                        : bits_of_bytes<6, 3>(pairs);
        return ready<kMaxCode>(join_bits(low, high));
      }
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

  static LIMPID_INLINE int32_t start(const TileCursor& x, int half, int t) {
    return kLayout.zero == 0 ? 0 : x.template starts<kLayout.zero>(half)[t];
  }
  // sum + s q . code, for the half whose integer sums are `dot`. The first half of a span starts
  // the sum.
  static LIMPID_INLINE Floats add_half(const TileCursor& x, int half, int t, Ints dot, Floats sum) {
    const Floats scale = set_floats(x.scales(half)[t]);
    const Floats products = __builtin_convertvector(dot, Floats);
    return half % kHalves == 0 ? scale * products : native::fma(scale, products, sum);
  }
  static LIMPID_INLINE Floats add_minimum(const TileCursor& x, int span, int t, Floats minimum,
                                          Floats acc) {
    const Floats sum = set_floats((kSpans == 1 ? x.block_sums() : x.half_sums(span))[t]);
    return kLayout.scales_are_f16 ? native::fma(minimum, sum, acc)
                                  : native::fused_minus(minimum, sum, acc);
  }

  // acc[t] += the product of block `block` of the superblock, for the rows of `part` and kTokens
  // tokens, kSideBySide at a time.
  template <int kTokens>
  static LIMPID_INLINE void add_block(const uint8_t* super, int block, int part,
                                      const TileCursor& x, Floats* acc) {
    constexpr int kStep = kTokens < kSideBySide ? kTokens : kSideBySide;
    const uint8_t* codes =
        super + kLayout.codes_offset + block * kLayout.code_block_bytes + part * kPartBytes;
    const int8_t* q = x.codes();
    // Without this line the compiler keeps the activations of one part in registers for the next
    // part, and spills others to memory.
    if constexpr (!kCodesStay && kTokens > 1) asm volatile("" : "+r"(q));
    Group groups[8];
    if constexpr (kCodesStay) {
      LIMPID_UNROLL
      for (int g = 0; g < 8; ++g) groups[g] = load_group(codes, g);
    }
    LIMPID_UNROLL
    for (int first = 0; first < kTokens; first += kStep) {
      LIMPID_UNROLL
      for (int span = 0; span < kSpans; ++span) {
        Floats sums[kStep];
        LIMPID_UNROLL
        for (int half = kHalves * span; half < kHalves * (span + 1); ++half) {
          Sum dots[kStep];
          LIMPID_UNROLL
          for (int t = 0; t < kStep; ++t) dots[t].begin(start(x, half, first + t));
          LIMPID_UNROLL
          for (int i = 0; i < 4; ++i) {
            const int g = 4 * half + i;
            const Group group = kCodesStay ? groups[g] : load_group(codes, g);
            LIMPID_UNROLL
            for (int t = 0; t < kStep; ++t) {
              dots[t].add(i, group, q + (first + t) * kScaleBlock + 4 * g);
            }
          }
          LIMPID_UNROLL
          for (int t = 0; t < kStep; ++t) {
            sums[t] = add_half(x, half, first + t, dots[t].end(), sums[t]);
          }
        }
        const Floats w_scale = scale(super, kSpans * block + span, part);
        LIMPID_UNROLL
        for (int t = 0; t < kStep; ++t) {
          acc[first + t] = native::fma(w_scale, sums[t], acc[first + t]);
        }
        if constexpr (kLayout.has_minimum) {
          const Floats w_minimum = minimum(super, kSpans * block + span, part);
          LIMPID_UNROLL
          for (int t = 0; t < kStep; ++t) {
            acc[first + t] = add_minimum(x, span, first + t, w_minimum, acc[first + t]);
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

  // Computes y[first_token + t][16 rows] for one row group and kTokens slots. The first n_tokens
  // slots are tokens, the rest is padding.
  template <int kTokens>
  static void group_times_tokens(const LinearTask& task, int64_t group, TileCursor x,
                                 int64_t first_token, int64_t n_tokens) {
    const auto* super = reinterpret_cast<const uint8_t*>(task.weight) +
                        group * packed_group_bytes(kLayout, task.cols);
    for (int t = 0; t < kTokens && t < n_tokens; ++t) {  // where the sums will be stored
      __builtin_prefetch(task.y + (first_token + t) * task.y_stride + group * kGroupRows, 1, 3);
    }
    Floats acc[kParts][kTokens];
    LIMPID_UNROLL
    for (int part = 0; part < kParts; ++part) {
      LIMPID_UNROLL
      for (int t = 0; t < kTokens; ++t) acc[part][t] = set_floats(0);
    }
    int64_t n_left = task.cols / kScaleBlock;
    for (; n_left >= kLayout.n_blocks; n_left -= kLayout.n_blocks, super += kLayout.n_bytes) {
      for (int block = 0; block < kLayout.n_blocks; ++block, x.next_block()) {
        if (task.prefetch) prefetch_block(super, block);
        LIMPID_UNROLL
        for (int part = 0; part < kParts; ++part) {
          add_block<kTokens>(super, block, part, x, acc[part]);
        }
      }
    }
    for (int block = 0; block < n_left; ++block, x.next_block()) {
      LIMPID_UNROLL
      for (int part = 0; part < kParts; ++part) {
        add_block<kTokens>(super, block, part, x, acc[part]);
      }
    }
    alignas(64) float sums[kTokens][kGroupRows];
    LIMPID_UNROLL
    for (int t = 0; t < kTokens; ++t) {
      LIMPID_UNROLL
      for (int part = 0; part < kParts; ++part) {
        store_floats(sums[t] + part * kRows, acc[part][t]);
      }
    }
    store_sums(task, group, first_token, n_tokens < kTokens ? n_tokens : kTokens, sums);
  }

  // The same for `slots` slots (16, 8, 4, 2 or 1), or kTokens if that is less.
  template <int kTokens>
  static void group_times_slots(const LinearTask& task, int64_t group, TileCursor x, int64_t slots,
                                int64_t first_token, int64_t n_tokens) {
    if constexpr (kTokens > 1) {
      if (slots < kTokens)
        return group_times_slots<kTokens / 2>(task, group, x, slots, first_token, n_tokens);
    }
    group_times_tokens<kTokens>(task, group, x, first_token, n_tokens);
  }

  static void group_times_tile(const LinearTask& task, int64_t group, TileCursor x,
                               int64_t first_token, int64_t n_tokens) {
    for (int64_t done = 0; done < n_tokens; done += kMaxTokens, x.first += kMaxTokens) {
      group_times_slots<kMaxTokens>(task, group, x, x.slots - done, first_token + done,
                                    n_tokens - done);
    }
  }

  static void linear(const LinearTask& task) {
    const int64_t n_blocks = task.cols / kScaleBlock;
    const int64_t group_bytes = packed_group_bytes(kLayout, task.cols);
    int64_t panel = group_bytes > 0 ? kPanelBytes / group_bytes : 1;
    if (panel < 1) panel = 1;
    for (int64_t begin = task.group_begin; begin < task.group_end; begin += panel) {
      const int64_t end = begin + panel < task.group_end ? begin + panel : task.group_end;
      int64_t slot = 0;
      for (int64_t token = 0; token < task.n_tokens;) {
        const int64_t n_left = task.n_tokens - token;
        const int64_t slots = token_tile(n_left);
        const TileCursor x = {task.x + slot * n_blocks * kActivationRecord, slots, 0};
        const int64_t n_tokens = n_left < slots ? n_left : slots;
        for (int64_t group = begin; group < end; ++group) {
          group_times_tile(task, group, x, token, n_tokens);
        }
        token += n_tokens;
        slot += slots;
      }
    }
  }
};

// What linear_quantized calls for a weight of this format.
template <PackedFormat kFormat>
void linear_packed(const LinearTask& task) {
  BlockKernel<kFormat>::linear(task);
}

}  // namespace limpid::LIMPID_ISA
