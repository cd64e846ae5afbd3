#include <type_traits>

#include "executor/cpu/isa.h"
#include "executor/cpu/isa_list.h"
#include "train/microgpt/fast_model.h"
#include "train/microgpt/graph_kernels.h"

namespace limpid {

LIMPID_FOR_EACH_ISA(LIMPID_DECLARE_KERNELS, microgpt::FastKernels<float> kFastKernels32)
LIMPID_FOR_EACH_ISA(LIMPID_DECLARE_KERNELS, microgpt::FastKernels<double> kFastKernels64)
LIMPID_FOR_EACH_ISA(LIMPID_DECLARE_KERNELS, microgpt::GraphKernels kGraphKernels)

namespace microgpt {

template <typename T>
const FastKernels<T>& fast_kernels() {
  const size_t number = choose_isa("").number;
  if constexpr (std::is_same_v<T, float>) {
    static constexpr const FastKernels<T>* kEntries[] = {
        LIMPID_FOR_EACH_ISA(LIMPID_KERNELS_ENTRY, kFastKernels32)};
    return *kEntries[number];
  } else {
    static constexpr const FastKernels<T>* kEntries[] = {
        LIMPID_FOR_EACH_ISA(LIMPID_KERNELS_ENTRY, kFastKernels64)};
    return *kEntries[number];
  }
}
template const FastKernels<float>& fast_kernels<float>();
template const FastKernels<double>& fast_kernels<double>();

const GraphKernels& graph_kernels() {
  static constexpr const GraphKernels* kEntries[] = {
      LIMPID_FOR_EACH_ISA(LIMPID_KERNELS_ENTRY, kGraphKernels)};
  return *kEntries[choose_isa("").number];
}

}  // namespace microgpt
}  // namespace limpid
