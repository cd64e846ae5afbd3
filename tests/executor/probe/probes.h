#pragma once

#include <string_view>

#include "executor/cpu/isa_list.h"
#include "executor/probe/probe.h"

namespace limpid {

LIMPID_FOR_EACH_ISA(LIMPID_DECLARE_KERNELS, Probe kProbe)

// Of an instruction set that available_isas() names.
inline const Probe& probe_of(std::string_view name) {
#define LIMPID_FIND(isa, probe) \
  if (name == #isa) return isa_##isa::probe;
  LIMPID_FOR_EACH_ISA(LIMPID_FIND, kProbe)
#undef LIMPID_FIND
  return isa_scalar::kProbe;
}

}  // namespace limpid
