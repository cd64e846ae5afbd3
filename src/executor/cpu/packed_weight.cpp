// Packing: rows of file blocks become the interleaved superblocks of quantized_linear.h.
//
// A row is taken apart superblock by superblock (block_codes.h). Then its scales, minima and codes
// are scattered to the row's place within the group: with four bytes of every 64, from 4 r on, for
// row r. Threads share out the groups, and one thread writes a whole group.
#include "executor/cpu/packed_weight.h"

#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "base/checked.h"
#include "executor/cpu/block_codes.h"

namespace limpid {
namespace {

// A row's codes of a block, as stored: four bytes of every 64, from 4 r on.
struct StoredCodes {
  uint8_t bytes[kScaleBlock];
  int n_bytes;
};

StoredCodes stored_codes(CodeKind kind, const uint8_t* codes) {
  StoredCodes stored{};
  stored.n_bytes = kind == CodeKind::kByte ? 32 : kind == CodeKind::kNibble ? 16 : 24;
  if (kind == CodeKind::kByte) {
    std::memcpy(stored.bytes, codes, kScaleBlock);
    return stored;
  }
  for (int k = 0; k < 16; ++k) {
    stored.bytes[k] = static_cast<uint8_t>((codes[k] & 0x0f) | (codes[k + 16] << 4));
  }
  if (kind == CodeKind::kNibble) return stored;
  for (int k = 0; k < 8; ++k) {  // bits 4 and 5 of four columns
    const uint8_t* column = codes + k / 4 * 16 + k % 4;
    stored.bytes[16 + k] = static_cast<uint8_t>((column[0] >> 4) | (column[4] >> 4 << 2) |
                                                (column[8] >> 4 << 4) | (column[12] >> 4 << 6));
  }
  return stored;
}

// Puts one row's superblock into the row group's.
void scatter(const PackedLayout& layout, const BlockCodes& row, int r, uint8_t* super) {
  const int n_scales = layout.cols / layout.scale_cols;
  const int n_f16 = layout.scales_are_f16 ? n_scales : 1;
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
  for (int block = 0; block < layout.n_blocks; ++block) {
    const uint8_t* codes = row.codes + block * kScaleBlock;
    uint8_t* to = super + layout.codes_offset + block * layout.code_block_bytes;
    const StoredCodes stored = stored_codes(layout.code_kind, codes);
    for (int i = 0; i < stored.n_bytes; i += 4) {
      std::memcpy(to + i * kGroupRows + r * 4, stored.bytes + i, 4);
    }
  }
}

}  // namespace

int64_t packed_group_bytes(const TensorView& source) {
  return packed_group_bytes(packed_layout(packed_format(source.dtype)), source.shape.cols());
}

void pack_groups(const TensorView& source, RowOrder row_order, int64_t head_dim, int64_t begin,
                 int64_t end, std::byte* packed) {
  const bool permuted = row_order == RowOrder::kInterleavedPairs;
  const PackedLayout layout = packed_layout(packed_format(source.dtype));
  const DTypeInfo& info = dtype_info(source.dtype);
  const int64_t cols = source.shape.cols();
  const int64_t end_row = std::min(end * kGroupRows, source.shape.rows());
  for (int64_t row = begin * kGroupRows; row < end_row; ++row) {
    const std::byte* from = source.row(permuted ? interleaved_row(row, head_dim, head_dim) : row);
    auto* super = reinterpret_cast<uint8_t*>(packed) +
                  (row / kGroupRows - begin) * packed_group_bytes(layout, cols);
    for (int64_t col = 0; col < cols; col += layout.cols, super += layout.n_bytes) {
      const int64_t n_cols = std::min<int64_t>(cols - col, layout.cols);
      const BlockCodes codes =
          take_apart(source.dtype, from + col / info.block_size * info.block_bytes, n_cols);
      scatter(layout, codes, static_cast<int>(row % kGroupRows), super);
    }
  }
}

uint64_t PackedWeight::packed_bytes(const TensorView& source) {
  const int64_t n_groups = (source.shape.rows() + kGroupRows - 1) / kGroupRows;
  const auto n_bytes = checked_mul(static_cast<uint64_t>(n_groups),
                                   static_cast<uint64_t>(packed_group_bytes(source)));
  LIMPID_CHECK(ShapeError, n_bytes.has_value(), "[PackedWeight] {} is too large",
               source.to_string());
  return *n_bytes;
}

PackedWeight::PackedWeight(const TensorView& source, RowOrder row_order, int64_t head_dim,
                           ThreadPool* pool)
    : rows_(source.shape.rows()), cols_(source.shape.cols()), format_(packed_format(source.dtype)) {
  const bool permuted = row_order == RowOrder::kInterleavedPairs;
  LIMPID_CHECK(
      ShapeError, !permuted || (head_dim > 0 && head_dim % 2 == 0 && rows_ % head_dim == 0),
      "[PackedWeight] {} rows are not whole heads of {} rows, an even number", rows_, head_dim);
  data_ = AlignedBuffer(packed_bytes(source));
  const auto pack = [&](int64_t begin, int64_t end, int) {
    pack_groups(source, row_order, head_dim, begin, end,
                data_.data() + begin * packed_group_bytes(source));
  };
  if (pool != nullptr) {
    pool->for_ranges(n_groups(), 1, pack);
  } else {
    pack(0, n_groups(), 0);
  }
}

LinearTask PackedWeight::task(int64_t first_group) const {
  LinearTask task;
  task.format = format_;
  task.weight = data() + first_group * packed_group_bytes(packed_layout(format_), cols_);
  task.rows = rows_ - first_group * kGroupRows;
  task.cols = cols_;
  task.group_end = n_groups() - first_group;
  return task;
}

}  // namespace limpid
