#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "generate/embedding_task.h"
#include "generate/generation_task.h"
#include "generate/tiny_model.h"

namespace limpid {
namespace {

using testing::open_tiny;

std::vector<float> embed(const LanguageModel& model, std::span<const TokenId> tokens,
                         Pooling pooling, bool normalize = false) {
  Engine& engine = *engine_of(model);
  std::vector<float> result;
  const std::shared_ptr<Task> task = std::make_shared<EmbeddingTask>(
      engine, std::vector(tokens.begin(), tokens.end()), pooling, normalize, CancelToken(),
      [&](std::span<const float> embedding, std::exception_ptr error) {
        EXPECT_EQ(error, nullptr);
        result.assign(embedding.begin(), embedding.end());
      });
  engine.scheduler().run({&task, 1});
  return result;
}

TEST(Embedding, PoolsTheHiddenStatesOfAllPrefixes) {
  const auto model = open_tiny({.n_batch = 7});
  engine_of(model)->scheduler().reserve(1000);
  const auto tokens = model.encode("the sea is blue, and so on");
  std::vector<double> mean(static_cast<size_t>(engine_of(model)->model().spec().d_model));
  for (size_t n = 1; n <= tokens.size(); ++n) {
    const auto last = embed(model, std::span(tokens).first(n), Pooling::kLast);
    ASSERT_EQ(last.size(), mean.size());
    for (size_t i = 0; i < last.size(); ++i) mean[i] += last[i];
    if (n == 1) {
      EXPECT_EQ(embed(model, tokens, Pooling::kFirst), last);
    }
  }
  const auto pooled = embed(model, tokens, Pooling::kMean);
  for (size_t i = 0; i < mean.size(); ++i) {
    EXPECT_EQ(pooled[i], static_cast<float>(mean[i] * (1.0 / static_cast<double>(tokens.size()))));
  }
}

TEST(Embedding, HasLengthOneWhenAsked) {
  const auto model = open_tiny();
  engine_of(model)->scheduler().reserve(256);
  const auto tokens = model.encode("hello");
  const auto unit = embed(model, tokens, Pooling::kMean, true);
  EXPECT_NEAR(std::inner_product(unit.begin(), unit.end(), unit.begin(), 0.0), 1, 1e-5);
}

// The logits are the product of the hidden state and the output matrix.
TEST(Embedding, IsWhatTheOutputMatrixIsMultipliedWith) {
  const auto model = open_tiny();
  engine_of(model)->scheduler().reserve(256);
  const auto tokens = model.encode("hello");
  const auto hidden = embed(model, tokens, Pooling::kLast);
  Session session(model);
  session.append(tokens);
  const auto& tensors = engine_of(model)->checkpoint().tensors;
  const auto head = tensors.contains("output.weight") ? tensors.at("output.weight")
                                                      : tensors.at("token_embd.weight");
  ASSERT_EQ(head.dtype, DType::kF32);
  const auto* rows = reinterpret_cast<const float*>(head.data);
  for (size_t id = 0; id < session.logits().size(); ++id) {
    double logit = 0;
    for (size_t i = 0; i < hidden.size(); ++i)
      logit += static_cast<double>(hidden[i]) * rows[id * hidden.size() + i];
    EXPECT_NEAR(logit, session.logits()[id], 1e-4);
  }
}

TEST(Embedding, TheFirstTokenCountsOnceAfterAPreemption) {
  const auto model = open_tiny({.n_batch = 1});
  Engine& engine = *engine_of(model);
  const std::vector<TokenId> tokens(250, 'x');
  engine.scheduler().reserve(300);
  const auto expected = embed(model, tokens, Pooling::kFirst);
  engine.scheduler().reserve(384);  // 11 blocks: less than all tasks come to
  GenerationOptions options;
  options.n_predict = 240;
  options.sampler.ignore_eos = true;
  for (TokenId id = 1; id <= 3; ++id) {
    engine.scheduler().submit(std::make_shared<GenerationTask>(
        engine, std::vector<TokenId>{id}, options, 256, GenerationTask::Listener()));
  }
  EXPECT_EQ(embed(model, tokens, Pooling::kFirst), expected);
  EXPECT_GT(engine.scheduler().usage().n_preempted, 0);
}

}  // namespace
}  // namespace limpid
