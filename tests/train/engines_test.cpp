// The three engines are one model: one loss curve, one gradient.
#include <gtest/gtest.h>

#include "train/microgpt/trainer.h"

namespace limpid::microgpt {
namespace {

Config small(int64_t n_embd, int64_t n_layer, int64_t n_head, int64_t block_size) {
  Config config = preset("fsharp");
  config.shape.n_embd = n_embd;
  config.shape.n_layer = n_layer;
  config.shape.n_head = n_head;
  config.shape.block_size = block_size;
  config.num_steps = 200;
  return config;
}

void expect_one_curve(const Config& config, const Trainer::MakeEngine& other, double tolerance) {
  Trainer scalar(config, Dataset::parse(names_text(), "names"), make_scalar_engine);
  Trainer fast(config, Dataset::parse(names_text(), "names"), other);
  for (int64_t step = 0; step < config.num_steps; ++step) {
    const double expected = scalar.look();
    ASSERT_NEAR(fast.look() / expected, 1.0, tolerance) << "step " << step + 1;
    scalar.update();
    fast.update();
  }
  EXPECT_EQ(scalar.sample(), fast.sample());
}

TEST(Engines, OneLossCurveOver200Steps) {
  expect_one_curve(small(16, 1, 4, 8), make_fast_engine<double>, 1e-9);
}

TEST(Engines, OneLossCurveInF32) {
  Config config = small(16, 1, 4, 16);
  config.num_steps = 50;
  expect_one_curve(config, make_fast_engine<float>, 2e-4);
}

// Contexts that hold every name, and contexts that are shorter than most.
TEST(Engines, OneLossCurveThroughTheTape) {
  Config config = small(16, 1, 4, 16);
  config.num_steps = 50;
  expect_one_curve(config, make_tensor_engine, 2e-4);
  config = small(32, 2, 4, 6);
  config.num_steps = 50;
  config.batch_size = 4;
  expect_one_curve(config, make_tensor_engine, 2e-4);
}

// n_embd, n_layer, n_head, block_size, batch_size: widths that fill no vector, more positions than
// lanes, heads of one number, heads wider than a vector.
class EngineShapes : public ::testing::TestWithParam<std::array<int64_t, 5>> {};

TEST_P(EngineShapes, GradientsAgree) {
  const auto [n_embd, n_layer, n_head, block_size, batch_size] = GetParam();
  Config config = small(n_embd, n_layer, n_head, block_size);
  config.batch_size = batch_size;
  config.shape.vocab_size = 19;
  config.deviation = 0.3;
  PythonRandom random(7);
  const auto weights =
      initial_weights(Matrices(config.shape), config.deviation, RandomStyle::kPython, random);
  std::vector<std::vector<Token>> documents;
  for (int64_t d = 0; d < batch_size; ++d) {
    std::vector<Token> tokens;
    for (int64_t i = 0; i < 3 + 7 * d; ++i) tokens.push_back(static_cast<Token>(random.below(19)));
    documents.push_back(tokens);
  }
  const auto scalar = make_scalar_engine(config, weights);
  const auto fast = make_fast_engine<double>(config, weights);
  const auto tensor = make_tensor_engine(config, weights);
  for (int round = 0; round < 3; ++round) {
    EXPECT_NEAR(fast->forward_backward(documents), scalar->forward_backward(documents), 1e-12);
    const auto expected = scalar->gradients();
    const auto found = fast->gradients();
    ASSERT_EQ(found.size(), expected.size());
    for (size_t i = 0; i < found.size(); ++i) ASSERT_NEAR(found[i], expected[i], 1e-12) << i;
    EXPECT_NEAR(tensor->forward_backward(documents), scalar->forward_backward(documents), 1e-4);
    const auto through_tape = tensor->gradients();
    ASSERT_EQ(through_tape.size(), expected.size());
    for (size_t i = 0; i < expected.size(); ++i)
      ASSERT_NEAR(through_tape[i], expected[i], 1e-4) << i;
    scalar->update(adam_step(config, round));
    fast->update(adam_step(config, round));
    tensor->update(adam_step(config, round));
    std::reverse(documents.begin(), documents.end());
  }
}

INSTANTIATE_TEST_SUITE_P(Shapes, EngineShapes,
                         ::testing::Values(std::array<int64_t, 5>{16, 1, 4, 16, 1},
                                           std::array<int64_t, 5>{12, 2, 3, 8, 2},
                                           std::array<int64_t, 5>{5, 1, 5, 3, 1},
                                           std::array<int64_t, 5>{20, 2, 1, 33, 5},
                                           std::array<int64_t, 5>{32, 3, 2, 20, 3}));

}  // namespace
}  // namespace limpid::microgpt
