// The quantised product, written once for all formats and instruction sets. docs/numerics.md states
// the order of its sums; each .cpp beside this file instantiates some formats.
#pragma once

#include <cstddef>
#include <cstdint>

#include "executor/cpu/kernels/dot4-inl.h"
#include "executor/cpu/quantized_kernels.h"

namespace limpid::LIMPID_ISA {

// Most tokens that a kernel keeps in registers; wider tiles are done in pieces.
#if defined(__AVX512BW__)
inline constexpr int kMaxTokens = 16;
#else
inline constexpr int kMaxTokens = 4;
#endif

// Weights of a row group that a core keeps in its second-level cache while all tokens pass by.
inline constexpr int64_t kPanelBytes = 256 << 10;

// One block of records of a tile (see kActivationRecord), of which tokens from `first` are read.
struct TileCursor {
  const std::byte* record;
  const std::byte* half_record;
  int64_t slots;  // of the tile
  int64_t first;

  LIMPID_INLINE const int8_t* codes() const {
    return reinterpret_cast<const int8_t*>(record) + first * kScaleBlock;
  }
  LIMPID_INLINE const std::byte* field(int i) const {
    return record + slots * (kScaleBlock + 4 * i) + first * 4;
  }
  LIMPID_INLINE const float* scales() const { return reinterpret_cast<const float*>(field(0)); }
  LIMPID_INLINE const float* sums() const { return reinterpret_cast<const float*>(field(1)); }
  LIMPID_INLINE const int32_t* minus_8_sums() const {
    return reinterpret_cast<const int32_t*>(field(2));
  }
  LIMPID_INLINE const int32_t* minus_128_sums() const {
    return reinterpret_cast<const int32_t*>(field(3));
  }
  LIMPID_INLINE const int32_t* minus_32_half_sums(int half) const {
    return reinterpret_cast<const int32_t*>(half_record) + slots * half + first;
  }
  LIMPID_INLINE const float* half_sums(int half) const {
    return reinterpret_cast<const float*>(half_record) + slots * (2 + half) + first;
  }
  LIMPID_INLINE void next_block() {
    record += slots * kActivationRecord;
    half_record += slots * kActivationHalfRecord;
  }
};

template <PackedFormat kFormat>
struct BlockKernel {
  static constexpr PackedLayout kLayout = packed_layout(kFormat);
  static constexpr int kMaxCode = kLayout.code_kind == CodeKind::kByte     ? 255
                                  : kLayout.code_kind == CodeKind::kNibble ? 15
                                                                           : 63;
  using Group = Codes<kMaxCode>;

  // The 8 K groups of block `block` of a superblock, for the rows of `part`.
  static LIMPID_INLINE void load_codes(const uint8_t* super, int block, int part, Group* groups) {
    const uint8_t* p =
        super + kLayout.codes_offset + block * kLayout.code_block_bytes + part * kPartBytes;
    if constexpr (kLayout.code_kind == CodeKind::kByte) {
      LIMPID_UNROLL
      for (int g = 0; g < 8; ++g) groups[g] = ready<kMaxCode>(load_bytes(p + 64 * g));
    } else if constexpr (kLayout.code_kind == CodeKind::kNibble) {
      LIMPID_UNROLL
      for (int g = 0; g < 4; ++g) {
        const Bytes both = load_bytes(p + 64 * g);
        groups[g] = ready<kMaxCode>(bits_of_bytes<0, 15>(both));
        groups[g + 4] = ready<kMaxCode>(bits_of_bytes<4, 15>(both));
      }
    } else {
      const uint8_t* q = super + kLayout.high_bits_offset + block * 128 + part * kPartBytes;
      const Bytes h0 = load_bytes(q);
      const Bytes h1 = load_bytes(q + 64);
      const Bytes b0 = load_bytes(p);
      const Bytes b1 = load_bytes(p + 64);
      const Bytes b2 = load_bytes(p + 128);
      const Bytes b3 = load_bytes(p + 192);
      groups[0] = ready<kMaxCode>(join_bits(bits_of_bytes<0, 15>(b0), bits_of_bytes<0, 3>(h0)));
      groups[1] = ready<kMaxCode>(join_bits(bits_of_bytes<0, 15>(b1), bits_of_bytes<2, 3>(h0)));
      groups[2] = ready<kMaxCode>(join_bits(bits_of_bytes<0, 15>(b2), bits_of_bytes<4, 3>(h0)));
      groups[3] = ready<kMaxCode>(join_bits(bits_of_bytes<0, 15>(b3), bits_of_bytes<6, 3>(h0)));
      groups[4] = ready<kMaxCode>(join_bits(bits_of_bytes<4, 15>(b0), bits_of_bytes<0, 3>(h1)));
      groups[5] = ready<kMaxCode>(join_bits(bits_of_bytes<4, 15>(b1), bits_of_bytes<2, 3>(h1)));
      groups[6] = ready<kMaxCode>(join_bits(bits_of_bytes<4, 15>(b2), bits_of_bytes<4, 3>(h1)));
      groups[7] = ready<kMaxCode>(join_bits(bits_of_bytes<4, 15>(b3), bits_of_bytes<6, 3>(h1)));
    }
  }

