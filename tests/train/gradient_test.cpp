// Gradients of whole models: the reference executor's beside finite differences of the loss, every
// other executor's beside the reference executor's.
#include <gtest/gtest.h>

#include <cmath>

#include "base/check.h"
#include "executor/executors.h"
#include "layouts/lora_adapter.h"
#include "train/model_gradients.h"
#include "train/new_adapter.h"

namespace limpid {
namespace {

struct Family {
  std::string name;
  testing::TinyShape shape;
};

// `llama` stores interleaved rows of Q and K; `qwen3` half-split ones, with a norm of each head.
std::vector<Family> families() {
  testing::TinyShape llama;
  llama.n_layers = 2;
  llama.d_model = 24;
  llama.n_heads = 4;
  llama.n_kv_heads = 2;
  llama.head_dim = 6;
  llama.d_ff = 20;
  llama.vocab_size = 19;
  llama.n_ctx = 128;
  testing::TinyShape untied = llama;
  untied.tied = false;
  untied.biases = true;
  testing::TinyShape qwen3 = llama;
  qwen3.architecture = "qwen3";
  qwen3.qk_norm = true;
  testing::TinyShape partial = llama;
  partial.n_rot = 4;
  testing::TinyShape gpt2 = testing::tiny_gpt2_shape();
  gpt2.n_layers = 2;
  gpt2.d_model = 20;
  gpt2.n_heads = gpt2.n_kv_heads = 2;
  gpt2.head_dim = 10;
  gpt2.d_ff = 36;
  gpt2.vocab_size = 19;
  gpt2.n_ctx = 128;
  testing::TinyShape wide = testing::tiny_gpt2_shape();  // more than one panel in each direction
  wide.d_model = 80;
  wide.n_heads = wide.n_kv_heads = 2;
  wide.head_dim = 40;
  wide.d_ff = 800;
  wide.vocab_size = 300;
  wide.n_ctx = 128;
  wide.n_layers = 1;
  return {{"llama", llama}, {"llama_untied_biases", untied},
          {"qwen3", qwen3}, {"llama_partial_rotary", partial},
          {"gpt2", gpt2},   {"gpt2_wide", wide}};
}

using testing::total;

// One sequence is longer than a KV block.
Batch ragged_batch(int64_t vocab_size) { return testing::ragged_batch(vocab_size, 70); }

class Gradients : public ::testing::TestWithParam<Family> {};

TEST_P(Gradients, OfTheReferenceAgreeWithFiniteDifferences) {
  const auto checkpoint = testing::tiny_checkpoint(GetParam().shape);
  TrainingModel model(*checkpoint, make_reference_executor({.n_threads = 1}));
  const Batch batch = ragged_batch(GetParam().shape.vocab_size);
  const float factor = 1.0F / static_cast<float>(batch.n_targets());
  model.losses_and_gradients(batch, factor);
  for (Parameter& parameter : model.parameters()) {
    const std::span<float> values = parameter.value->f32();
    const std::span<const float> gradient = parameter.gradient.f32();
    double largest = 0;
    for (const float g : gradient) largest = std::max(largest, std::abs(static_cast<double>(g)));
    EXPECT_GT(largest, 0) << parameter.name;
    for (size_t at = 0; at < values.size(); at += 1 + values.size() / 4) {
      const float original = values[at];
      const float h = 4e-3F;
      values[at] = original + h;
      const double width_above = values[at];
      model.refresh();
      const double above = total(model.losses(batch));
      values[at] = original - h;
      const double width_below = values[at];
      model.refresh();
      const double below = total(model.losses(batch));
      values[at] = original;
      model.refresh();
      EXPECT_NEAR((above - below) * factor / (width_above - width_below), gradient[at],
                  2e-3 * largest + 2e-5)
          << parameter.name << " at " << at;
    }
  }
}

TEST_P(Gradients, AddUp) {
  const auto checkpoint = testing::tiny_checkpoint(GetParam().shape);
  TrainingModel model(*checkpoint, make_reference_executor({.n_threads = 1}));
  const Batch batch = ragged_batch(GetParam().shape.vocab_size);
  model.losses_and_gradients(batch, 0.25F);
  std::vector<float> once;
  for (const Parameter& p : model.parameters())
    once.insert(once.end(), p.gradient.f32().begin(), p.gradient.f32().end());
  model.losses_and_gradients(batch, 0.25F);
  size_t i = 0;
  for (const Parameter& p : model.parameters()) {
    for (const float twice : p.gradient.f32()) {
      ASSERT_NEAR(twice, 2 * once[i], 1e-6 + 1e-6 * std::abs(twice)) << p.name;
      ++i;
    }
  }
  model.zero_gradients();
  for (const Parameter& p : model.parameters()) {
    for (const float zero : p.gradient.f32()) ASSERT_EQ(zero, 0) << p.name;
  }
}

testing::ModelGradients gradients_of(const testing::TinyShape& shape,
                                     std::unique_ptr<Executor> executor) {
  return testing::gradients_of(shape, std::move(executor), {}, ragged_batch(shape.vocab_size));
}

TEST_P(Gradients, OfTheCpuAgreeWithTheReference) {
  const auto expected = gradients_of(GetParam().shape, make_reference_executor({.n_threads = 1}));
  const auto actual = gradients_of(GetParam().shape, make_cpu_executor({.n_threads = 1}));
  const auto checkpoint = testing::tiny_checkpoint(GetParam().shape);
  for (size_t i = 0; i < expected.losses.size(); ++i)
    EXPECT_NEAR(actual.losses[i], expected.losses[i], 1e-5) << i;
  for (size_t p = 0; p < expected.gradients.size(); ++p) {
    float largest = 0;
    float difference = 0;
    for (size_t i = 0; i < expected.gradients[p].size(); ++i) {
      largest = std::max(largest, std::abs(expected.gradients[p][i]));
      difference =
          std::max(difference, std::abs(actual.gradients[p][i] - expected.gradients[p][i]));
    }
    EXPECT_LE(difference, 1e-5F * largest) << checkpoint->tensor_order[p];
  }
}

TEST_P(Gradients, AreTheSameBitsForAnyThreadsAndInstructionSet) {
  const auto expected = gradients_of(GetParam().shape, make_cpu_executor({.n_threads = 1}));
  for (const std::string_view isa : available_isas()) {
    for (const int n_threads : {1, 2, 5}) {
      EXPECT_TRUE(expected ==
                  gradients_of(GetParam().shape, make_cpu_executor({n_threads, std::string(isa)})))
          << isa << " with " << n_threads << " threads";
    }
  }
}

TEST(Tape, RefusesInterleavedRows) {
  Tape tape(make_cpu_executor({.n_threads = 1}));
  const Tensor rows(DType::kF32, Shape{6, 4});
  EXPECT_NO_THROW(tape.load_weight({"w", rows, WeightUse::kProjection}));
  EXPECT_THROW(
      tape.load_weight({"w", rows, WeightUse::kProjection, RowOrder::kInterleavedPairs, 6}),
      UnsupportedError);
}

TEST(Tape, RefusesWhatItHasNoMethodFor) {
  Tape tape(make_cpu_executor({.n_threads = 1}));
  EXPECT_THROW(tape.allocate_kv({}), UnsupportedError);
}

// GGUF's `llama` has interleaved rows of Q and K, GGUF's `qwen3` has not.
TEST(NewAdapter, OfInterleavedRowsNeedsWholeHeadsThatRotate) {
  const auto train = [](const char* architecture, int64_t n_rot) {
    testing::TinyShape shape;
    shape.architecture = architecture;
    shape.n_rot = n_rot;
    const auto checkpoint = testing::tiny_checkpoint(shape);
    add_new_adapter(*checkpoint, 2, 4, "q_proj", 1);
    const auto learns = [](std::string_view name) { return is_lora_tensor(name); };
    TrainingModel model(*checkpoint, make_reference_executor({.n_threads = 1}), {.learns = learns});
    return total(model.losses_and_gradients(ragged_batch(shape.vocab_size), 1));
  };
  EXPECT_GT(train("llama", 16), 0);
  EXPECT_GT(train("qwen3", 8), 0);
  EXPECT_THROW(train("llama", 8), UnsupportedError);
}

TEST(NewAdapter, HasNoRankAboveBothSidesOfAMatrix) {
  const testing::TinyShape shape;
  const int64_t side = std::max(shape.d_model, shape.n_heads * shape.head_dim);
  EXPECT_NO_THROW(add_new_adapter(*testing::tiny_checkpoint(shape), side, 4, "q_proj", 1));
  EXPECT_THROW(add_new_adapter(*testing::tiny_checkpoint(shape), side + 1, 4, "q_proj", 1),
               ArgumentError);
}

INSTANTIATE_TEST_SUITE_P(Families, Gradients, ::testing::ValuesIn(families()),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace limpid
