// The products with 8-bit codes.
#include "executor/cpu/kernels/linear_quantized-inl.h"
#include "executor/cpu/kernels/linear_quantized.h"

namespace limpid::LIMPID_ISA {

void linear_q8_0(const LinearTask& task) { BlockKernel<PackedFormat::kQ8_0>::linear(task); }
void linear_q5_1(const LinearTask& task) { BlockKernel<PackedFormat::kQ5_1>::linear(task); }
void linear_q5_k(const LinearTask& task) { BlockKernel<PackedFormat::kQ5_K>::linear(task); }
void linear_iq4_xs(const LinearTask& task) { BlockKernel<PackedFormat::kIQ4_XS>::linear(task); }

}  // namespace limpid::LIMPID_ISA
