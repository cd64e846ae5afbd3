// Taps show what a model computes and change nothing; a comparison names the first layer that
// departs.
#include "insight/trace.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "executor/delegating_executor.h"
#include "executor/executors.h"
#include "insight/comparison.h"
#include "insight/contrast.h"
#include "insight/probed_model.h"
#include "limpid/error.hpp"
#include "model/run_model.h"
#include "model/tiny_checkpoint.h"

namespace limpid {
namespace {

using testing::some_tokens;
using testing::tiny_checkpoint;
using testing::TinyShape;

TinyShape deep(const std::string& architecture) {
  TinyShape shape = architecture == "gpt2" ? testing::tiny_gpt2_shape() : TinyShape{};
  shape.n_layers = 4;
  return shape;
}

Trace trace_of(std::shared_ptr<const Checkpoint> checkpoint, const char* executor) {
  const testing::ProbedModel probed(std::move(checkpoint), executor);
  return trace_model(*probed.model, *probed.probe, some_tokens(20, 50));
}

// Counts the caches that a model makes.
class CacheCounter final : public DelegatingExecutor {
 public:
  CacheCounter(std::unique_ptr<Executor> inner, int& n)
      : DelegatingExecutor(std::move(inner)), n_(n) {}
  std::unique_ptr<KvStorage> allocate_kv(const KvLayout& layout) override {
    ++n_;
    return DelegatingExecutor::allocate_kv(layout);
  }