  // Scale i of the superblock, or its minimum, as the weight's f32.
  static LIMPID_INLINE Floats scale(const uint8_t* super, int i, int part) {
    if constexpr (kLayout.scales_are_f16) {
      return load_halves(super + kLayout.scale_offset + i * 32 + part * kRows * 2);
    } else {
      const Floats factor = load_halves(super + kLayout.scale_offset + part * kRows * 2);
      const uint8_t* p = super + kLayout.int_scale_offset + i * 16 + part * kRows;
      return multiply(factor, kLayout.has_minimum ? load_u8_floats(p) : load_i8_floats(p));
    }
  }
  static LIMPID_INLINE Floats minimum(const uint8_t* super, int i, int part) {
    const Floats factor = load_halves(super + kLayout.minimum_offset +
                                      (kLayout.scales_are_f16 ? i * 32 : 0) + part * kRows * 2);
    if constexpr (kLayout.scales_are_f16) {
      return factor;
    } else {
      const uint8_t* p = super + kLayout.int_minimum_offset + i * 16 + part * kRows;
      return multiply(factor, multiply(load_u8_floats(p), set_floats(-1.0F)));
    }
  }

  // acc[t] += block `block` of the superblock for the rows of `part` and kTokens tokens.
  template <int kTokens>
  static LIMPID_INLINE void add_block(const uint8_t* super, int block, int part,
                                      const TileCursor& x, Floats* acc) {
    Group groups[8];
    load_codes(super, block, part, groups);
    const int8_t* q = x.codes();
    const float* x_scales = x.scales();
    if constexpr (kLayout.scale_cols == 32) {
      const Floats w_scale = scale(super, block, part);
      const float* x_sums = x.sums();
      const int32_t* starts = kLayout.zero == 8 ? x.minus_8_sums() : x.minus_128_sums();
      Floats w_minimum{};
      if constexpr (kLayout.has_minimum) w_minimum = minimum(super, block, part);
      LIMPID_UNROLL
      for (int t = 0; t < kTokens; ++t) {
        const Ints start = set_ints(kLayout.zero == 0 ? 0 : starts[t]);
        const Ints dot = dot_groups<8>(start, groups, q + t * kScaleBlock);
        acc[t] = fused(multiply(w_scale, set_floats(x_scales[t])), to_floats(dot), acc[t]);
        if constexpr (kLayout.has_minimum) {
          acc[t] = fused(w_minimum, set_floats(x_sums[t]), acc[t]);
        }
      }
    } else {
      LIMPID_UNROLL
      for (int half = 0; half < 2; ++half) {
        const Floats w_scale = scale(super, 2 * block + half, part);
        const int32_t* starts = x.minus_32_half_sums(half);
        const float* x_sums = x.half_sums(half);
        Floats w_minimum{};
        if constexpr (kLayout.has_minimum) w_minimum = minimum(super, 2 * block + half, part);
        LIMPID_UNROLL
        for (int t = 0; t < kTokens; ++t) {
          const Ints start = set_ints(kLayout.zero == 0 ? 0 : starts[t]);
          const Ints dot = dot_groups<4>(start, groups + 4 * half, q + t * kScaleBlock + 16 * half);
          acc[t] = fused(multiply(w_scale, set_floats(x_scales[t])), to_floats(dot), acc[t]);
          if constexpr (kLayout.has_minimum) {
            acc[t] = fused(w_minimum, set_floats(x_sums[t]), acc[t]);
          }
        }
      }
    }
  }

