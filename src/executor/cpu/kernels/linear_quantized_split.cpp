// The products with codes of 3, 5 and 6 bits, which are stored in two parts.
#include "executor/cpu/kernels/linear_quantized-inl.h"

namespace limpid::LIMPID_ISA {

template void linear_packed<DType::kQ3_K>(const LinearTask&);
template void linear_packed<DType::kQ5_0>(const LinearTask&);
template void linear_packed<DType::kQ5_1>(const LinearTask&);
template void linear_packed<DType::kQ5_K>(const LinearTask&);
template void linear_packed<DType::kQ6_K>(const LinearTask&);

}  // namespace limpid::LIMPID_ISA
