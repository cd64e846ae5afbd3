// Counts every allocation of the program: once warm, a step makes none.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <new>

#include "train/microgpt/engine.h"

namespace {

std::atomic<int64_t> n_allocations{0};

void* count_and_allocate(size_t size) {
  n_allocations.fetch_add(1, std::memory_order_relaxed);
  void* memory = std::malloc(size == 0 ? 1 : size);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

}  // namespace

void* operator new(size_t size) { return count_and_allocate(size); }
void* operator new[](size_t size) { return count_and_allocate(size); }
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, size_t) noexcept { std::free(memory); }
void operator delete[](void* memory, size_t) noexcept { std::free(memory); }

namespace limpid::microgpt {
namespace {

TEST(MicrogptAllocation, AWarmScalarStepAllocatesNothing) {
  Config config = preset("python");
  config.shape.vocab_size = 27;
  config.shape.n_layer = 2;
  PythonRandom random(1);
  const Matrices matrices(config.shape);
  const auto engine =
      make_scalar_engine(config, initial_weights(matrices, 0.08, RandomStyle::kPython, random));
  std::vector<std::vector<Token>> longest(1, std::vector<Token>(20, 3));
  std::vector<std::vector<Token>> shorter(1, std::vector<Token>(6, 5));
  const int64_t cold = n_allocations;
  for (int step = 0; step < 2; ++step) {
    engine->forward_backward(longest);
    engine->update(adam_step(config, step));
  }
  EXPECT_GT(n_allocations, cold);  // the counter counts
  const int64_t warm = n_allocations;
  for (int step = 2; step < 12; ++step) {
    engine->forward_backward(step % 2 == 0 ? shorter : longest);
    engine->update(adam_step(config, step));
  }
  EXPECT_EQ(n_allocations, warm);
}

}  // namespace
}  // namespace limpid::microgpt
