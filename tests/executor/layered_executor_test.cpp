// The seam between two devices: what lies where, and what is moved when. Whole models on it are in
// model/invariance_test.cpp.
#include "executor/layered_executor.h"

#include <gtest/gtest.h>

#include "executor/delegating_executor.h"
#include "executor/executors.h"
#include "limpid/error.hpp"
#include "model/model.h"
#include "model/run_model.h"
#include "model/tiny_checkpoint.h"

namespace limpid {
namespace {

// Keeps a list of what is called, of several executors in one order.
class LoggingExecutor final : public DelegatingExecutor {
 public:
  LoggingExecutor(std::string name, std::vector<std::string>& log)
      : DelegatingExecutor(make_reference_executor({.n_threads = 1})),
        name_(std::move(name)),
        log_(log) {}
  std::string_view name() const override { return name_; }
  Weight load_weight(const WeightSource& source) override {
    log_.push_back(name_ + " loads " + source.name);
    return DelegatingExecutor::load_weight(source);
  }
  RopeTable load_rope(std::span<const double> frequencies, int64_t n_positions) override {
    if (fails) throw ResourceError("no memory");
    return DelegatingExecutor::load_rope(frequencies, n_positions);
  }
  void begin_step() override {
    if (fails) throw ResourceError("no step");
    log_.push_back(name_ + " begins");
    DelegatingExecutor::begin_step();
  }
  void end_step() override {
    log_.push_back(name_ + " ends");
    DelegatingExecutor::end_step();
  }
  bool fails = false;

 protected:
  void enter(std::string_view op) override { log_.push_back(name_ + " " + std::string(op)); }

 private:
  std::string name_;
  std::vector<std::string>& log_;
};

struct Logged {
  std::vector<std::string> log;
  LoggingExecutor* first = nullptr;
  LoggingExecutor* second = nullptr;
  std::unique_ptr<Model> model;

