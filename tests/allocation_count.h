// How often a test program has allocated, and how much; counted where a file includes
// allocation_counter.h.
#pragma once

#include <atomic>
#include <cstdint>

namespace limpid::testing {

inline std::atomic<int64_t> n_allocations{0};
inline std::atomic<int64_t> n_allocated_bytes{0};  // what was freed since counts too

}  // namespace limpid::testing
