// The products with 8-bit codes.
#include "executor/cpu/kernels/linear_quantized-inl.h"

namespace limpid::LIMPID_ISA {

template void linear_packed<PackedFormat::kQ8_0>(const LinearTask&);
template void linear_packed<PackedFormat::kQ5_1>(const LinearTask&);
template void linear_packed<PackedFormat::kQ5_K>(const LinearTask&);
template void linear_packed<PackedFormat::kIQ4_XS>(const LinearTask&);

}  // namespace limpid::LIMPID_ISA
