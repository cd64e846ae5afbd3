// The product with 6-bit codes, stored as a nibble and a pair of bits.
#include "executor/cpu/kernels/linear_quantized-inl.h"

namespace limpid::LIMPID_ISA {

template void linear_packed<PackedFormat::kQ6_K>(const LinearTask&);

}  // namespace limpid::LIMPID_ISA
