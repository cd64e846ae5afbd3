// The instruction sets that kernels are compiled for on this kind of CPU, best first: calls
// DO(name) for each. This is the one list of them. cmake/limpid_isas.cmake reads these lines and
// has the compiler's flags of each set; isa.cpp asks the CPU for each with a function has_<name>.
#pragma once

#if defined(__x86_64__)
#define LIMPID_FOR_EACH_ISA(DO) \
  DO(avx512bf16) DO(avx512vnni) DO(avx512) DO(avx2vnni) DO(avx2) DO(scalar)
#elif defined(__aarch64__)
#define LIMPID_FOR_EACH_ISA(DO) DO(neon) DO(scalar)
#else
#define LIMPID_FOR_EACH_ISA(DO) DO(scalar)
#endif
