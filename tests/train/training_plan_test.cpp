// The plan of memory beside what a step really takes.
#include "train/training_plan.h"

#include <gtest/gtest.h>

#include <limits>

#include "executor/cpu/cpu_executor.h"
#include "limpid/error.hpp"
#include "model/configuration.h"
#include "model/tiny_checkpoint.h"
#include "train/training_model.h"

namespace limpid {
namespace {

TrainingOptions options_of(int64_t batch_size, int64_t seq_len) {
  TrainingOptions options;
  options.batch_size = batch_size;
  options.seq_len = seq_len;
  options.schedule.n_steps = 10;
  options.n_threads = 2;
  return options;
}

DocumentView tokens(size_t n) { return TokenDocuments{std::vector<int32_t>(n), {}, {}}; }

Batch full_batch(const TrainingOptions& options, int64_t vocab_size) {
  Batch batch;
  batch.lengths.assign(static_cast<size_t>(options.batch_size), options.seq_len);
  for (int64_t t = 0; t < options.batch_size * options.seq_len; ++t) {
    batch.token_ids.push_back(static_cast<int32_t>(t % vocab_size));
    batch.targets.push_back(static_cast<int32_t>((t + 1) % vocab_size));
  }
  return batch;
}

struct Family {
  std::string name;
  testing::TinyShape shape;
};

std::vector<Family> families() {
  testing::TinyShape llama;
  llama.d_model = 96;
  llama.n_heads = 6;
  llama.n_kv_heads = 2;
  llama.d_ff = 256;
  llama.vocab_size = 700;
  llama.n_layers = 4;
  testing::TinyShape untied = llama;
  untied.tied = false;
  untied.qk_norm = true;
  untied.architecture = "qwen3";
  testing::TinyShape gpt2 = testing::tiny_gpt2_shape();
  gpt2.d_model = 96;
  gpt2.n_heads = gpt2.n_kv_heads = 6;
  gpt2.d_ff = 384;
  gpt2.vocab_size = 300;
  return {{"llama", llama}, {"qwen3_untied", untied}, {"gpt2", gpt2}};
}

class Plan : public ::testing::TestWithParam<Family> {};

// Within 1 %: the plan leaves out the statistics of norms, and rounding to cache lines.
TEST_P(Plan, ActivationsAreThoseOfAStep) {
  const auto checkpoint = testing::tiny_checkpoint(GetParam().shape);
  const auto frozen = [](std::string_view name) { return name.find("ffn") == name.npos; };
  struct Kind {
    TapeOptions tape{};
    bool freezes = false;
    double dropout = 0;
  };
  for (const Kind& kind : {Kind{}, Kind{.freezes = true}, Kind{.tape = {DType::kBF16, false}},
                           Kind{.tape = {DType::kF32, true}}, Kind{.dropout = 0.1}}) {
    const bool is_gpt2 = GetParam().shape.architecture == "gpt2";
    TrainingOptions options = options_of(8, 96);
    if (kind.freezes) options.model.learns = frozen;
    options.model.tape = kind.tape;
    options.model.dropout = is_gpt2 ? kind.dropout : 0;
    const TrainingPlan plan = make_training_plan(*checkpoint, options, tokens(1000), {});
    auto executor = std::make_unique<CpuExecutor>(ExecutorOptions{.n_threads = 2});
    const ActivationArena& arena = executor->arena();
    TrainingModel model(*checkpoint, std::move(executor), options.model);
    model.losses_and_gradients(full_batch(options, GetParam().shape.vocab_size), 1.0F);
    const auto taken = static_cast<double>(arena.most_bytes_taken());
    EXPECT_NEAR(static_cast<double>(plan.activations), taken, 0.01 * taken);
  }
}

TEST_P(Plan, CountsParametersAndTheirOperations) {
  const auto checkpoint = testing::tiny_checkpoint(GetParam().shape);
  const TrainingModel model(*checkpoint, make_reference_executor());
  int64_t n_parameters = 0;
  int64_t n_multiplied = 0;  // elements of matrices that `linear` multiplies with
  for (const auto& [name, view] : model.checkpoint().tensors) {
    n_parameters += view.shape.n_elements();
    const bool looked_up = name == "position_embd.weight" ||
                           (name == "token_embd.weight" && !model.spec().tied_embeddings);
    if (view.shape.rank() > 1 && !looked_up) n_multiplied += view.shape.n_elements();
  }
  TrainingOptions options = options_of(2, 64);
  options.grad_accum = 3;
  const TrainingPlan plan = make_training_plan(*checkpoint, options, tokens(10'000), tokens(500));
  EXPECT_EQ(plan.n_parameters, n_parameters);
  EXPECT_EQ(plan.n_learning, n_parameters);
  EXPECT_EQ(plan.weights, static_cast<uint64_t>(n_parameters) * 4);
  EXPECT_EQ(plan.gradients, 2 * plan.weights);  // a sum of their own over the micro-batches
  EXPECT_EQ(plan.moments, 2 * plan.weights);
  EXPECT_EQ(plan.data, 10'500U * 4);
  EXPECT_EQ(plan.tokens_per_step, 384);
  EXPECT_EQ(plan.tokens_per_epoch, 156 * 64);
  EXPECT_EQ(plan.steps_per_epoch, 26);  // of 6 windows
  EXPECT_EQ(plan.operations_per_step, 6.0 * static_cast<double>(n_multiplied) * 384);
}

INSTANTIATE_TEST_SUITE_P(, Plan, ::testing::ValuesIn(families()),
                         [](const auto& info) { return info.param.name; });

TEST(TrainingPlan, KnowsTheOptimizersMoments) {
  const auto checkpoint = testing::tiny_checkpoint(families()[0].shape);
  TrainingOptions options = options_of(2, 64);
  for (const OptimizerKind kind :
       {OptimizerKind::kAdamw, OptimizerKind::kSgd, OptimizerKind::kMuon}) {
    options.optimizer.kind = kind;
    TrainingModel model(*checkpoint, make_reference_executor());
    Optimizer optimizer(options.optimizer, model.parameters());
    uint64_t n_bytes = 0;
    for (const StateTensor& state : optimizer.state()) n_bytes += state.tensor->view().n_bytes();
    EXPECT_EQ(make_training_plan(*checkpoint, options, tokens(1000), {}).moments, n_bytes);
  }
}

TEST(TrainingPlan, KnowsTheCopyOfMatricesIn16Bits) {
  TrainingOptions options = options_of(4, 64);
  const Checkpoint gpt2 = named_configuration("gpt2");
  const uint64_t f32 = make_training_plan(gpt2, options, tokens(1000), {}).weights;
  options.model.tape.dtype = DType::kF16;
  const TrainingPlan plan = make_training_plan(gpt2, options, tokens(1000), {});
  EXPECT_EQ(plan.weights - f32, 2U * (124'439'808 - 121'344));  // norms and biases have no copy
}

TEST(TrainingPlan, KnowsWhatIsKeptOfDialogues) {
  const DocumentView dialogues =
      TokenDocuments{std::vector<int32_t>(1000), {0, 400}, std::vector<uint8_t>(1000)};
  const Checkpoint gpt2 = named_configuration("gpt2");
  const TrainingPlan plan = make_training_plan(gpt2, options_of(2, 64), dialogues, tokens(50));
  EXPECT_EQ(plan.data, 1000U * 4 + 2 * 8 + 1000 + 50 * 4);
}

TEST(TrainingPlan, CountsTheStepsOfAnEpochWhateverTheirSize) {
  TrainingOptions options = options_of(2, 64);
  const auto steps = [&](size_t n_tokens) {
    return make_training_plan(named_configuration("gpt2"), options, tokens(n_tokens), {})
        .steps_per_epoch;
  };
  EXPECT_EQ(steps(1280), 10);  // 19 windows, and 63 tokens without the target of the last
  EXPECT_EQ(steps(1281), 10);
  EXPECT_EQ(steps(1345), 11);
  options.grad_accum = std::numeric_limits<int64_t>::max() / 128;
  EXPECT_EQ(steps(1281), 1);
}

TEST(TrainingPlan, NeedsNoWeights) {
  const TrainingPlan plan =
      make_training_plan(named_configuration("gpt2"), options_of(4, 64), tokens(1'000'000), {});
  EXPECT_EQ(plan.n_parameters, 124'439'808);
  EXPECT_EQ(plan.weights, 497'759'232U);
}

TEST(TrainingPlan, IsRefusedWithTheNumbers) {
  TrainingPlan plan;
  plan.weights = 3'000'000'000;
  plan.activations = 1'000'000'000;
  plan.available = 2'500'000'000;
  try {
    check_training_plan(plan);
    FAIL();
  } catch (const ResourceError& error) {
    const std::string message = error.what();
    EXPECT_NE(message.find("needs 4.00 GB"), std::string::npos) << message;
    EXPECT_NE(message.find("2.50 GB are available"), std::string::npos) << message;
    EXPECT_NE(message.find("adapter"), std::string::npos) << message;
  }
  plan.activations = 4'000'000'000;
  EXPECT_THROW(check_training_plan(plan), ResourceError);
  plan.available = 0;  // unknown
  EXPECT_NO_THROW(check_training_plan(plan));
  TrainingOptions huge = options_of(int64_t{1} << 40, int64_t{1} << 40);
  EXPECT_THROW(make_training_plan(named_configuration("gpt2"), huge, tokens(1000), {}),
               ArgumentError);
}

}  // namespace
}  // namespace limpid
