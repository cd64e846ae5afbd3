// Makes quantised rows for files. Where encode_row (codec.h) follows the plain rule of each format,
// this searches for the scales with the least error.
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
  // The mean activation, one per column; empty: unknown. With it some elements
  // go to the second nearest level, so that the row's error has little product with the mean
  // (quantize_drift.h).
  std::span<const float> mean{};
  // Of a column's activation about its mean: this times its importance (or 1). Used with `mean`.
  float variance = 0;
};

// Quantises a row, a whole number of blocks. Deterministic: the same bytes on every machine.
// Values that are not finite give arbitrary bytes. Throws UnsupportedError, ShapeError.
void quantize_row(DType dtype, std::span<const float> values, const ColumnFacts& facts,
                  std::byte* destination);

}  // namespace limpid
