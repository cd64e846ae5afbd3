// The quantised product of any type: linear_quantized_*.cpp compile one instance for each.
#include "executor/cpu/kernels.h"

namespace limpid::LIMPID_ISA {

template <DType kType>
void linear_packed(const LinearTask& task);

void linear_quantized(const LinearTask& task) {
  using enum DType;
  static constexpr void (*kLinear[])(const LinearTask&) = {
      // in the order of DType
      linear_packed<kQ4_0>, linear_packed<kQ4_1>, linear_packed<kQ5_0>,   linear_packed<kQ5_1>,
      linear_packed<kQ8_0>, linear_packed<kQ2_K>, linear_packed<kQ3_K>,   linear_packed<kQ4_K>,
      linear_packed<kQ5_K>, linear_packed<kQ6_K>, linear_packed<kIQ4_NL>, linear_packed<kIQ4_XS>};
  kLinear[static_cast<int>(task.dtype) - static_cast<int>(kQ4_0)](task);
}

}  // namespace limpid::LIMPID_ISA
