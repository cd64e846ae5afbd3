// How much memory is free.
#pragma once

#include <cstdint>

namespace limpid {

// Bytes that can be allocated without swapping: the system's estimate (MemAvailable), or what the
// control group still allows if that is less. 0: unknown.
uint64_t available_memory();

// Bytes that this process could have at most: the machine's, or the control group's limit if that
// is less. 0: unknown.
uint64_t total_memory();

}  // namespace limpid
