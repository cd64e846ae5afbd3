// The products with codes of 2 and 4 bits.
#include "executor/cpu/kernels/linear_quantized-inl.h"

namespace limpid::LIMPID_ISA {

template void linear_packed<DType::kQ4_0>(const LinearTask&);
template void linear_packed<DType::kQ4_1>(const LinearTask&);
template void linear_packed<DType::kQ4_K>(const LinearTask&);
template void linear_packed<DType::kQ2_K>(const LinearTask&);

}  // namespace limpid::LIMPID_ISA
