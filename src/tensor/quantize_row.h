// Makes quantised rows for files.
//
// A block stores one number, the scale, in half precision, and a small integer, the level, for each
// element: x is about scale * level. The plain rule of a format takes the largest element to the
// outermost level. Here scales are searched for instead, in three steps:
//
//   1. quantize_fit.h searches for the scale, and the offset where the format has one, with the
//      least squared error; quantize_super_block.h does so where scales are integers themselves.
//   2. In blocks of 256, quantize_gain.h multiplies the scales by a factor near 1, so that products
//      with the row are not too small.
//   3. quantize_drift.h moves a few levels, so that the errors of the row cancel in a product with
//      the mean activation.
//
// Steps 1 and 3 use statistics of the activations, if the caller has them.
#pragma once

#include <cstddef>
#include <span>

#include "tensor/dtype.h"

namespace limpid {

// Statistics of the activations that the columns of a matrix are multiplied with.
struct ColumnFacts {
  // How much the square of each element's error counts, >= 0 (in an importance matrix the mean
  // square of the activation), one per column; empty: unknown.
  std::span<const float> importance{};
  // The mean activation, one per column; empty: unknown. If it is known, some elements go to the
  // second nearest level, so that the product of the row's error with the mean is small
  // (quantize_drift.h).
  std::span<const float> mean{};
  // The variance of a column's activation is this number times the column's importance (times 1 if
  // the importance is unknown). Used with `mean`.
  float variance = 0;
};

// Writes `values`, the elements of one row, as blocks of type `dtype` (or as F32, F16 or BF16) to
// `destination`, which has room for tensor_bytes(dtype, [values.size()]) bytes. Deterministic: the
// same bytes on every machine. Values that are not finite become arbitrary bytes. Throws
// UnsupportedError for a type that rows cannot be quantised to; ShapeError when the row is not a
// whole number of blocks, or when `facts` has another number of columns. F32, F16 and BF16 do not
// use `facts`.
void quantize_row(DType dtype, std::span<const float> values, const ColumnFacts& facts,
                  std::byte* destination);

}  // namespace limpid
