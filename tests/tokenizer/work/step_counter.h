// Counts what the sources of src/tokenizer do, in this program only: they are compiled for it with
// a call at the beginning of every basic block (-fsanitize-coverage=trace-pc), so each turn of each
// loop is a step, and nothing in them knows. What libraries do is not counted.
#pragma once

#include <cstdint>

namespace limpid::testing {

// The number of blocks that were entered so far.
uint64_t n_steps();

// How many blocks the function enters.
template <class Function>
uint64_t steps_of(Function&& function) {
  const uint64_t before = n_steps();
  function();
  return n_steps() - before;
}

}  // namespace limpid::testing
