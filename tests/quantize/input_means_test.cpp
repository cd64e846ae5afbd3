#include "quantize/input_means.h"

#include <gtest/gtest.h>

#include <cmath>

#include "checkpoint/gguf.h"
#include "data_paths.h"
#include "executor/executors.h"
#include "limpid/error.hpp"
#include "model/hugging_face_builder.h"
#include "model/model.h"
#include "model/run_model.h"
#include "model/tiny_checkpoint.h"
#include "quantize/tensor_stream.h"

namespace limpid {
namespace {

using testing::TinyShape;

// 169 kB, with a tokenizer.
Checkpoint tiny_chat() { return open_gguf(testing::test_data_path("cli/tiny_chat.gguf")); }

// Sums of a run over some tokens, in steps of `chunk`.
std::map<std::string, InputRecorder::Sums> sums_of(const TinyShape& shape, size_t chunk,
                                                   std::unique_ptr<Executor> executor) {
  auto owned = std::make_unique<InputRecorder>(std::move(executor));
  InputRecorder& recorder = *owned;
  const auto model = Model::load(testing::tiny_checkpoint(shape), std::move(owned));
  const auto tokens = testing::some_tokens(20, shape.vocab_size);
  const auto cache = model->make_cache(20, DType::kF32, DType::kF32);
  const SequenceId sequence = cache->add_sequence();
  for (size_t i = 0; i < tokens.size(); i += chunk) {
    const auto part = std::span(tokens).subspan(i, std::min(chunk, tokens.size() - i));
    const StepItem item{sequence, part, StepItem::Outputs::kAll};
    model->step(*cache, {&item, 1});
  }
  return recorder.sums();
}

TEST(InputRecorder, SumsWhatAMatrixIsMultipliedWith) {
  const Tensor table = Tensor::of(Shape{3, 2}, std::vector<float>{1, 2, 30, 40, 500, 600});
  const Tensor matrix = Tensor::of(Shape{4, 2}, std::vector<float>(8, 1.0F));
  InputRecorder recorder(make_reference_executor());
  const Weight rows = recorder.load_weight({"table", table.view(), WeightUse::kLookup});
  const Weight projection = recorder.load_weight({"matrix", matrix.view()});
  for (const int32_t repeated : {1, 2}) {
    recorder.inputs().clear();
    recorder.inputs().token_ids = {0, repeated, 2};
    recorder.inputs().positions = {0, 1, 2};
    recorder.inputs().sequences = {0, 0, 0};
    recorder.reserve(3, 0);
    recorder.begin_step();
    std::array projections = {Projection{projection, {}, {}}};
    recorder.linear(recorder.embed(rows, EmbedBy::kTokenId), projections);
    recorder.end_step();
  }
  ASSERT_EQ(recorder.sums().size(), 1U);
  const InputRecorder::Sums& sums = recorder.sums().at("matrix");
  EXPECT_EQ(sums.n_rows, 4);
  EXPECT_EQ(sums.values, (std::vector<double>{30 + 500 + 500 + 500, 40 + 600 + 600 + 600}));
  EXPECT_EQ(sums.squares, 30 * 30 + 40 * 40 + 3 * (500 * 500 + 600 * 600));
}

TEST(InputRecorder, SumsDependNeitherOnStepsNorOnThreads) {
  const auto whole = sums_of({}, 20, make_cpu_executor({.n_threads = 1}));
  for (const auto& [chunk, n_threads] : {std::pair{size_t{7}, 1}, {size_t{20}, 3}}) {
    const auto again = sums_of({}, chunk, make_cpu_executor({.n_threads = n_threads}));
    ASSERT_EQ(again.size(), whole.size());
    for (const auto& [name, sums] : whole) {
      EXPECT_EQ(again.at(name).values, sums.values) << name;
      EXPECT_EQ(again.at(name).squares, sums.squares) << name;
      EXPECT_EQ(again.at(name).n_rows, 19) << name;
    }
  }
}

// Q, K and V of GPT-2 are one tensor, whose input counts once.
TEST(InputRecorder, CountsTheInputOfAFusedTensorOnce) {
  const auto sums = sums_of(testing::tiny_gpt2_shape(), 20, make_cpu_executor({.n_threads = 1}));
  EXPECT_EQ(sums.at("blk.0.attn_qkv.weight").n_rows, 19);
}

TEST(InputMeans, EveryMatrixOfAProductHasOne) {
  const Checkpoint checkpoint = tiny_chat();
  std::vector<uint64_t> heard;
  const InputMeans means = measure_inputs(checkpoint, 1, [&](uint64_t done, uint64_t total) {
    heard = {done, total};
    return true;
  });
  EXPECT_EQ(means.not_measured, "");
  EXPECT_EQ(heard.size(), 2U);
  EXPECT_GT(heard[1], 100U);
  for (const auto& [name, tensor] : checkpoint.tensors) {
    if (tensor.shape.rank() != 2) continue;
    ASSERT_TRUE(means.of.contains(name)) << name;
    const InputMean& input = means.of.at(name);
    EXPECT_EQ(static_cast<int64_t>(input.mean.size()), tensor.shape.cols()) << name;
    EXPECT_GT(input.variance, 0) << name;
    for (const float mean : input.mean) EXPECT_TRUE(std::isfinite(mean)) << name;
  }
  const InputMeans again = measure_inputs(checkpoint, 3, {});
  for (const auto& [name, input] : means.of) {
    EXPECT_EQ(again.of.at(name).mean, input.mean) << name;
    EXPECT_EQ(again.of.at(name).variance, input.variance) << name;
  }
}

TEST(InputMeans, AModelThatCannotReadIsNotAsked) {
  const InputMeans means = measure_inputs(*testing::tiny_checkpoint(), 1, {});
  EXPECT_TRUE(means.of.empty());
  EXPECT_NE(means.not_measured.find("no tokenizer"), std::string::npos) << means.not_measured;
}

TEST(InputMeans, CanBeCancelled) {
  const auto never = [](uint64_t, uint64_t) { return false; };
  EXPECT_THROW(measure_inputs(tiny_chat(), 1, never), ResourceError);
}

// llama.cpp's older format: entries of (length, name, calls, n, n floats).
std::string importance_entry(const std::string& name, const std::vector<float>& columns) {
  const auto bytes = [](const auto& value) {
    return std::string(reinterpret_cast<const char*>(&value), sizeof(value));
  };
  std::string entry = bytes(static_cast<int32_t>(name.size())) + name + bytes(int32_t{1}) +
                      bytes(static_cast<int32_t>(columns.size()));
  for (const float column : columns) entry += bytes(column);
  return bytes(int32_t{1}) + entry;
}

// The variance is that of the average column, in whatever unit the importances are.
TEST(InputFacts, ImportancesSayHowColumnsCompare) {
  const TempFolder folder;
  InputFacts facts;
  facts.means.of["m"] = {{1, 2, 3, 4}, 0.5F};
  EXPECT_TRUE(facts.of("other", 4).mean.empty());
  EXPECT_EQ(facts.of("m", 4).mean[2], 3);
  EXPECT_EQ(facts.of("m", 4).variance, 0.5F);
  EXPECT_THROW(facts.of("m", 5), ShapeError);
  facts.importance =
      Importance::open(folder.write("importance.dat", importance_entry("m", {30, 10, 20, 20})));
  const ColumnFacts both = facts.of("m", 4);
  EXPECT_EQ(both.importance[0], 30);
  EXPECT_FLOAT_EQ(both.variance * both.importance[0], 0.75F);
}

}  // namespace
}  // namespace limpid
