#include "executor/gpu/packed_matrix.h"

#include "tensor/code_form.h"
#include "tensor/tensor.h"

namespace limpid::gpu {

// A bit of a code is a byte of an octet.
Planes planes_of(DType dtype) {
  if (!is_quantized(dtype)) return {8 * dtype_info(dtype).block_bytes, 0, 0, 1, 0, 1};
  const CodeForm form = code_form(dtype);
  const auto q_bytes = static_cast<uint32_t>(form.low_bits);
  const auto high_bytes = static_cast<uint32_t>(form.high_bits);
  const uint32_t d_bytes = form.has_minimum ? 4 : 2;
  if (form.scales_are_f16) return {q_bytes, high_bytes, 0, 1, d_bytes, 4};
  // A byte for the scale and one for the minimum; Q2_K has four bits for each.
  const uint32_t scale_bytes = form.has_minimum && dtype != DType::kQ2_K ? 2 : 1;
  return {q_bytes, high_bytes, scale_bytes, static_cast<uint32_t>(form.scale_cols / kOctet),
          d_bytes, 32};
}

uint64_t packed_bytes(DType dtype, int64_t rows, int64_t cols) {
  tensor_bytes(dtype, Shape{rows, cols});  // throws for what no file can hold
  const Planes planes = planes_of(dtype);
  const auto n = static_cast<uint64_t>(rows * octets_of_row(cols));
  return n * (planes.q_bytes + planes.high_bytes) + n / planes.scale_octets * planes.scale_bytes +
         n / planes.d_octets * planes.d_bytes;
}

}  // namespace limpid::gpu
