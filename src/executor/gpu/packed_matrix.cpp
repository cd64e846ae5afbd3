#include "executor/gpu/packed_matrix.h"

#include "tensor/tensor.h"

namespace limpid::gpu {
namespace {

// What a block of 256 columns takes beyond the bytes of the file: twelve bytes of packed scales
// become sixteen, six become eight.
uint64_t more_than_in_file(DType dtype) {
  switch (dtype) {
    case DType::kQ3_K:
    case DType::kQ4_K:
    case DType::kQ5_K:
      return 4;
    case DType::kIQ4_XS:
      return 2;
    default:
      return 0;
  }
}

}  // namespace

uint64_t packed_bytes(DType dtype, int64_t rows, int64_t cols) {
  if (!is_quantized(dtype)) return tensor_bytes(dtype, Shape{rows, octets_of_row(cols) * kOctet});
  const uint64_t of_file = tensor_bytes(dtype, Shape{rows, cols});
  const uint64_t n_blocks = static_cast<uint64_t>(rows) * static_cast<uint64_t>(cols) / 256;
  return of_file + n_blocks * more_than_in_file(dtype);
}

}  // namespace limpid::gpu
