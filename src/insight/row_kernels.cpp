#include "insight/row_kernels.h"

#include <algorithm>
#include <string_view>

#include "executor/cpu/isa.h"
#include "executor/cpu/isa_list.h"

namespace limpid {

#define LIMPID_DECLARE(isa)              \
  namespace isa_##isa {                  \
    extern const RowKernels kRowKernels; \
  }
LIMPID_FOR_EACH_ISA(LIMPID_DECLARE)
#undef LIMPID_DECLARE

const RowKernels& row_kernels(const char* isa) {
  struct Entry {
    std::string_view isa;
    const RowKernels* kernels;
  };
#define LIMPID_ENTRY(isa) Entry{#isa, &isa_##isa::kRowKernels},
  static constexpr Entry kEntries[] = {LIMPID_FOR_EACH_ISA(LIMPID_ENTRY)};
#undef LIMPID_ENTRY
  return *std::ranges::find(kEntries, choose_isa(isa).name, &Entry::isa)->kernels;
}

double dot_f64(std::span<const float> x, std::span<const float> y) {
  constexpr size_t kSums = 4;
  double sums[kSums] = {};
  size_t i = 0;
  for (; i + kSums <= x.size(); i += kSums) {
    for (size_t j = 0; j < kSums; ++j)
      sums[j] += static_cast<double>(x[i + j]) * static_cast<double>(y[i + j]);
  }
  for (; i < x.size(); ++i) sums[0] += static_cast<double>(x[i]) * static_cast<double>(y[i]);
  return (sums[0] + sums[1]) + (sums[2] + sums[3]);
}

}  // namespace limpid
