// Counts what a test program allocates. It replaces the global operator new, so one file of a
// program includes it, and no other.
#pragma once

#include <cstdlib>
#include <new>

#include "allocation_count.h"

namespace limpid::testing {

inline void* count_and_try(size_t size) noexcept {
  n_allocations.fetch_add(1, std::memory_order_relaxed);
  n_allocated_bytes.fetch_add(static_cast<int64_t>(size), std::memory_order_relaxed);
  return std::malloc(size == 0 ? 1 : size);
}

inline void* count_and_allocate(size_t size) {
  void* memory = count_and_try(size);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

}  // namespace limpid::testing

// All of them, or a sanitizer sees memory of its own given to our free.
void* operator new(size_t size) { return limpid::testing::count_and_allocate(size); }
void* operator new[](size_t size) { return limpid::testing::count_and_allocate(size); }
void* operator new(size_t size, const std::nothrow_t&) noexcept {
  return limpid::testing::count_and_try(size);
}
void* operator new[](size_t size, const std::nothrow_t&) noexcept {
  return limpid::testing::count_and_try(size);
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, size_t) noexcept { std::free(memory); }
void operator delete[](void* memory, size_t) noexcept { std::free(memory); }
void operator delete(void* memory, const std::nothrow_t&) noexcept { std::free(memory); }
void operator delete[](void* memory, const std::nothrow_t&) noexcept { std::free(memory); }
