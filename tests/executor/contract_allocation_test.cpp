// The contract, part three: within a step the CPU executor allocates nothing and asks the system
// for nothing, whatever the op, the type of the weights or the family, and the decoder neither. So
// no op can fail for want of memory.
#include <gtest/gtest.h>

#include "allocation_counter.h"
#include "executor/cpu/cpu_executor.h"
#include "executor/delegating_executor.h"
#include "executor/op_cases.h"
#include "model/family_cases.h"
#include "model/model.h"
#include "model/run_model.h"

namespace limpid {
namespace {

// Notes what ops and steps allocate, without an allocation of its own.
class Watcher final : public DelegatingExecutor {
 public:
  explicit Watcher(int n_threads)
      : DelegatingExecutor(std::make_unique<CpuExecutor>(ExecutorOptions{n_threads, ""})),
        cpu_(static_cast<CpuExecutor&>(inner())) {}

  struct Count {
    int64_t n_allocations = 0;
    int64_t n_pieces = 0;  // of address space for activations
    bool operator==(const Count&) const = default;
  };

  bool reserves_itself = false;  // for callers that drive the executor without Model
  Count of_ops{};                // sums over all steps so far
  Count of_steps{};              // the same, what the caller does between ops included
  int64_t n_ops = 0;
  int64_t most_alive = 0;  // activations, after an op

  void begin_step() override {
    if (reserves_itself) inner().reserve(inputs().n_tokens(), inputs().n_tokens());
    DelegatingExecutor::begin_step();
    is_within_step_ = true;
    step_begin_ = now();
  }
  void end_step() override {
    add(of_steps, step_begin_);
    is_within_step_ = false;
    DelegatingExecutor::end_step();
  }

 protected:
  void enter(std::string_view /*op*/) override { op_begin_ = now(); }
  void leave() override {
    if (!is_within_step_) return;
    add(of_ops, op_begin_);
    ++n_ops;
    most_alive = std::max(most_alive, cpu_.arena().n_taken());
  }

 private:
  Count now() const { return {testing::n_allocations.load(), cpu_.arena().n_pieces()}; }
  void add(Count& sum, const Count& since) const {
    const Count until = now();
    sum.n_allocations += until.n_allocations - since.n_allocations;
    sum.n_pieces += until.n_pieces - since.n_pieces;
  }

