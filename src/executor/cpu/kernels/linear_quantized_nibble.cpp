// The products with 4-bit codes.
#include "executor/cpu/kernels/linear_quantized-inl.h"
#include "executor/cpu/kernels/linear_quantized.h"

namespace limpid::LIMPID_ISA {

void linear_q4_0(const LinearTask& task) { BlockKernel<PackedFormat::kQ4_0>::linear(task); }
void linear_q4_1(const LinearTask& task) { BlockKernel<PackedFormat::kQ4_1>::linear(task); }
void linear_q4_k(const LinearTask& task) { BlockKernel<PackedFormat::kQ4_K>::linear(task); }
void linear_q2_k(const LinearTask& task) { BlockKernel<PackedFormat::kQ2_K>::linear(task); }

}  // namespace limpid::LIMPID_ISA
