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

// The order of the two inner loops. With 32 registers, a block's codes stay in registers, and the
// loop runs over tokens. With 16, the sums of a few tokens stay, and the loop runs over codes.
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

  static constexpr bool kHalvesHaveScales = kLayout.scale_cols == kHalfBlock;

  static LIMPID_INLINE Floats add_minimum(Floats minimum, float x_sum, Floats acc) {
    return kLayout.scales_are_f16 ? native::fma(minimum, set_floats(x_sum), acc)
                                  : native::fused_minus(minimum, set_floats(x_sum), acc);
  }

  // acc[t] += the product of half `half` of a block (four K groups), for kTokens tokens. The codes
  // are `groups` if kCodesStay, and are otherwise loaded from `codes`.
  template <int kTokens>
  static LIMPID_INLINE void add_half(const Group* groups, const uint8_t* codes, int half,
                                     Floats w_scale, const TileCursor& x, const int8_t* q,
                                     Floats* acc) {
    const float* x_scales = x.scales(half);
    const int32_t* starts = x.template starts<kLayout.zero>(half);
    const auto start = [&](int t) __attribute__((always_inline)) {
      return kLayout.zero == 0 ? 0 : starts[t];
    };
    const auto finish = [&](int t, Ints dot) __attribute__((always_inline)) {
      acc[t] = native::fma(w_scale * set_floats(x_scales[t]), __builtin_convertvector(dot, Floats),
                           acc[t]);
    };
    if constexpr (kCodesStay) {
      LIMPID_UNROLL
      for (int t = 0; t < kTokens; ++t) {
        Sum sum;
        sum.begin(start(t));
        LIMPID_UNROLL
        for (int i = 0; i < 4; ++i) {
          sum.add(i, groups[4 * half + i], q + t * kScaleBlock + 4 * (4 * half + i));
        }
        finish(t, sum.end());
      }
    } else {
      Sum sums[kTokens];
      LIMPID_UNROLL
      for (int t = 0; t < kTokens; ++t) sums[t].begin(start(t));
      LIMPID_UNROLL
      for (int i = 0; i < 4; ++i) {
        const Group group = load_group(codes, 4 * half + i);
        LIMPID_UNROLL
        for (int t = 0; t < kTokens; ++t) {
          sums[t].add(i, group, q + t * kScaleBlock + 4 * (4 * half + i));
        }
      }
      LIMPID_UNROLL
      for (int t = 0; t < kTokens; ++t) finish(t, sums[t].end());
    }
  }

  // acc[t] += the product of block `block` of the superblock, for the rows of `part` and kTokens
  // tokens.
  template <int kTokens>
  static LIMPID_INLINE void add_block(const uint8_t* super, int block, int part,
                                      const TileCursor& x, Floats* acc) {
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
    Floats w_scale{};
    if constexpr (!kHalvesHaveScales) w_scale = scale(super, block, part);
    LIMPID_UNROLL
    for (int half = 0; half < 2; ++half) {
      if constexpr (kHalvesHaveScales) w_scale = scale(super, 2 * block + half, part);
      add_half<kTokens>(groups, codes, half, w_scale, x, q, acc);
      if constexpr (kLayout.has_minimum && kHalvesHaveScales) {
        const Floats w_minimum = minimum(super, 2 * block + half, part);
        const float* sums = x.half_sums(half);
        LIMPID_UNROLL
        for (int t = 0; t < kTokens; ++t) acc[t] = add_minimum(w_minimum, sums[t], acc[t]);
      }
    }
    if constexpr (kLayout.has_minimum && !kHalvesHaveScales) {
      const Floats w_minimum = minimum(super, block, part);
      const float* sums = x.block_sums();
      LIMPID_UNROLL
      for (int t = 0; t < kTokens; ++t) acc[t] = add_minimum(w_minimum, sums[t], acc[t]);
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
