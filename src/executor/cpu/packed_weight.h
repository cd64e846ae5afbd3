// A quantised matrix, packed once into the layout that decode, small batches and prefill all read.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/aligned_buffer.h"
#include "base/divide_up.h"
#include "base/thread_pool.h"
#include "executor/cpu/quantized_linear.h"
#include "executor/executor.h"
#include "tensor/tensor.h"

namespace limpid {

// Bytes of a group of 16 rows of a quantised dtype. Throws UnsupportedError for another dtype.
int64_t packed_group_bytes(const TensorView& source);

// Packs groups [begin, end) of `source`, [rows, cols] of any quantised dtype, to `packed`. With
// kInterleavedPairs the rows of each head of `head_dim` rows are put into half-split order: row 2i
// of the source becomes row i of the head, row 2i + 1 becomes row i + head_dim / 2.
void pack_groups(const TensorView& source, RowOrder row_order, int64_t head_dim, int64_t begin,
                 int64_t end, std::byte* packed);

class PackedWeight {
 public:
  PackedWeight() = default;

  // Packs all groups of `source`, whose rows are whole heads (check_heads), on the threads of
  // `pool`. Throws UnsupportedError for a dtype that is not quantised, ResourceError without
  // memory.
  PackedWeight(const TensorView& source, RowOrder row_order, int64_t head_dim, ThreadPool& pool);

  // Bytes that packing `source` takes. Throws UnsupportedError, and ShapeError when it is too
  // large.
  static uint64_t packed_bytes(const TensorView& source);

  int64_t rows() const { return rows_; }
  int64_t cols() const { return cols_; }
  int64_t n_groups() const { return divide_up(rows_, kGroupRows); }
  DType dtype() const { return dtype_; }
  const std::byte* data() const { return data_.data(); }
  uint64_t n_bytes() const { return data_.size(); }

  // A task for the groups of this weight from `first_group` on, which it counts from 0; the caller
  // adds x, n_tokens, y, y_stride, bias and narrows the range of groups.
  LinearTask task(int64_t first_group = 0) const;

 private:
  AlignedBuffer data_;
  int64_t rows_ = 0;
  int64_t cols_ = 0;
  DType dtype_ = DType::kQ8_0;
};

}  // namespace limpid
