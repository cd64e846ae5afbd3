// Counts every allocation of the program: once warm, a step makes none.
#include <gtest/gtest.h>

#include "allocation_counter.h"
#include "train/microgpt/engine.h"

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
  const int64_t cold = testing::n_allocations;
  for (int step = 0; step < 2; ++step) {
    engine->forward_backward(longest);
    engine->update(adam_step(config, step));
  }
  EXPECT_GT(testing::n_allocations, cold);  // the counter counts
  const int64_t warm = testing::n_allocations;
  for (int step = 2; step < 12; ++step) {
    engine->forward_backward(step % 2 == 0 ? shorter : longest);
    engine->update(adam_step(config, step));
  }
  EXPECT_EQ(testing::n_allocations, warm);
}

}  // namespace
}  // namespace limpid::microgpt
