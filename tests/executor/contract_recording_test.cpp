// The contract, part two: an executor that wraps another sees every op, keeps every tensor, and can
// turn the one forward pass into gradients. Checked against finite differences of the reference
// executor.
#include <gtest/gtest.h>

#include "executor/recording_executor.h"
#include "model/model.h"
#include "model/tiny_checkpoint.h"

namespace limpid {
namespace {

const std::vector<int32_t> kTokens = {3, 1, 4, 1, 5, 9};

// `llama` stores interleaved rows; `qwen3` half-split ones, biases aside, with a norm of each head.
testing::TinyShape one_layer(const std::string& architecture) {
  testing::TinyShape shape;
  shape.architecture = architecture;
  shape.n_layers = 1;
  shape.d_model = 24;
  shape.n_heads = 4;
  shape.n_kv_heads = 2;
  shape.head_dim = 6;
  shape.d_ff = 20;
  shape.vocab_size = 11;
  shape.tied = false;
  shape.qk_norm = architecture == "qwen3";
  return shape;
}

std::vector<double> loss_weights(size_t n) {
  std::vector<double> c(n);
  for (size_t i = 0; i < n; ++i) c[i] = std::sin(1.0 + static_cast<double>(i));
  return c;
}

// sum_i c_i logits_i of one step, on any executor.
double loss(const std::shared_ptr<Checkpoint>& checkpoint, std::unique_ptr<Executor> executor,
            const std::function<void(size_t n_logits)>& before_the_model_dies = {}) {
  const auto model = Model::load(checkpoint, std::move(executor));
  const auto cache = model->make_cache(64, DType::kF32, DType::kF32);
  const StepItem item{cache->add_sequence(), kTokens, StepItem::Outputs::kAll};
  const auto logits = model->step(*cache, {&item, 1});
  const auto c = loss_weights(logits.size());
  double sum = 0;
  for (size_t i = 0; i < logits.size(); ++i) sum += c[i] * logits[i];
  if (before_the_model_dies) before_the_model_dies(logits.size());
  return sum;
}

class Gradient : public ::testing::TestWithParam<const char*> {};

TEST_P(Gradient, OfOneLayerAgreesWithFiniteDifferences) {
  const auto checkpoint = testing::tiny_checkpoint(one_layer(GetParam()));
  auto owned = std::make_unique<testing::RecordingExecutor>();
  testing::RecordingExecutor& tape = *owned;
  std::map<std::string, std::vector<double>> gradients;
  loss(checkpoint, std::move(owned), [&](size_t n_logits) {
    tape.backward(loss_weights(n_logits));
    for (const std::string& name : checkpoint->tensor_order)
      gradients[name] = tape.weight_gradient(name);
  });

  for (size_t i = 0; i < checkpoint->owned.size(); ++i) {
    const std::string& name = checkpoint->tensor_order[i];
    const std::span<float> values = checkpoint->owned[i]->f32();
    const auto n = static_cast<size_t>(checkpoint->owned[i]->shape().n_elements());
    double largest = 0;
    for (const double g : gradients[name]) largest = std::max(largest, std::abs(g));
    for (size_t at = 0; at < n; at += 1 + n / 5) {
      const float original = values[at];
      const float h = 2e-3F;
      values[at] = original + h;
      const double width_above = values[at];
      const double above = loss(checkpoint, make_reference_executor({.n_threads = 1}));
      values[at] = original - h;
      const double width_below = values[at];
      const double below = loss(checkpoint, make_reference_executor({.n_threads = 1}));
      values[at] = original;
      EXPECT_NEAR((above - below) / (width_above - width_below), gradients[name][at],
                  2e-3 * largest + 1e-3)
          << name << " at " << at;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Contract, Gradient, ::testing::Values("llama", "qwen3"));

}  // namespace
}  // namespace limpid
