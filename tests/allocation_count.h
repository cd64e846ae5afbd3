// How often a test program has allocated; counted where a file includes allocation_counter.h.
#pragma once

#include <atomic>
#include <cstdint>

namespace limpid::testing {

inline std::atomic<int64_t> n_allocations{0};

}  // namespace limpid::testing
