// The table of the kernels of this instruction set.
#include "executor/cpu/kernels.h"

namespace limpid::LIMPID_ISA {

const Kernels kKernels = {
#define LIMPID_KERNEL(result, name, parameters) name,
#include "executor/cpu/kernel_list.h"
};

}  // namespace limpid::LIMPID_ISA
