// The product with 6-bit codes, stored as a nibble and a pair of bits.
#include "executor/cpu/kernels/linear_quantized-inl.h"
#include "executor/cpu/kernels/linear_quantized.h"

namespace limpid::LIMPID_ISA {

void linear_q6_k(const LinearTask& task) { BlockKernel<PackedFormat::kQ6_K>::linear(task); }

}  // namespace limpid::LIMPID_ISA
