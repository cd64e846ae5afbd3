#include "executor/cpu/isa.h"

#include <cstdlib>
#include <utility>
#include <vector>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include <fmt/ranges.h>

#include "base/check.h"
#include "executor/cpu/isa_list.h"
#include "executor/executors.h"

namespace limpid {

LIMPID_FOR_EACH_ISA(LIMPID_DECLARE_KERNELS, Kernels kKernels)

namespace {

#if defined(__x86_64__)

// `signature` is the first part of the maker's name, as cpuid.h has it.
bool is_made_by(unsigned signature) {
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid(0, &a, &b, &c, &d) != 0 && b == signature;
}

// Features of the CPU that __builtin_cpu_supports does not know by name in every version of the
// compilers that build Limpid.
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

bool has_avx2vnni() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  constexpr unsigned kAvxVnni = 1U << 4;
  return has_avx2() && __get_cpuid_count(7, 1, &a, &b, &c, &d) != 0 && (a & kAvxVnni) != 0;
}

bool has_avx512() {
  return has_avx2() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
         __builtin_cpu_supports("avx512cd");
}

bool has_avx512vnni() { return has_avx512() && __builtin_cpu_supports("avx512vnni"); }

bool has_avx512bf16() { return has_avx512vnni() && __builtin_cpu_supports("avx512bf16"); }

#elif defined(__aarch64__)

bool has_neon() { return true; }

#endif

bool has_scalar() { return true; }

std::vector<Isa> detect() {
  std::vector<Isa> found;
  size_t number = 0;
#define LIMPID_ADD(isa, kernels)                          \
  if (has_##isa()) {                                      \
    found.push_back({#isa, &isa_##isa::kernels, number}); \
  }                                                       \
  ++number;
  LIMPID_FOR_EACH_ISA(LIMPID_ADD, kKernels)
#undef LIMPID_ADD
#if defined(__x86_64__)
  // avx512bf16 is avx512vnni with one more instruction, which multiplies pairs of bf16. On AMD it
  // has twice the rate of f32, but half of it on Intel (Emerald Rapids: 171 and 349 GFLOP/s on two
  // threads), where products of bf16 are 1.36 times as fast without it.
  if (found.front().name == "avx512bf16" && is_made_by(signature_INTEL_ebx))
    std::swap(found[0], found[1]);
#endif
  return found;
}

const std::vector<Isa>& detected() {
  static const std::vector<Isa> isas = detect();
  return isas;
}

}  // namespace

// Software prefetching pays on most CPUs.
//
// On AMD Zen 4 (EPYC, model 17) the hardware alone reads ahead better while the arithmetic is
// short. Decode of the Llama-3.2-1B shape without software prefetching, as a multiple of the speed
// with it: on one thread 1.07 (Q8_0), 1.15 (Q4_0), 1.29 (Q4_K_M); on two threads, where memory is
// the limit, 1.01, 1.14 and 1.07. With 8 tokens it is 0.83 (Q8_0) and 0.77 (Q4_K_M). In F16, with
// two threads in turns, one stream is 1.33 times as fast as prefetching, and as multiples of one
// stream two are 1.09, three 1.12, four 1.15, six 1.16 and eight 1.0 to 1.1. Two neighbouring rows
// read together are 0.6.
//
// On AMD Zen 5 (EPYC, model 2; other models were not measured), two threads, the F16 shape in
// turns: two streams are 1.11 to 1.14 times as fast as prefetching while the host's memory gives 75
// GB/s, and as fast while it gives 40. Packed weights are prefetched.
WeightReading weight_reading() {
#if defined(__x86_64__)
  struct Models {
    unsigned family, first, last;
    WeightReading reading;
  };
  constexpr WeightReading kZen4{.float_streams = 4, .prefetch_packed = false};
  constexpr WeightReading kZen5{.float_streams = 2, .prefetch_packed = true};
  constexpr Models kKnown[] = {{25, 0x10, 0x1F, kZen4}, {25, 0x60, 0x7F, kZen4},
                               {25, 0xA0, 0xAF, kZen4}, {26, 0x00, 0x2F, kZen5},
                               {26, 0x40, 0x4F, kZen5}, {26, 0x60, 0x77, kZen5}};
  unsigned a = 0, b = 0, c = 0, d = 0;
  if (!is_made_by(signature_AMD_ebx) || __get_cpuid(1, &a, &b, &c, &d) == 0) return {};
  const unsigned family = ((a >> 8) & 0xF) + ((a >> 20) & 0xFF);
  const unsigned model = ((a >> 4) & 0xF) | ((a >> 12) & 0xF0);
  for (const Models& each : kKnown) {
    if (each.family == family && each.first <= model && model <= each.last) return each.reading;
  }
#endif
  return {};
}

const Isa& choose_isa(std::string_view name) {
  const bool is_of_environment = name.empty();
  if (is_of_environment) {
    const char* wanted = std::getenv("LIMPID_ISA");
    if (wanted == nullptr || *wanted == '\0') return detected().front();
    name = wanted;
  }
  for (const Isa& isa : detected()) {
    if (isa.name == name) return isa;
  }
  throw ArgumentError(fmt::format("{}instruction set `{}` is not available here; there are {}",
                                  is_of_environment ? "LIMPID_ISA: " : "", name,
                                  fmt::join(available_isas(), ", ")));
}

std::vector<std::string_view> available_isas() {
  std::vector<std::string_view> names;
  for (const Isa& isa : detected()) names.push_back(isa.name);
  return names;
}

}  // namespace limpid
