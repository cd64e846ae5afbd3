// Chains that need only the best logits do not read the others from the executor, and choose the
// same tokens.
#include <gtest/gtest.h>

#include "executor/delegating_executor.h"
#include "executor/gpu_devices.h"
#include "generate/tiny_model.h"
#include "limpid/batch.hpp"
#include "model/tokenizer_from_metadata.h"

namespace limpid {
namespace {

// The CPU executor, which says that read_best costs less; counts how often each is called.
class BestExecutor final : public DelegatingExecutor {
 public:
  BestExecutor() : DelegatingExecutor(make_cpu_executor({.n_threads = 1})) {}
  int64_t most_best() const override { return 60; }
  std::span<const float> view(const Activation& /*x*/) const override { return {}; }
  void read(const Activation& x, std::span<float> out) override {
    ++n_whole;
    DelegatingExecutor::read(x, out);
  }
  void read_best(const Activation& x, int64_t k, std::span<int32_t> columns,
                 std::span<float> values) override {
    ++n_best;
    DelegatingExecutor::read_best(x, k, columns, values);
  }
  int64_t n_whole = 0;
  int64_t n_best = 0;
};

LanguageModel model_on(std::unique_ptr<Executor> executor) {
  auto model = Model::load(testing::tiny_model_checkpoint(), std::move(executor));
  auto tokenizer = tokenizer_from(model->checkpoint());
  return LanguageModel(std::make_shared<Engine>(std::move(model), std::move(tokenizer),
                                                OpenOptions(), MemoryPlan()));
}

struct Counted {
  BestExecutor* executor;
  LanguageModel model;
};

Counted counted() {
  auto owned = std::make_unique<BestExecutor>();
  BestExecutor* executor = owned.get();
  return {executor, model_on(std::move(owned))};
}

struct Setting {
  std::string name;
  void (*change)(GenerationOptions& options);
  bool best_is_enough;
};

const Setting kSettings[] = {
    {"greedy", [](GenerationOptions& o) { o.sampler.temperature = 0; }, true},
    {"top_k", [](GenerationOptions& o) { o.sampler.top_k = 5; }, true},
    {"default", [](GenerationOptions&) {}, true},
    {"banned",
     [](GenerationOptions& o) {
       o.sampler.temperature = 0;
       o.sampler.logit_bias = {{101, -100.0F}, {32, -1.0F}};
       o.sampler.ignore_eos = true;
     },
     true},
    {"after_sampling",
     [](GenerationOptions& o) {
       o.n_logprobs = 2;
       o.logprobs_after_sampling = true;
     },
     true},
    {"raised",
     [](GenerationOptions& o) {
       o.sampler.logit_bias = {{101, 1.0F}};
     },
     false},
    {"logprobs", [](GenerationOptions& o) { o.n_logprobs = 2; }, false},
    {"penalty",
     [](GenerationOptions& o) {
       o.sampler.repeat_penalty = 1.1F;
       o.sampler.repeat_last_n = 20;
     },
     true},
    {"greedy_penalties",
     [](GenerationOptions& o) {
       o.sampler.temperature = 0;
       o.sampler.repeat_penalty = 1.3F;
       o.sampler.presence_penalty = 0.5F;
       o.sampler.frequency_penalty = 0.25F;
       o.sampler.repeat_last_n = 50;
     },
     true},
    {"penalty_of_all",
     [](GenerationOptions& o) {
       o.sampler.repeat_penalty = 1.1F;
       o.sampler.repeat_last_n = -1;
     },
     false},
    {"rewarded", [](GenerationOptions& o) { o.sampler.repeat_penalty = 0.9F; }, false},
    {"top_p", [](GenerationOptions& o) { o.sampler.top_k = 0; }, false},
    {"many", [](GenerationOptions& o) { o.sampler.top_k = 61; }, false},
};

GenerationOptions options_of(const Setting& setting) {
  GenerationOptions options;
  options.n_predict = 12;
  options.sampler.seed = 3;
  setting.change(options);
  return options;
}

class BestLogits : public ::testing::TestWithParam<Setting> {};
INSTANTIATE_TEST_SUITE_P(Chains, BestLogits, ::testing::ValuesIn(kSettings),
                         [](const auto& info) { return info.param.name; });

TEST_P(BestLogits, OfASessionGiveTheSameTokens) {
  const GenerationOptions options = options_of(GetParam());
  const LanguageModel plain = model_on(make_cpu_executor({.n_threads = 1}));
  Session expected(plain);
  const GenerationResult alone = expected.generate("the heim", options).result();
  const Counted c = counted();
  Session session(c.model);
  const GenerationResult ours = session.generate("the heim", options).result();
  EXPECT_EQ(ours.ids, alone.ids);
  ASSERT_EQ(ours.logprobs.size(), alone.logprobs.size());
  for (size_t i = 0; i < ours.logprobs.size(); ++i)
    EXPECT_EQ(ours.logprobs[i].chosen.logprob, alone.logprobs[i].chosen.logprob);
  EXPECT_EQ(c.executor->n_best > 0, GetParam().best_is_enough);
  if (GetParam().best_is_enough) {
    EXPECT_EQ(c.executor->n_whole, 1);  // after the prompt
  }
  // All logits are there again when somebody asks.
  const auto logits = session.logits();
  EXPECT_TRUE(std::ranges::equal(logits, expected.logits()));
  EXPECT_EQ(session.tokens().size(), expected.tokens().size());
  EXPECT_EQ(session.generate(options).result().ids, expected.generate(options).result().ids);
}

TEST_P(BestLogits, OfABatchGiveTheSameTokens) {
  const GenerationOptions options = options_of(GetParam());
  const std::vector<std::string> prompts = {"a", "the heim", "0123"};
  const auto alone =
      generate_batch(model_on(make_cpu_executor({.n_threads = 1})), prompts, options);
  const Counted c = counted();
  const auto ours = generate_batch(c.model, prompts, options);
  for (size_t i = 0; i < prompts.size(); ++i) EXPECT_EQ(ours[i].ids, alone[i].ids);
  EXPECT_EQ(c.executor->n_best > 0, GetParam().best_is_enough);
  if (GetParam().best_is_enough) {
    EXPECT_EQ(c.executor->n_whole, 0);
  }
}

// A step whose tasks want different things reads everything.
TEST(BestLogitsOfAStep, AreReadOnlyWhenAllAreContent) {
  const Counted c = counted();
  c.model.encode("a");
  Scheduler& scheduler = engine_of(c.model)->scheduler();
  class Wants final : public Task {
   public:
    Wants(std::vector<TokenId> tokens, int64_t n_best) {
      assign_tokens(std::move(tokens));
      n_best_ = n_best;
    }
    int64_t n_rows = 0;
    std::vector<TokenId> best{};

   private:
    void on_row(int64_t, const StepRow& row) override {
      for (const Candidate& each : row.best) best.push_back(each.id);
      if (!row.best.empty()) return;
      ++n_rows;
      EXPECT_EQ(std::ssize(row.whole), testing::kTinyVocabulary);
    }
    void on_stop(std::exception_ptr) override { FAIL(); }
  };
  scheduler.reserve(640);
  const auto run = [&](int64_t n_first, int64_t n_second) {
    auto a = std::make_shared<Wants>(std::vector<TokenId>{1, 2, 3}, n_first);
    auto b = std::make_shared<Wants>(std::vector<TokenId>{4, 5}, n_second);
    const std::shared_ptr<Task> both[] = {a, b};
    scheduler.run(both);
    return std::pair(a, b);
  };
  const auto [a, b] = run(2, 3);
  EXPECT_EQ(a->best.size(), 3U);  // the larger number, for both
  EXPECT_EQ(b->best.size(), 3U);
  const auto [d, e] = run(2, 0);
  EXPECT_EQ(d->n_rows, 1);
  EXPECT_EQ(e->n_rows, 1);
  EXPECT_TRUE(d->best.empty());
}

// A GPU's own kernel: whole answers beside an executor that reads everything.
class BestLogitsOfGpus : public testing::GpuTest {};
INSTANTIATE_TEST_SUITE_P(Gpu, BestLogitsOfGpus, ::testing::ValuesIn(testing::kGpuApis),
                         testing::kNameOfApi);

TEST_P(BestLogitsOfGpus, GiveTheSameTokens) {
  class All final : public DelegatingExecutor {
   public:
    using DelegatingExecutor::DelegatingExecutor;
    int64_t most_best() const override { return 0; }
  };
  const LanguageModel all = model_on(std::make_unique<All>(make_gpu()));
  const LanguageModel best = model_on(make_gpu());
  for (const Setting& setting : kSettings) {
    const GenerationOptions options = options_of(setting);
    Session a(all);
    Session b(best);
    EXPECT_EQ(b.generate("the heim", options).result().ids,
              a.generate("the heim", options).result().ids)
        << setting.name;
  }
}

}  // namespace
}  // namespace limpid
