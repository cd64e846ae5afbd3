#include <tuple>

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
using KernelSet =
    std::tuple<const FastKernels<float>*, const FastKernels<double>*, const GraphKernels*>;

#define LIMPID_SET(isa) \
  KernelSet{&isa_##isa::kFastKernels32, &isa_##isa::kFastKernels64, &isa_##isa::kGraphKernels},
constexpr KernelSet kSets[] = {LIMPID_FOR_EACH_ISA(LIMPID_SET)};
#undef LIMPID_SET

template <typename Chosen>
const Chosen& choose() {
  return *std::get<const Chosen*>(kSets[choose_isa("").number]);
}

}  // namespace

template <typename T>
const FastKernels<T>& fast_kernels() {
  return choose<FastKernels<T>>();
}

const GraphKernels& graph_kernels() { return choose<GraphKernels>(); }

template const FastKernels<float>& fast_kernels<float>();
template const FastKernels<double>& fast_kernels<double>();

}  // namespace microgpt
}  // namespace limpid
