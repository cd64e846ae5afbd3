// The clock beside the ops changes nothing, counts every call once, and knows what each product
// reads.
#include "insight/timing_executor.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "executor/executors.h"
#include "model/model.h"
#include "model/run_model.h"
#include "model/tiny_checkpoint.h"

namespace limpid {
namespace {

using testing::some_tokens;
using testing::tiny_checkpoint;
using testing::TinyShape;

struct TimedModel {
  explicit TimedModel(const TinyShape& shape) {
    auto owned = std::make_unique<TimingExecutor>(make_executor("cpu", {.n_threads = 2}));
    timer = owned.get();
    model = Model::load(tiny_checkpoint(shape), std::move(owned));
  }
  TimingExecutor* timer;
  std::unique_ptr<Model> model;
};

const OpTime* find(const std::vector<OpTime>& times, std::string_view op) {
  const auto found = std::ranges::find(times, op, &OpTime::op);
  return found == times.end() ? nullptr : &*found;
}

TEST(TimingExecutor, CountsOpsAndChangesNothing) {
  TinyShape shape;
  shape.n_layers = 3;
  const auto tokens = some_tokens(12, 50);
  TimedModel timed(shape);
  const auto plain = Model::load(tiny_checkpoint(shape), make_executor("cpu", {.n_threads = 2}));
  EXPECT_EQ(testing::run_in_chunks(*timed.model, tokens, 4),
            testing::run_in_chunks(*plain, tokens, 4));

  const std::vector<OpTime> times = timed.timer->take();
  const int64_t n_steps = 3;
  ASSERT_NE(find(times, "embed"), nullptr);
  EXPECT_EQ(find(times, "embed")->n_calls, n_steps);
  EXPECT_EQ(find(times, "attention")->n_calls, n_steps * 3);
  EXPECT_EQ(find(times, "rms_norm")->n_calls, n_steps * (2 * 3 + 1));
  EXPECT_TRUE(std::ranges::is_sorted(times, std::ranges::greater(), &OpTime::seconds));
  for (const OpTime& time : times) EXPECT_GT(time.seconds, 0) << time.op;
  EXPECT_TRUE(timed.timer->take().empty());
}

TEST(TimingExecutor, KnowsWhatAProductReads) {
  TinyShape shape;
  TimedModel timed(shape);
  const auto tokens = some_tokens(5, 50);
  testing::run_in_chunks(*timed.model, tokens, 5);
  const std::vector<OpTime> times = timed.timer->take();
  const OpTime* down = find(times, "linear ffn_down");
  ASSERT_NE(down, nullptr);
  uint64_t n_bytes = 0;
  int64_t n_weights = 0;
  for (const auto& [name, tensor] : timed.model->checkpoint().tensors) {
    if (name.find("ffn_down") == std::string::npos) continue;
    n_bytes += tensor.n_bytes();
    n_weights += tensor.shape.n_elements();
  }
  EXPECT_EQ(down->n_weight_bytes, n_bytes);
  EXPECT_EQ(down->flops.f32, 2 * 5 * n_weights);
  EXPECT_EQ(down->flops.int8, 0);
  EXPECT_NE(find(times, "linear attn_q, attn_k, attn_v"), nullptr);
  // Five tokens see 1, 2, … 5 positions.
  EXPECT_EQ(find(times, "attention")->flops.f32,
            shape.n_layers * 4 * shape.n_heads * shape.head_dim * (1 + 2 + 3 + 4 + 5));
}

TEST(TimingExecutor, CountsAProductInParts) {
  TinyShape shape;
  shape.tied = false;
  TimedModel timed(shape);
  int n_parts = 0;
  timed.model->read_out(std::vector<float>(3 * 64, 0.5F), [&](const ColumnPart&) { ++n_parts; });
  EXPECT_EQ(n_parts, 1);
  const std::vector<OpTime> times = timed.timer->take();
  const OpTime* output = find(times, "linear output");
  ASSERT_NE(output, nullptr);
  EXPECT_EQ(output->n_calls, 1);
  EXPECT_EQ(output->flops.f32, 2 * 3 * 50 * 64);
}

TEST(TimingExecutor, CountsProductsByTheTypeOfTheMatrix) {
  struct Kind {
    DType dtype;
    double FlopCount::*count;
  };
  for (const auto& [dtype, count] :
       {Kind{DType::kQ8_0, &FlopCount::int8}, {DType::kBF16, &FlopCount::bf16}}) {
    TinyShape shape;
    shape.dtype = dtype;
    TimedModel timed(shape);
    testing::run_in_chunks(*timed.model, some_tokens(5, 50), 5);
    const std::vector<OpTime> times = timed.timer->take();
    const OpTime* down = find(times, "linear ffn_down");
    ASSERT_NE(down, nullptr);
    EXPECT_EQ(down->flops.*count, 2 * 5 * shape.n_layers * shape.d_model * shape.d_ff);
    EXPECT_EQ(down->flops.sum(), down->flops.*count);
  }
}

}  // namespace
}  // namespace limpid