  CpuExecutor& cpu_;
  Count step_begin_{};
  Count op_begin_{};
  bool is_within_step_ = false;
};

TEST(Contract, OpsAllocateNothing) {
  for (const OpCase& c : op_cases()) {
    for (const int n_threads : {1, 3}) {
      Watcher watcher(n_threads);
      watcher.reserves_itself = true;
      c.run(watcher);
      EXPECT_GT(watcher.n_ops, 0) << c.name;
      EXPECT_EQ(watcher.of_ops, Watcher::Count{}) << c.name << ", " << n_threads << " threads";
    }
  }
}

// A decode of few sequences with a long context shares blocks out over threads, and keeps a partial
// result of each block and head: the more threads and heads, the more memory.
TEST(Contract, AttentionOverManyThreadsAllocatesNothing) {
  constexpr int64_t kKvHeads = 120, kGroup = 24, kHeadDim = 128, kPosition = 640;
  Watcher watcher(32);
  watcher.reserves_itself = true;
  const Tensor q = random_tensor(DType::kF32, 1, kKvHeads * kGroup * kHeadDim, 1);
  const Tensor kv = random_tensor(DType::kF32, 1, kKvHeads * kHeadDim, 2);
  const Weight q_table = watcher.load_weight({"q", q, WeightUse::kLookup});
  const Weight kv_table = watcher.load_weight({"kv", kv, WeightUse::kLookup});
  const int64_t n_blocks = kPosition / kKvBlock + 1;
  const auto storage =
      watcher.allocate_kv({1, kKvHeads, kHeadDim, n_blocks, DType::kF16, DType::kF16});
  StepInputs& inputs = watcher.inputs();
  inputs.token_ids = {0};
  inputs.positions = {kPosition};
  inputs.sequences = {0};
  for (int32_t i = 0; i < n_blocks; ++i) inputs.block_table.push_back(i);
  inputs.block_table_begin = {0, static_cast<int32_t>(n_blocks)};
  watcher.begin_step();
  {
    const Activation queries = watcher.embed(q_table, EmbedBy::kTokenId);
    const Activation keys = watcher.embed(kv_table, EmbedBy::kTokenId);
    watcher.attention(queries, keys, keys, *storage, 0,
                      {kKvHeads * kGroup, kKvHeads, kHeadDim, 0.1F});
  }
  watcher.end_step();
  EXPECT_EQ(watcher.of_steps, Watcher::Count{});
}

// A projection that has as many rows as the vocabulary is a head only if it is loaded as one. Its
// result here has 512 x 34,000 floats, 66 MiB.
TEST(Contract, AProjectionAsWideAsTheVocabularyAllocatesNothing) {
  constexpr int64_t kTokens = 512, kRows = 34000;
  Watcher watcher(2);
  const Tensor matrix = random_tensor(DType::kF16, kRows, 16, 1);
  const Weight table = watcher.load_weight({"table", matrix, WeightUse::kLookup});
  const Weight weight = watcher.load_weight({"weight", matrix, WeightUse::kProjection});
  watcher.reserve(kTokens, 1);
  StepInputs& inputs = watcher.inputs();
  inputs.token_ids.assign(kTokens, 3);
  inputs.positions.assign(kTokens, 0);
  inputs.sequences.assign(kTokens, 0);
  inputs.block_table_begin = {0, 0};
  watcher.begin_step();
  {
    Projection projection[] = {{weight, {}, {}}};
    watcher.linear(watcher.embed(table, EmbedBy::kTokenId), projection);
  }
  watcher.end_step();
  EXPECT_EQ(watcher.of_steps, Watcher::Count{});
}

class StepAllocations : public ::testing::TestWithParam<testing::FamilyCase> {};

TEST_P(StepAllocations, AreNone) {
  const auto checkpoint = testing::checkpoint_of(GetParam());
  const auto tokens = testing::some_tokens(300, 50);
  for (const int n_threads : {1, 3}) {
    auto owned = std::make_unique<Watcher>(n_threads);
    const Watcher& watcher = *owned;
    const auto model = Model::load(checkpoint, std::move(owned));
    const auto cache = model->make_cache(1000, GetParam().kv_dtype, GetParam().kv_dtype);
    const SequenceId ids[] = {cache->add_sequence(), cache->add_sequence()};
    const auto step = [&](size_t n_first, size_t n_second, StepItem::Outputs outputs) {
      const std::vector<StepItem> items = {{ids[0], std::span(tokens).first(n_first), outputs},
                                           {ids[1], std::span(tokens).first(n_second), outputs}};
      model->step(*cache, items);
    };
    step(300, 0, StepItem::Outputs::kLast);  // a prompt,
    step(1, 0, StepItem::Outputs::kLast);    // the token after it,
    step(280, 1, StepItem::Outputs::kNone);  // the next ones beside another sequence,
    step(1, 40, StepItem::Outputs::kAll);    // and a first step with many outputs
    EXPECT_EQ(watcher.of_steps, Watcher::Count{}) << n_threads << " threads";
    EXPECT_GT(watcher.n_ops, 4 * 10);
    EXPECT_LE(watcher.most_alive, kMostActivations);
  }
}

const auto kNameOfCase = [](const auto& info) { return info.param.name; };
INSTANTIATE_TEST_SUITE_P(Types, StepAllocations, ::testing::ValuesIn(testing::type_cases()),
                         kNameOfCase);
INSTANTIATE_TEST_SUITE_P(Families, StepAllocations, ::testing::ValuesIn(testing::family_cases()),
                         kNameOfCase);

}  // namespace
}  // namespace limpid