 private:
  int& n_;
};

// The cache of a text that is too long may be larger than the memory.
TEST(Insight, ATextBeyondTheContextGetsNoCache) {
  int n_caches = 0;
  auto owned = std::make_unique<ProbeExecutor>(
      std::make_unique<CacheCounter>(make_executor("cpu", {.n_threads = 1}), n_caches));
  ProbeExecutor& probe = *owned;
  const auto model = Model::load(tiny_checkpoint(TinyShape{}), std::move(owned), {.n_ctx = 8});
  const auto ids = some_tokens(9, 50);
  EXPECT_THROW(trace_model(*model, probe, ids), ContextOverflowError);
  EXPECT_THROW(values_of_parts(*model, probe, {}, ids), ContextOverflowError);
  EXPECT_THROW(contrast({*model, probe}, {*model, probe}, ids), ContextOverflowError);
  EXPECT_EQ(n_caches, 0);
  trace_model(*model, probe, std::span(ids).first(8));
  EXPECT_EQ(n_caches, 1);
}

class Taps : public ::testing::TestWithParam<const char*> {};

TEST_P(Taps, ShowWhatIsThereAndChangeNothing) {
  const TinyShape shape = deep(GetParam());
  for (const char* executor : {"reference", "cpu"}) {
    const Trace trace = trace_of(tiny_checkpoint(shape), executor);
    ASSERT_EQ(trace.observations.size(), 1U + 4 * 3 + 2);
    EXPECT_EQ(trace_name(trace.observations.front()), "embedding");
    EXPECT_EQ(trace_name(trace.observations[2]), "blk.0.attn_residual");
    EXPECT_EQ(trace_name(trace.observations[12]), "blk.3.ffn_residual");
    const Observation& logits = trace.observations.back();
    EXPECT_EQ(logits.what, "logits");
    EXPECT_EQ(logits.n_rows, 20);
    EXPECT_EQ(logits.n_cols, 50);
    const auto plain =
        Model::load(tiny_checkpoint(shape), make_executor(executor, {.n_threads = 2}));
    EXPECT_EQ(testing::run_in_chunks(*plain, trace.token_ids, 20), logits.values) << executor;
    // A residual is what came in plus what was added: no observation is another's memory.
    for (size_t i = 1; i < trace.observations.size(); ++i)
      EXPECT_NE(trace.observations[i].values, trace.observations[i - 1].values) << i;
  }
}

TEST_P(Taps, ExecutorsAgreeLayerByLayer) {
  const TinyShape shape = deep(GetParam());
  const Comparison comparison = compare_traces(trace_of(tiny_checkpoint(shape), "cpu"),
                                               trace_of(tiny_checkpoint(shape), "reference"));
  EXPECT_EQ(comparison.activations.size(), 15U);
  EXPECT_TRUE(comparison.missing.empty());
  EXPECT_EQ(comparison.first_departure(1e-5), nullptr) << comparison.worst()->error;
  EXPECT_GT(comparison.worst()->error, 0);
}

// Every matrix and vector of one layer in turn.
TEST_P(Taps, TheLayerWithADamagedWeightIsNamed) {
  const TinyShape shape = deep(GetParam());
  const Trace reference = trace_of(tiny_checkpoint(shape), "reference");
  const auto whole = tiny_checkpoint(shape);
  int n_damaged = 0;
  for (const std::string& name : whole->tensor_order) {
    if (!name.starts_with("blk.2.")) continue;
    const auto damaged = tiny_checkpoint(shape);
    const TensorView view = *damaged->find(name);
    std::vector<float> values(view.f32(), view.f32() + view.shape.n_elements());
    for (size_t i = 0; i < values.size() / 4 + 1; ++i) values[i] = 3.0F;
    damaged->owned.push_back(std::make_shared<Tensor>(Tensor::of(view.shape, values)));
    damaged->tensors[name] = damaged->owned.back()->view();
    const Comparison comparison = compare_traces(trace_of(damaged, "cpu"), reference);
    const ActivationError* first = comparison.first_departure(1e-3);
    ASSERT_NE(first, nullptr) << name;
    EXPECT_EQ(first->layer, 2) << name;
    const bool is_attention = name.find("attn") != std::string::npos;
    EXPECT_EQ(first->what.starts_with("attn"), is_attention) << name << ": " << first->what;
    ++n_damaged;
  }
  EXPECT_GE(n_damaged, 9);
}

INSTANTIATE_TEST_SUITE_P(Families, Taps, ::testing::Values("llama", "gpt2"),
                         [](const auto& info) { return std::string(info.param); });

Checkpoint trace_file(const Trace& trace) {
  Checkpoint checkpoint;
  checkpoint.path = "trace.safetensors";
  const auto add = [&](const std::string& name, Tensor tensor) {
    checkpoint.owned.push_back(std::make_shared<Tensor>(std::move(tensor)));
    checkpoint.tensors[name] = checkpoint.owned.back()->view();
    checkpoint.tensor_order.push_back(name);
  };
  Tensor ids(DType::kI64, Shape{static_cast<int64_t>(trace.token_ids.size())});
  for (size_t i = 0; i < trace.token_ids.size(); ++i) {
    const int64_t id = trace.token_ids[i];
    std::memcpy(ids.data() + i * sizeof(id), &id, sizeof(id));
  }
  add("token_ids", std::move(ids));
  for (const Observation& seen : trace.observations)
    add(trace_name(seen), Tensor::of(Shape{seen.n_rows, seen.n_cols}, seen.values));
  return checkpoint;
}

TEST(Trace, IsReadAsItWasWritten) {
  const Trace trace = trace_of(tiny_checkpoint(deep("llama")), "cpu");
  const Checkpoint file = trace_file(trace);
  const Comparison comparison = compare_traces(trace, read_trace(file));
  EXPECT_EQ(comparison.activations.size(), 15U);
  EXPECT_EQ(comparison.worst()->error, 0);
}

TEST(Trace, SaysWhatIsWrongWithAFile) {
  const Trace trace = trace_of(tiny_checkpoint(deep("llama")), "cpu");
  Checkpoint file = trace_file(trace);
  file.tensors["blk.1.ffn_residual"].shape = Shape{10, 128};
  EXPECT_THROW(read_trace(file), FormatError);
  file = trace_file(trace);
  file.tensors["token_ids"].dtype = DType::kF64;
  EXPECT_THROW(read_trace(file), FormatError);
  EXPECT_THROW(read_trace(*tiny_checkpoint()), FormatError);
}

TEST(Trace, WhatIsMissingAndWhatDoesNotFitIsSaid) {
  const Trace trace = trace_of(tiny_checkpoint(deep("llama")), "cpu");
  Trace reference = trace;
  reference.observations.push_back({"router", 3, 1, 1, {0}});
  EXPECT_EQ(compare_traces(trace, reference).missing, std::vector<std::string>{"blk.3.router"});
  reference.observations[0].n_cols = 32;
  EXPECT_THROW(compare_traces(trace, reference), ShapeError);
  reference.observations = {{"router", 3, 1, 1, {0}}};
  EXPECT_THROW(compare_traces(trace, reference), ArgumentError);
  reference = trace;
  reference.token_ids[3] += 1;
  EXPECT_THROW(compare_traces(trace, reference), ArgumentError);
}

TEST(Comparison, NoTokenHidesBehindAnother) {
  Trace reference{{1, 2}, {{"embedding", -1, 2, 2, {1000, -1000, 1, -1}}}};
  Trace trace = reference;
  trace.observations[0].values[3] = -1.5F;
  const Comparison comparison = compare_traces(trace, reference);
  EXPECT_DOUBLE_EQ(comparison.worst()->error, 0.5 / std::sqrt(2.0));
  EXPECT_EQ(comparison.worst()->token, 1);
  EXPECT_EQ(comparison.worst()->element, 1);
}

// A model that gives NaN agrees with nothing, not even with a reference that gives NaN too.
TEST(Comparison, WhatIsNotFiniteNeverAgrees) {
  const Trace finite{{1, 2}, {{"embedding", -1, 2, 2, {1, 2, 3, 4}}}};
  for (const float value : {std::nanf(""), HUGE_VALF, -HUGE_VALF}) {
    Trace damaged = finite;
    damaged.observations[0].values[2] = damaged.observations[0].values[3] = value;
    for (const auto& [trace, reference] :
         {std::pair(damaged, finite), std::pair(finite, damaged), std::pair(damaged, damaged)}) {
      const Comparison comparison = compare_traces(trace, reference);
      const ActivationError* first = comparison.first_departure(1e9);
      ASSERT_NE(first, nullptr) << value;
      EXPECT_TRUE(std::isinf(first->error)) << value;
      EXPECT_EQ(first->token, 1) << value;
      EXPECT_EQ(first->element, 0) << value;
    }
  }
}

}  // namespace
}  // namespace limpid
