#include <algorithm>
#include <string_view>
#include <type_traits>

#include "executor/cpu/isa.h"
#include "executor/cpu/isa_list.h"
#include "train/microgpt/fast_model.h"
#include "train/microgpt/graph_kernels.h"

namespace limpid {

#define LIMPID_DECLARE(isa)                                    \
  namespace isa_##isa {                                        \
    extern const microgpt::FastKernels<float> kFastKernels32;  \
    extern const microgpt::FastKernels<double> kFastKernels64; \
    extern const microgpt::GraphKernels kGraphKernels;         \
  }
LIMPID_FOR_EACH_ISA(LIMPID_DECLARE)
#undef LIMPID_DECLARE

namespace microgpt {
namespace {

// The kernels of one instruction set.
struct KernelSet {
  std::string_view isa;
  const FastKernels<float>* of_float;
  const FastKernels<double>* of_double;
  const GraphKernels* of_graphs;
};

#define LIMPID_SET(isa)                                                   \
  KernelSet{#isa, &isa_##isa::kFastKernels32, &isa_##isa::kFastKernels64, \
            &isa_##isa::kGraphKernels},
constexpr KernelSet kSets[] = {LIMPID_FOR_EACH_ISA(LIMPID_SET)};
#undef LIMPID_SET

const KernelSet& choose() {
  return *std::ranges::find(kSets, choose_isa("").name, &KernelSet::isa);
}

}  // namespace

template <typename T>
const FastKernels<T>& fast_kernels() {
  const KernelSet& chosen = choose();
  if constexpr (std::is_same_v<T, float>) {
    return *chosen.of_float;
  } else {
    return *chosen.of_double;
  }
}

const GraphKernels& graph_kernels() { return *choose().of_graphs; }

template const FastKernels<float>& fast_kernels<float>();
template const FastKernels<double>& fast_kernels<double>();

}  // namespace microgpt
}  // namespace limpid
