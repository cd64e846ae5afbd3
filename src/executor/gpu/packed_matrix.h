// How matrices lie on a device: the host's side of kernels/octets.cl.h.
#pragma once

#include <cstdint>

#include "base/divide_up.h"
#include "tensor/dtype.h"

namespace limpid::gpu {

// Columns that a kernel decodes together. Rows of plain types are filled up with zeros to whole
// octets; those of quantised types consist of them.
inline constexpr int64_t kOctet = 8;
constexpr int64_t octets_of_row(int64_t cols) { return divide_up(cols, kOctet); }

// The planes of a type, in the order in which they lie: bytes of an entry (0: the type
// lacks the plane), and how many octets share it.
struct Planes {
  uint32_t q_bytes;
  uint32_t high_bytes;
  uint32_t scale_bytes;
  uint32_t scale_octets;
  uint32_t d_bytes;
  uint32_t d_octets;
};
Planes planes_of(DType dtype);

// Bytes on the device of a matrix [rows, cols] of a type that has a matrix program: those of the
// file and, for types whose scales of six bits are unpacked to bytes, up to 3.7 % more. Throws
// ShapeError on overflow.
uint64_t packed_bytes(DType dtype, int64_t rows, int64_t cols);

}  // namespace limpid::gpu
