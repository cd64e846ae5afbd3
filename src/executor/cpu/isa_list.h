// The instruction sets that kernels are compiled for on this kind of CPU, best first: calls
// DO(name, of) for each. This is the one list of them. cmake/limpid_isas.cmake reads these lines
// and has the compiler's flags of each set; isa.cpp asks the CPU for each with a function
// has_<name>.
#pragma once

#if defined(__x86_64__)
#define LIMPID_FOR_EACH_ISA(DO, of) \
  DO(avx512bf16, of) DO(avx512vnni, of) DO(avx512, of) DO(avx2vnni, of) DO(avx2, of) DO(scalar, of)
#elif defined(__aarch64__)
#define LIMPID_FOR_EACH_ISA(DO, of) DO(neon, of) DO(scalar, of)
#else
#define LIMPID_FOR_EACH_ISA(DO, of) DO(scalar, of)
#endif

// A table of kernels is defined once in the namespace of each instruction set. To choose one:
//
//   LIMPID_FOR_EACH_ISA(LIMPID_DECLARE_KERNELS, RowKernels kRowKernels)
//   constexpr const RowKernels* kEntries[] = {
//       LIMPID_FOR_EACH_ISA(LIMPID_KERNELS_ENTRY, kRowKernels)};
//   const RowKernels& kernels = *kEntries[choose_isa("").number];
#define LIMPID_DECLARE_KERNELS(isa, kernels) \
  namespace isa_##isa {                      \
    extern const kernels;                    \
  }
#define LIMPID_KERNELS_ENTRY(isa, name) &isa_##isa::name,