  explicit Logged(const testing::TinyShape& shape, int64_t n_first) {
    auto a = std::make_unique<LoggingExecutor>("A", log);
    auto b = std::make_unique<LoggingExecutor>("B", log);
    first = a.get();
    second = b.get();
    model = Model::load(
        testing::tiny_checkpoint(shape),
        std::make_unique<LayeredExecutor>(std::move(a), std::move(b), n_first, shape.n_layers));
  }
  int64_t count(std::string_view entry) const { return std::ranges::count(log, entry); }
  int64_t index(std::string_view entry) const {
    return std::ranges::find(log, entry) - log.begin();
  }
};

testing::TinyShape four_layers(bool tied) {
  testing::TinyShape shape;
  shape.n_layers = 4;
  shape.tied = tied;
  return shape;
}

TEST(LayeredExecutor, LoadsAWeightWhereItsLayerIs) {
  const Logged untied(four_layers(false), 3);
  for (const char* loaded :
       {"A loads token_embd.weight", "A loads blk.0.attn_q.weight", "A loads blk.2.ffn_down.weight",
        "B loads blk.3.attn_norm.weight", "B loads output_norm.weight", "B loads output.weight"})
    EXPECT_EQ(untied.count(loaded), 1) << loaded;
  EXPECT_EQ(std::ssize(untied.log), 1 + 4 * 9 + 2);  // nothing twice
  EXPECT_EQ(untied.model->executor().name(), "A:3+B");

  const Logged tied(four_layers(true), 1);  // a table on one, the head on the other
  EXPECT_EQ(tied.count("A loads token_embd.weight"), 1);
  EXPECT_EQ(tied.count("B loads token_embd.weight"), 1);
}

TEST(LayeredExecutor, ATableThatTheSecondCannotLoadIsNotCounted) {
  std::vector<std::string> log;
  auto b = std::make_unique<LoggingExecutor>("B", log);
  LoggingExecutor& second = *b;
  LayeredExecutor executor(std::make_unique<LoggingExecutor>("A", log), std::move(b), 1, 2);
  const std::vector<double> frequencies = {1, 0.5};
  second.fails = true;
  EXPECT_THROW(executor.load_rope(frequencies, 8), ResourceError);
  second.fails = false;
  EXPECT_EQ(executor.load_rope(frequencies, 8).id, 0);
}

TEST(LayeredExecutor, MovesOneActivationOnce) {
  Logged logged(four_layers(true), 2);
  const auto tokens = testing::some_tokens(5, 50);
  logged.log.clear();
  testing::run_in_chunks(*logged.model, tokens, 5);
  EXPECT_EQ(logged.count("A read"), 1);
  EXPECT_EQ(logged.count("B write"), 1);
  EXPECT_EQ(logged.count("A attention"), 2);
  EXPECT_EQ(logged.count("B attention"), 2);
  EXPECT_EQ(logged.count("B embed"), 0);
  EXPECT_EQ(logged.count("A select_outputs"), 0);
  // The first one's step ends before its result is read, and before the second one computes.
  EXPECT_LT(logged.index("B begins"), logged.index("A ends"));
  EXPECT_LT(logged.index("A ends"), logged.index("A read"));
  EXPECT_LT(logged.index("A read"), logged.index("B write"));
  EXPECT_LT(logged.index("B write"), logged.index("B rms_norm"));
  EXPECT_EQ(logged.count("A ends"), 1);
  EXPECT_EQ(logged.count("B ends"), 1);
}

TEST(LayeredExecutor, HasTheBitsOfOneWhenBothAreOfAKind) {
  const auto tokens = testing::some_tokens(70, 50);
  for (const bool tied : {true, false}) {
    const auto alone = Model::load(testing::tiny_checkpoint(four_layers(tied)),
                                   make_reference_executor({.n_threads = 1}));
    const auto expected = testing::run_in_chunks(*alone, tokens, 70);
    for (const int64_t n_first : {1, 2, 3}) {
      Logged logged(four_layers(tied), n_first);
      EXPECT_EQ(testing::run_in_chunks(*logged.model, tokens, 7), expected) << n_first;
    }
  }
}

TEST(LayeredExecutor, ReadsOutStreamsOfTheHost) {
  Logged logged(four_layers(true), 2);
  const auto alone = Model::load(testing::tiny_checkpoint(four_layers(true)),
                                 make_reference_executor({.n_threads = 1}));
  const std::vector<float> streams(3 * 64, 0.25F);
  EXPECT_EQ(testing::read_out(*logged.model, streams), testing::read_out(*alone, streams));
}

TEST(LayeredExecutor, AStepThatCannotBeginOnTheSecondEndsOnTheFirst) {
  Logged logged(four_layers(true), 2);
  const auto cache = logged.model->make_cache(64);
  const int32_t token = 1;
  const StepItem item{cache->add_sequence(), {&token, 1}, StepItem::Outputs::kLast};
  logged.log.clear();
  logged.second->fails = true;
  EXPECT_THROW(logged.model->step(*cache, {&item, 1}), ResourceError);
  EXPECT_EQ(logged.count("A ends"), 1);
  logged.second->fails = false;
  EXPECT_EQ(logged.model->step(*cache, {&item, 1}).size(), 50U);
}

TEST(LayeredExecutor, ABlockOfTheCacheHasBothParts) {
  LayeredExecutor executor(make_reference_executor({.n_threads = 1}),
                           make_cpu_executor({.n_threads = 1}), 1, 3);
  const KvLayout layout{3, 2, 16, 2, DType::kF16, DType::kF16};
  const auto kv = executor.allocate_kv(layout);
  // One layer in f32 on the reference, two in f16 on the CPU.
  EXPECT_EQ(kv->block_bytes(), 2U * 64 * 16 * 2 * (1 * 4 + 2 * 2));
  EXPECT_EQ(executor.kv_bytes(layout), 2 * kv->block_bytes());
  std::vector<std::byte> block(kv->block_bytes());
  for (size_t i = 0; i < block.size(); ++i) block[i] = static_cast<std::byte>(i * 7 % 251);
  kv->write_block(1, block);
  EXPECT_EQ(kv->bytes_to_grow(5), 3 * kv->block_bytes());
  kv->grow(5);
  EXPECT_EQ(kv->layout().n_blocks, 5);
  std::vector<std::byte> again(block.size());
  kv->read_block(1, again);
  EXPECT_EQ(again, block);
  EXPECT_THROW(executor.allocate_kv({2, 2, 16, 2, DType::kF16, DType::kF16}), ShapeError);
}

// Half of the layers on each device: each has 100 bytes, or both have the same.
TEST(LayeredExecutor, CountsOnceAMemoryThatBothHave) {
  class Sized final : public DelegatingExecutor {
   public:
    explicit Sized(std::string memory)
        : DelegatingExecutor(make_reference_executor({.n_threads = 1})),
          memory_(std::move(memory)) {}
    uint64_t available_memory() const override { return 100; }
    std::string memory_name() const override { return memory_; }

   private:
    std::string memory_;
  };
  for (const char* second : {"a", "b"}) {
    const LayeredExecutor executor(std::make_unique<Sized>("a"), std::make_unique<Sized>(second), 2,
                                   4);
    EXPECT_EQ(executor.available_memory(), second == std::string("a") ? 100U : 200U);
  }
}

TEST(LayeredExecutor, NeedsLayersForBoth) {
  for (const int64_t n : {0, 3, -1, 7}) {
    EXPECT_THROW(LayeredExecutor(make_reference_executor({.n_threads = 1}),
                                 make_reference_executor({.n_threads = 1}), n, 3),
                 ArgumentError)
        << n;
  }
}

}  // namespace
}  // namespace limpid
