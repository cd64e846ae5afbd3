// Which instruction set's kernels run. isa_list.h has the sets that kernels are compiled for.
#pragma once

#include <cstddef>
#include <string_view>

#include "executor/cpu/kernels.h"

namespace limpid {

struct Isa {
  std::string_view name;
  const Kernels* kernels;
  size_t number;  // its place in LIMPID_FOR_EACH_ISA, for other tables of kernels
};

// How weights are read. The bits of the result are the same; CPUs differ in what they read fastest.
struct WeightReading {
  int float_streams = 0;        // of one token: FloatLinearTask::n_streams
  bool prefetch_packed = true;  // of one token and of two: LinearTask::prefetch
};
// The fastest way on this CPU, as far as it is known.
WeightReading weight_reading();

// By name; "" means LIMPID_ISA of the environment, and without it the best that this CPU has.
// Throws ArgumentError, listing what there is, for a name that is unknown or that this CPU lacks.
const Isa& choose_isa(std::string_view name);

}  // namespace limpid
