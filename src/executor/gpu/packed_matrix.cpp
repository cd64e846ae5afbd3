#include "executor/gpu/packed_matrix.h"

#include "tensor/tensor.h"

namespace limpid::gpu {

Planes planes_of(DType dtype) {
  static constexpr Planes kPlanes[] = {
      // in the order of DType
      {4, 0, 0, 1, 2, 4},   // Q4_0
      {4, 0, 0, 1, 4, 4},   // Q4_1
      {4, 1, 0, 1, 2, 4},   // Q5_0
      {4, 1, 0, 1, 4, 4},   // Q5_1
      {8, 0, 0, 1, 2, 4},   // Q8_0
      {2, 0, 1, 2, 4, 32},  // Q2_K
      {2, 1, 1, 2, 2, 32},  // Q3_K
      {4, 0, 2, 4, 4, 32},  // Q4_K
      {4, 1, 2, 4, 4, 32},  // Q5_K
      {4, 2, 1, 2, 2, 32},  // Q6_K
      {4, 0, 0, 1, 2, 4},   // IQ4_NL
      {4, 0, 1, 4, 2, 32},  // IQ4_XS
  };
  if (!is_quantized(dtype)) return {8 * dtype_info(dtype).block_bytes, 0, 0, 1, 0, 1};
  return kPlanes[static_cast<int>(dtype) - static_cast<int>(DType::kQ4_0)];
}

uint64_t packed_bytes(DType dtype, int64_t rows, int64_t cols) {
  tensor_bytes(dtype, Shape{rows, cols});  // throws for what no file can hold
  const Planes planes = planes_of(dtype);
  const auto n = static_cast<uint64_t>(rows * octets_of_row(cols));
  return n * (planes.q_bytes + planes.high_bytes) + n / planes.scale_octets * planes.scale_bytes +
         n / planes.d_octets * planes.d_bytes;
}

}  // namespace limpid::gpu