  // y[first_token + t][first_row ..] for one row group and kTokens slots, of which n_tokens count.
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
    const int64_t first_row = group * kGroupRows;
    LIMPID_UNROLL
    for (int t = 0; t < kTokens; ++t) {
      if (t >= n_tokens) break;
      float* y = task.y + (first_token + t) * task.y_stride + first_row;
      LIMPID_UNROLL
      for (int part = 0; part < kParts; ++part) {
        store_rows(acc[part][t], y + part * kRows,
                   task.bias != nullptr ? task.bias + first_row + part * kRows : nullptr,
                   task.rows - first_row - part * kRows);
      }
    }
  }

  // Stores the first n_rows of `sum`, with the bias.
  static LIMPID_INLINE void store_rows(Floats sum, float* y, const float* bias, int64_t n_rows) {
    if (n_rows >= kRows) {
      store_floats(y, bias != nullptr ? add_floats(sum, load_floats(bias)) : sum);
      return;
    }
    float rows[kRows];
    store_floats(rows, sum);
    for (int64_t r = 0; r < n_rows; ++r) y[r] = bias != nullptr ? rows[r] + bias[r] : rows[r];
  }

  static void group_times_tile(const LinearTask& task, int64_t group, TileCursor x,
                               int64_t first_token, int64_t n_tokens) {
    for (int64_t done = 0; done < n_tokens; done += kMaxTokens, x.first += kMaxTokens) {
      const int64_t n = n_tokens - done;
      const int64_t slots = x.slots - done;
      switch (slots < kMaxTokens ? slots : kMaxTokens) {
        case 1:
          group_times_tokens<1>(task, group, x, first_token + done, n);
          break;
        case 2:
          group_times_tokens<2>(task, group, x, first_token + done, n);
          break;
        case 4:
          group_times_tokens<4>(task, group, x, first_token + done, n);
          break;
        case 8:
          if constexpr (kMaxTokens >= 8) {
            group_times_tokens<8>(task, group, x, first_token + done, n);
          }
          break;
        default:
          if constexpr (kMaxTokens >= 16) {
            group_times_tokens<16>(task, group, x, first_token + done, n);
          }
      }
    }
  }

  static void linear(const LinearTask& task) {
    const int64_t n_blocks = task.cols / kScaleBlock;
    const int64_t group_bytes = packed_group_bytes(kLayout, task.cols);
    const std::byte* half_records =
        task.x + token_slots(task.n_tokens) * n_blocks * kActivationRecord;
    int64_t panel = group_bytes > 0 ? kPanelBytes / group_bytes : 1;
    if (panel < 1) panel = 1;
    for (int64_t begin = task.group_begin; begin < task.group_end; begin += panel) {
      const int64_t end = begin + panel < task.group_end ? begin + panel : task.group_end;
      int64_t slot = 0;
      for (int64_t token = 0; token < task.n_tokens;) {
        const int64_t n_left = task.n_tokens - token;
        const int64_t slots = token_tile(n_left);
        const TileCursor x = {task.x + slot * n_blocks * kActivationRecord,
                              half_records + slot * n_blocks * kActivationHalfRecord, slots, 0};
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

}  // namespace limpid::LIMPID_ISA
