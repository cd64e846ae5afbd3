// The quantised product of any format: linear_quantized_*.cpp compile one instance for each.
#include "executor/cpu/kernels.h"

namespace limpid::LIMPID_ISA {

template <PackedFormat kFormat>
void linear_packed(const LinearTask& task);

void linear_quantized(const LinearTask& task) {
  using enum PackedFormat;
  static constexpr void (*kLinear[])(const LinearTask&) = {
      // in the order of PackedFormat
      linear_packed<kQ4_0>,   linear_packed<kQ4_1>, linear_packed<kQ4_K>, linear_packed<kIQ4_NL>,
      linear_packed<kIQ4_XS>, linear_packed<kQ2_K>, linear_packed<kQ3_K>, linear_packed<kQ5_0>,
      linear_packed<kQ5_1>,   linear_packed<kQ5_K>, linear_packed<kQ6_K>, linear_packed<kQ8_0>};
  kLinear[static_cast<int>(task.format)](task);
}

}  // namespace limpid::LIMPID_ISA
