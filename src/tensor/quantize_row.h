// Makes quantised rows for files. Where encode_row (codec.h) follows the plain rule of each format,
// this searches for the scales with the least error.
#pragma once

#include <cstddef>
#include <span>

#include "tensor/dtype.h"

namespace limpid {

// Whether quantize_row knows `dtype`: F32, F16, BF16 and every block format.
bool can_quantize(DType dtype);

// Quantises a row, a whole number of blocks. `importance`: how much the square of each element's
// error counts, >= 0 (in an importance matrix the mean square of the activation that meets it), as
// many as there are values; empty: no knowledge. Deterministic: the same bytes on every machine.
// Values that are not finite give bytes that mean nothing. Throws UnsupportedError, ShapeError.
void quantize_row(DType dtype, std::span<const float> values, std::span<const float> importance,
                  std::byte* destination);

}  // namespace limpid
