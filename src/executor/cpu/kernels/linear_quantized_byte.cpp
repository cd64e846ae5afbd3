// The products with codes that are multiplied as 8-bit numbers.
#include "executor/cpu/kernels/linear_quantized-inl.h"

namespace limpid::LIMPID_ISA {

template void linear_packed<DType::kQ8_0>(const LinearTask&);
template void linear_packed<DType::kIQ4_NL>(const LinearTask&);
template void linear_packed<DType::kIQ4_XS>(const LinearTask&);

}  // namespace limpid::LIMPID_ISA
