#pragma once

#include <string_view>

#include "executor/cpu/isa_list.h"
#include "executor/probe/probe.h"

namespace limpid {

#define LIMPID_DECLARE(isa)    \
  namespace isa_##isa {        \
    extern const Probe kProbe; \
  }
LIMPID_FOR_EACH_ISA(LIMPID_DECLARE)
#undef LIMPID_DECLARE

// Of an instruction set that available_isas() names.
inline const Probe& probe_of(std::string_view name) {
#define LIMPID_FIND(isa) \
  if (name == #isa) return isa_##isa::kProbe;
  LIMPID_FOR_EACH_ISA(LIMPID_FIND)
#undef LIMPID_FIND
  return isa_scalar::kProbe;
}

}  // namespace limpid
