#include "executor/cpu/quantized_kernels.h"

namespace limpid {

namespace isa_scalar {
extern const QuantizedKernels kQuantizedKernels;
}
#if defined(__x86_64__)
namespace isa_avx2 {
extern const QuantizedKernels kQuantizedKernels;
}
namespace isa_avx512 {
extern const QuantizedKernels kQuantizedKernels;
}
namespace isa_avx512vnni {
extern const QuantizedKernels kQuantizedKernels;
}
#elif defined(__aarch64__)
namespace isa_neon {
extern const QuantizedKernels kQuantizedKernels;
}
#endif

const QuantizedKernels* quantized_kernels(std::string_view isa) {
  if (isa == "scalar") return &isa_scalar::kQuantizedKernels;
#if defined(__x86_64__)
  if (isa == "avx2") return &isa_avx2::kQuantizedKernels;
  if (isa == "avx512") return &isa_avx512::kQuantizedKernels;
  if (isa == "avx512vnni") return &isa_avx512vnni::kQuantizedKernels;
#elif defined(__aarch64__)
  if (isa == "neon") return &isa_neon::kQuantizedKernels;
#endif
  return nullptr;
}

}  // namespace limpid
