// What a tape may do with the values of a step: drop some (dropout), round them to 16 bits, compute
// them again.
#include "train/tape.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/check.h"
#include "executor/cpu/cpu_executor.h"
#include "executor/executors.h"
#include "train/model_gradients.h"

namespace limpid {
namespace {

using testing::total;
using Result = testing::ModelGradients;

constexpr int64_t kVocabulary = 19;

testing::TinyShape gpt2_shape() {
  testing::TinyShape shape = testing::tiny_gpt2_shape();
  shape.d_model = 20;
  shape.n_heads = shape.n_kv_heads = 2;
  shape.head_dim = 10;
  shape.d_ff = 36;
  shape.vocab_size = kVocabulary;
  shape.n_ctx = 128;
  return shape;
}

testing::TinyShape qwen3_shape() {
  testing::TinyShape shape;
  shape.architecture = "qwen3";
  shape.qk_norm = true;
  shape.d_model = 24;
  shape.n_heads = 4;
  shape.n_kv_heads = 2;
  shape.head_dim = 6;
  shape.d_ff = 20;
  shape.vocab_size = kVocabulary;
  shape.n_ctx = 128;
  return shape;
}

// One sequence is longer than the strips and blocks of attention.
Batch ragged_batch(int64_t first_window = 5, int64_t longest = 110) {
  Batch batch = testing::ragged_batch(kVocabulary, longest);
  batch.first_window = first_window;
  return batch;
}

TrainingModelOptions with_dropout(double p) {
  TrainingModelOptions options;
  options.dropout = p;
  options.seed = 3;
  return options;
}

TrainingModelOptions with_dtype(DType dtype) {
  TrainingModelOptions options;
  options.tape.dtype = dtype;
  return options;
}

Result gradients_of(const testing::TinyShape& shape, std::unique_ptr<Executor> executor,
                    const TrainingModelOptions& options, int64_t first_window = 5) {
  return testing::gradients_of(shape, std::move(executor), options, ragged_batch(first_window));
}

std::unique_ptr<Executor> cpu(int n_threads = 1) {
  return make_cpu_executor({.n_threads = n_threads});
}
std::unique_ptr<Executor> reference() { return make_reference_executor({.n_threads = 1}); }

// The largest difference of any gradient, in terms of the largest element of its tensor.
double largest_difference(const Result& a, const Result& b) {
  double most = 0;
  for (size_t p = 0; p < a.gradients.size(); ++p) {
    double largest = 0;
    double difference = 0;
    for (size_t i = 0; i < a.gradients[p].size(); ++i) {
      largest = std::max(largest, std::abs(static_cast<double>(a.gradients[p][i])));
      difference = std::max(difference,
                            std::abs(static_cast<double>(a.gradients[p][i]) - b.gradients[p][i]));
    }
    most = std::max(most, difference / largest);
  }
  return most;
}

void expect_the_same_bits_everywhere(const testing::TinyShape& shape,
                                     const TrainingModelOptions& options) {
  const Result expected = gradients_of(shape, cpu(), options);
  for (const std::string_view isa : available_isas()) {
    for (const int n_threads : {1, 3}) {
      EXPECT_TRUE(expected ==
                  gradients_of(shape, make_cpu_executor({n_threads, std::string(isa)}), options))
          << isa << " with " << n_threads << " threads";
    }
  }
}

// ---- dropout ------------------------------------------------------------------------------------

TEST(TapeDropout, GradientsOfTheReferenceAgreeWithFiniteDifferences) {
  TrainingModel model(*testing::tiny_checkpoint(gpt2_shape()), reference(), with_dropout(0.3));
  const Batch batch = ragged_batch(5, 50);
  const float factor = 1.0F / static_cast<float>(batch.n_targets());
  model.losses_and_gradients(batch, factor);
  std::vector<std::vector<float>> gradients;
  for (const Parameter& p : model.parameters())
    gradients.emplace_back(p.gradient.f32().begin(), p.gradient.f32().end());
  for (size_t p = 0; p < gradients.size(); ++p) {
    Parameter& parameter = model.parameters()[p];
    const std::span<float> values = parameter.value->f32();
    double largest = 0;
    for (const float g : gradients[p]) largest = std::max(largest, std::abs(double{g}));
    EXPECT_GT(largest, 0) << parameter.name;
    for (size_t at = 0; at < values.size(); at += 1 + values.size() / 2) {
      const float original = values[at];
      const auto loss_at = [&](float value) {
        values[at] = value;
        model.refresh();
        return total(model.losses_and_gradients(batch, 0));  // with the same mask
      };
      const double above = loss_at(original + 4e-3F);
      const double width = static_cast<double>(original + 4e-3F) - (original - 4e-3F);
      const double below = loss_at(original - 4e-3F);
      loss_at(original);
      EXPECT_NEAR((above - below) * factor / width, gradients[p][at], 2e-3 * largest + 2e-5)
          << parameter.name << " at " << at;
    }
  }
}

TEST(TapeDropout, OfTheCpuAgreesWithTheReference) {
  const Result expected = gradients_of(gpt2_shape(), reference(), with_dropout(0.3));
  const Result actual = gradients_of(gpt2_shape(), cpu(), with_dropout(0.3));
  EXPECT_LE(largest_difference(expected, actual), 1e-5);
  for (size_t i = 0; i < expected.losses.size(); ++i)
    EXPECT_NEAR(actual.losses[i], expected.losses[i], 1e-5) << i;
}

TEST(TapeDropout, GivesTheSameBitsForAnyThreadsAndInstructionSet) {
  expect_the_same_bits_everywhere(gpt2_shape(), with_dropout(0.3));
}

TEST(TapeDropout, IsThereWhileTheModelLearnsOnly) {
  TrainingModel plain(*testing::tiny_checkpoint(gpt2_shape()), cpu());
  TrainingModel dropped(*testing::tiny_checkpoint(gpt2_shape()), cpu(), with_dropout(0.3));
  const double expected = total(plain.losses(ragged_batch()));
  EXPECT_EQ(total(dropped.losses(ragged_batch())), expected);
  EXPECT_NE(total(dropped.losses_and_gradients(ragged_batch(), 1)), expected);
  EXPECT_EQ(total(dropped.losses(ragged_batch())), expected);
}

TEST(TapeDropout, DependsOnTheSeedAndTheWindowOnly) {
  const auto with = [](uint64_t seed, int64_t first_window) {
    TrainingModelOptions options = with_dropout(0.3);
    options.seed = seed;
    return gradients_of(gpt2_shape(), cpu(), options, first_window);
  };
  EXPECT_TRUE(with(3, 5) == with(3, 5));
  EXPECT_FALSE(with(3, 5) == with(4, 5));
  EXPECT_FALSE(with(3, 5) == with(3, 6));
}

TEST(TapeDropout, DropsTheShareThatWasAskedForAndKeepsTheMean) {
  std::vector<float> factors(10000);
  dropout_factors({.probability = 0.25F, .key = 7, .place = 1}, 2, 0, std::ssize(factors),
                  factors.data());
  const auto n_dropped = std::ranges::count(factors, 0.0F);
  EXPECT_NEAR(static_cast<double>(n_dropped), 2500, 150);
  EXPECT_EQ(std::ranges::count(factors, 1 / 0.75F), 10000 - n_dropped);
  std::vector<float> part(7);
  dropout_factors({.probability = 0.25F, .key = 7, .place = 1}, 2, 96, 7, part.data());
  EXPECT_TRUE(std::ranges::equal(part, std::span(factors).subspan(96, 7)));
}

TEST(TapeDropout, IsForGpt2) {
  EXPECT_THROW(TrainingModel(*testing::tiny_checkpoint(qwen3_shape()), cpu(), with_dropout(0.1)),
               UnsupportedError);
}

// ---- 16 bits ------------------------------------------------------------------------------------

class TapeDtype : public ::testing::TestWithParam<DType> {};

// A number beside the middle of two rounds up on one executor and down on the other: then the two
// differ by up to two units.
TEST_P(TapeDtype, GradientsAreThoseOfF32ButForRounding) {
  const double unit = GetParam() == DType::kBF16 ? 1.0 / 256 : 1.0 / 2048;
  for (const testing::TinyShape& shape : {gpt2_shape(), qwen3_shape()}) {
    const Result exact = gradients_of(shape, reference(), {});
    const Result expected = gradients_of(shape, reference(), with_dtype(GetParam()));
    const Result actual = gradients_of(shape, cpu(), with_dtype(GetParam()));
    EXPECT_LE(largest_difference(expected, actual), 2 * unit);
    EXPECT_LE(largest_difference(exact, actual), 12 * unit);
    EXPECT_GE(largest_difference(exact, actual), unit / 4);
  }
}

TEST_P(TapeDtype, GivesTheSameBitsForAnyThreadsAndInstructionSet) {
  expect_the_same_bits_everywhere(gpt2_shape(), with_dtype(GetParam()));
  expect_the_same_bits_everywhere(qwen3_shape(), with_dtype(GetParam()));
}

// The executor reads 16 bits; a change too small for those changes the f32 values only.
TEST_P(TapeDtype, ReadsMatricesIn16Bits) {
  TrainingModel model(*testing::tiny_checkpoint(qwen3_shape()), cpu(), with_dtype(GetParam()));
  const auto loss = [&] { return total(model.losses(ragged_batch())); };
  const double before = loss();
  Parameter& matrix = *std::ranges::find(model.parameters(), "blk.0.ffn_up.weight",
                                         [](const Parameter& p) { return p.name; });
  float& weight = matrix.value->f32()[0];
  weight = 0.5F;
  model.refresh();
  const double at_half = loss();
  EXPECT_NE(at_half, before);
  weight = 0.5F + 1.0F / 16384;
  model.refresh();
  EXPECT_EQ(loss(), at_half);
  weight = 0.5F + 1.0F / 64;
  model.refresh();
  EXPECT_NE(loss(), at_half);
}

INSTANTIATE_TEST_SUITE_P(Types, TapeDtype, ::testing::Values(DType::kBF16, DType::kF16),
                         [](const auto& info) { return std::string(dtype_info(info.param).name); });

// ---- computed again -----------------------------------------------------------------------------

// The most bytes of activations at once in a step.
uint64_t peak_bytes(const testing::TinyShape& shape, const TrainingModelOptions& options) {
  auto executor = std::make_unique<CpuExecutor>(ExecutorOptions{.n_threads = 1});
  const CpuExecutor& watched = *executor;
  TrainingModel model(*testing::tiny_checkpoint(shape), std::move(executor), options);
  model.losses_and_gradients(ragged_batch(), 1);
  return watched.arena().most_bytes_taken();
}

TEST(TapeRecompute, GivesTheSameBits) {
  for (const testing::TinyShape& shape : {gpt2_shape(), qwen3_shape()}) {
    for (const DType dtype : {DType::kF32, DType::kBF16, DType::kF16}) {
      for (const double dropout : {0.0, 0.3}) {
        if (dropout > 0 && shape.architecture != "gpt2") continue;
        TrainingModelOptions options = with_dropout(dropout);
        options.tape.dtype = dtype;
        const Result expected = gradients_of(shape, cpu(), options);
        options.tape.recompute = true;
        EXPECT_TRUE(expected == gradients_of(shape, cpu(), options))
            << shape.architecture << " in " << dtype_info(dtype).name << ", dropout " << dropout;
      }
    }
  }
}

TEST(TapeRecompute, OfFrozenTensorsGivesTheSameBits) {
  TrainingModelOptions options;
  options.learns = [](std::string_view name) { return name.find("attn_v") != name.npos; };
  const Result expected = gradients_of(qwen3_shape(), cpu(), options);
  options.tape.recompute = true;
  EXPECT_TRUE(expected == gradients_of(qwen3_shape(), cpu(), options));
}

// Of 16 numbers for each token, layer and column GPT-2 keeps 2 in f32, the residual stream.
TEST(TapeRecompute, AndSixteenBitsTakeLessMemory) {
  testing::TinyShape shape = gpt2_shape();
  shape.n_layers = 12;
  shape.d_model = 64;
  shape.head_dim = 32;
  shape.d_ff = 256;
  const uint64_t all = peak_bytes(shape, {});
  TrainingModelOptions options = with_dtype(DType::kBF16);
  EXPECT_LT(peak_bytes(shape, options), all * 65 / 100);
  options.tape.recompute = true;
  EXPECT_LT(peak_bytes(shape, options), all * 25 / 100);
  options.tape.dtype = DType::kF32;
  EXPECT_LT(peak_bytes(shape, options), all * 25 / 100);
}

}  // namespace
}  // namespace limpid
