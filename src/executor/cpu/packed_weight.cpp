// Packing: rows of file blocks become the interleaved superblocks of quantized_linear.h.
//
// The superblocks of 16 rows are taken apart (block_codes.h), and then written as one, from its
// first byte to its last: of the codes, four bytes of each row after another. Threads share out the
// groups, and one thread writes a whole group.
#include "executor/cpu/packed_weight.h"

#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "base/checked.h"
#include "base/divide_up.h"
#include "tensor/block_codes.h"
#include "tensor/blocks.h"

namespace limpid {
namespace {

constexpr bool levels_are_those_of_the_file() {
  for (size_t i = 0; i < kIq4Levels.size(); ++i) {
    if (kLevels[i] != kIq4Levels[i] + 128 || kLevels[i] != kLowDigits[i] + 16 * kHighDigits[i])
      return false;
  }
  return true;
}
static_assert(levels_are_those_of_the_file());

PackedLayout layout_of(DType dtype) {
  LIMPID_CHECK(UnsupportedError, is_quantized(dtype),
               "[PackedWeight] {} is not a block-quantised type; use it as it is",
               dtype_info(dtype).name);
  return packed_layout(dtype);
}

// Writes kBits bits of each of a row's 32 codes, from bit `shift` on, to 4 kBits bytes: 8 / kBits
// groups of four codes, one above the other, to four bytes. Two groups at a time: the upper half of
// a word of eight codes is shifted to kBits above the lower half.
template <int kBits>
void store_bits(const uint8_t* codes, int shift, uint8_t* stored) {
  if constexpr (kBits == 8) {
    std::memcpy(stored, codes, kScaleBlock);
    return;
  }
  constexpr int kPairs = 4 / kBits;  // of groups
  for (int i = 0; i < kBits; ++i) {
    uint32_t bits = 0;
    for (int pair = 0; pair < kPairs; ++pair) {
      const uint64_t groups =
          load8(codes + (i * kPairs + pair) * 8) >> shift & each((1 << kBits) - 1);
      bits |= static_cast<uint32_t>(groups | groups >> (32 - kBits)) << (2 * kBits * pair);
    }
    std::memcpy(stored + i * 4, &bits, 4);
  }
}

template <int kLow, int kHigh>
void store_codes(const uint8_t* codes, uint8_t* stored) {
  store_bits<kLow>(codes, 0, stored);
  if constexpr (kHigh > 0) store_bits<kHigh>(codes, kLow, stored + 4 * kLow);
}

using RowCodes = BlockCodes[kGroupRows];

// Writes the codes of all blocks of a superblock, four bytes of each row in turn.
template <int kLow, int kHigh>
void interleave_codes(const RowCodes& rows, int n_blocks, uint8_t* to) {
  constexpr int kBytes = 4 * (kLow + kHigh);
  for (int block = 0; block < n_blocks; ++block) {
    uint8_t stored[kGroupRows][kBytes];
    for (int r = 0; r < kGroupRows; ++r)
      store_codes<kLow, kHigh>(rows[r].codes + block * kScaleBlock, stored[r]);
    for (int i = 0; i < kBytes; i += 4) {
      for (int r = 0; r < kGroupRows; ++r, to += 4) std::memcpy(to, stored[r] + i, 4);
    }
  }
}

// Writes the superblock of 16 rows.
void write_super_block(const PackedLayout& layout, const RowCodes& rows, uint8_t* super) {
  const int n_scales = layout.cols / layout.scale_cols;
  const int n_f16 = layout.scales_are_f16 ? n_scales : 1;
  for (int r = 0; r < kGroupRows; ++r) {
    const BlockCodes& row = rows[r];
    for (int i = 0; i < n_f16; ++i) {
      std::memcpy(super + layout.scale_offset + (i * kGroupRows + r) * 2, &row.scale[i], 2);
      if (!layout.has_minimum) continue;
      std::memcpy(super + layout.minimum_offset + (i * kGroupRows + r) * 2, &row.minimum[i], 2);
    }
    for (int i = 0; !layout.scales_are_f16 && i < n_scales; ++i) {
      super[layout.int_scale_offset + i * kGroupRows + r] = row.int_scale[i];
      if (layout.has_minimum)
        super[layout.int_minimum_offset + i * kGroupRows + r] = row.int_minimum[i];
    }
  }
  const auto interleave = layout.low_bits == 8    ? interleave_codes<8, 0>
                          : layout.low_bits == 2  ? layout.high_bits == 0 ? interleave_codes<2, 0>
                                                                          : interleave_codes<2, 1>
                           : layout.high_bits == 0 ? interleave_codes<4, 0>
                          : layout.high_bits == 1 ? interleave_codes<4, 1>
                                                  : interleave_codes<4, 2>;
  interleave(rows, layout.n_blocks, super + layout.codes_offset);
}

}  // namespace

int64_t packed_group_bytes(const TensorView& source) {
  return packed_group_bytes(layout_of(source.dtype), source.shape.cols());
}

void pack_groups(const TensorView& source, RowOrder row_order, int64_t head_dim, int64_t begin,
                 int64_t end, std::byte* packed) {
  const bool permuted = row_order == RowOrder::kInterleavedPairs;
  const PackedLayout layout = layout_of(source.dtype);
  const DTypeInfo& info = dtype_info(source.dtype);
  const TakeApart take = take_apart(source.dtype);
  const int64_t cols = source.shape.cols();
  auto* super = reinterpret_cast<uint8_t*>(packed);
  for (int64_t row = begin * kGroupRows; row < end * kGroupRows; row += kGroupRows) {
    const int64_t n_rows = std::min<int64_t>(kGroupRows, source.shape.rows() - row);
    const std::byte* from[kGroupRows];
    for (int64_t r = 0; r < n_rows; ++r)
      from[r] = source.row(permuted ? interleaved_row(row + r, head_dim, head_dim) : row + r);
    RowCodes codes{};  // 0 for rows that the matrix does not have
    for (int64_t col = 0; col < cols; col += layout.cols, super += layout.n_bytes) {
      const int64_t n_cols = std::min<int64_t>(cols - col, layout.cols);
      for (int64_t r = 0; r < n_rows; ++r)
        take(from[r] + col / info.block_size * info.block_bytes, n_cols, codes[r]);
      write_super_block(layout, codes, super);
    }
  }
}

uint64_t PackedWeight::packed_bytes(const TensorView& source) {
  const int64_t n_groups = divide_up(source.shape.rows(), kGroupRows);
  const auto n_bytes = checked_mul(static_cast<uint64_t>(n_groups),
                                   static_cast<uint64_t>(packed_group_bytes(source)));
  LIMPID_CHECK(ShapeError, n_bytes.has_value(), "[PackedWeight] {} is too large",
               source.to_string());
  return *n_bytes;
}

PackedWeight::PackedWeight(const TensorView& source, RowOrder row_order, int64_t head_dim,
                           ThreadPool& pool)
    : data_(packed_bytes(source)),
      rows_(source.shape.rows()),
      cols_(source.shape.cols()),
      dtype_(source.dtype) {
  pool.for_ranges(n_groups(), 1, [&](int64_t begin, int64_t end, int /*thread*/) {
    pack_groups(source, row_order, head_dim, begin, end,
                data_.data() + begin * packed_group_bytes(source));
  });
}

LinearTask PackedWeight::task(int64_t first_group) const {
  LinearTask task;
  task.dtype = dtype_;
  task.weight = data() + first_group * packed_group_bytes(packed_layout(dtype_), cols_);
  task.rows = rows_ - first_group * kGroupRows;
  task.cols = cols_;
  task.group_end = n_groups() - first_group;
  return task;
}

}  // namespace limpid
