// The quantised product of any format: linear_quantized_*.cpp compile one instance for each.
#include "executor/cpu/kernels.h"

namespace limpid::LIMPID_ISA {

template <PackedFormat kFormat>
void linear_packed(const LinearTask& task);

void linear_quantized(const LinearTask& task) {
  switch (task.format) {
    case PackedFormat::kQ4_0:
      return linear_packed<PackedFormat::kQ4_0>(task);
    case PackedFormat::kQ4_1:
      return linear_packed<PackedFormat::kQ4_1>(task);
    case PackedFormat::kQ4_K:
      return linear_packed<PackedFormat::kQ4_K>(task);
    case PackedFormat::kQ2_K:
      return linear_packed<PackedFormat::kQ2_K>(task);
    case PackedFormat::kQ8_0:
      return linear_packed<PackedFormat::kQ8_0>(task);
    case PackedFormat::kQ5_1:
      return linear_packed<PackedFormat::kQ5_1>(task);
    case PackedFormat::kQ5_K:
      return linear_packed<PackedFormat::kQ5_K>(task);
    case PackedFormat::kIQ4_XS:
      return linear_packed<PackedFormat::kIQ4_XS>(task);
    case PackedFormat::kQ6_K:
      return linear_packed<PackedFormat::kQ6_K>(task);
  }
}

}  // namespace limpid::LIMPID_ISA
