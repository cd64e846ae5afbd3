#include "executor/cpu/isa.h"

#include <cstdlib>
#include <string>
#include <vector>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include <fmt/ranges.h>

#include "base/check.h"
#include "executor/cpu/isa_list.h"
#include "executor/executors.h"

namespace limpid {

#define LIMPID_DECLARE(isa)        \
  namespace isa_##isa {            \
    extern const Kernels kKernels; \
  }
LIMPID_FOR_EACH_ISA(LIMPID_DECLARE)
#undef LIMPID_DECLARE

namespace {

#if defined(__x86_64__)

// What the compiler's own test of the CPU does not know by name in every version that we build
// with.
bool has_f16c_and_lzcnt() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  if (__get_cpuid(1, &a, &b, &c, &d) == 0 || (c & bit_F16C) == 0) return false;
  constexpr unsigned kLzcnt = 1U << 5;
  return __get_cpuid(0x8000'0001, &a, &b, &c, &d) != 0 && (c & kLzcnt) != 0;
}

bool has_avx2() {
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
         __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2") && has_f16c_and_lzcnt();
}

bool has_avx512() {
  return has_avx2() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
         __builtin_cpu_supports("avx512cd");
}

bool has_avx512vnni() { return has_avx512() && __builtin_cpu_supports("avx512vnni"); }

#elif defined(__aarch64__)

bool has_neon() { return true; }

#endif

bool has_scalar() { return true; }

std::vector<Isa> detect() {
  std::vector<Isa> found;
#define LIMPID_ADD(isa) \
  if (has_##isa()) found.push_back({#isa, &isa_##isa::kKernels});
  LIMPID_FOR_EACH_ISA(LIMPID_ADD)
#undef LIMPID_ADD
  return found;
}

const std::vector<Isa>& detected() {
  static const std::vector<Isa> isas = detect();
  return isas;
}

}  // namespace

const Isa& choose_isa(std::string_view name) {
  if (name.empty()) {
    const char* wanted = std::getenv("LIMPID_ISA");
    if (wanted == nullptr || *wanted == '\0') return detected().front();
    name = wanted;
  }
  for (const Isa& isa : detected()) {
    if (isa.name == name) return isa;
  }
  throw ArgumentError(fmt::format("instruction set `{}` is not available here; there are {}", name,
                                  fmt::join(available_isas(), ", ")));
}

std::vector<std::string_view> available_isas() {
  std::vector<std::string_view> names;
  for (const Isa& isa : detected()) names.push_back(isa.name);
  return names;
}

}  // namespace limpid
