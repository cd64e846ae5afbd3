#include <cstdlib>
#include <string_view>
#include <type_traits>

#include "train/microgpt/fast_model.h"
#include "train/microgpt/graph_kernels.h"

namespace limpid {

#define LIMPID_DECLARE_KERNELS(isa)                          \
  namespace isa {                                            \
  extern const microgpt::FastKernels<float> kFastKernels32;  \
  extern const microgpt::FastKernels<double> kFastKernels64; \
  extern const microgpt::GraphKernels kGraphKernels;         \
  }
LIMPID_DECLARE_KERNELS(isa_scalar)
#if defined(__x86_64__)
LIMPID_DECLARE_KERNELS(isa_avx2)
LIMPID_DECLARE_KERNELS(isa_avx512)
#endif
#undef LIMPID_DECLARE_KERNELS

namespace microgpt {
namespace {

struct KernelSet {
  const FastKernels<float>* of_float;
  const FastKernels<double>* of_double;
  const GraphKernels* of_graphs;
};

KernelSet choose() {
#if defined(__x86_64__)
  const char* named = std::getenv("LIMPID_ISA");
  const std::string_view most = named == nullptr ? "avx512" : named;
  const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  const bool avx512 = avx2 && __builtin_cpu_supports("avx512f") &&
                      __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
                      __builtin_cpu_supports("avx512vl");
  if (avx512 && most.starts_with("avx512")) {
    return {&isa_avx512::kFastKernels32, &isa_avx512::kFastKernels64, &isa_avx512::kGraphKernels};
  }
  if (avx2 && most.starts_with("avx"))
    return {&isa_avx2::kFastKernels32, &isa_avx2::kFastKernels64, &isa_avx2::kGraphKernels};
#endif
  return {&isa_scalar::kFastKernels32, &isa_scalar::kFastKernels64, &isa_scalar::kGraphKernels};
}

}  // namespace

template <typename T>
const FastKernels<T>& fast_kernels() {
  const KernelSet chosen = choose();
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
