#include "tokenizer/work/step_counter.h"

namespace {
uint64_t steps = 0;
}

extern "C" void __sanitizer_cov_trace_pc() { ++steps; }

uint64_t limpid::testing::n_steps() { return steps; }
