// Micro-batches of one process and of several ranks give the same bits. The ranks of these tests
// are threads.
#include "train/gradient_sum.h"

#include <gtest/gtest.h>

#include <barrier>
#include <cstring>
#include <map>
#include <thread>

#include "data_paths.h"
#include "executor/executors.h"
#include "limpid/error.hpp"
#include "model/model_files.h"
#include "train/trainer.h"

namespace limpid {
namespace {

// What the ranks of one test see of each other between two barriers.
struct Meeting {
  explicit Meeting(int n) : barrier(n), floats(n), values(n) {}
  std::barrier<> barrier;
  std::vector<std::span<const float>> floats;
  std::vector<std::vector<double>> values;
};

class ThreadRanks final : public Ranks {
 public:
  ThreadRanks(Meeting& meeting, int rank) : meeting_(meeting), rank_(rank) {}
  int rank() const override { return rank_; }
  int size() const override { return static_cast<int>(meeting_.floats.size()); }

  std::vector<double> gather(std::span<const double> values) override {
    meeting_.values[static_cast<size_t>(rank_)].assign(values.begin(), values.end());
    meeting_.barrier.arrive_and_wait();
    std::vector<double> all;
    for (const auto& of_rank : meeting_.values)
      all.insert(all.end(), of_rank.begin(), of_rank.end());
    meeting_.barrier.arrive_and_wait();
    return all;
  }
  int start_scatter(std::span<const float> values, std::span<float> received) override {
    const auto [begin, n] = share(std::ssize(values), rank_);
    meet(values, [&](int rank, std::span<const float> theirs) {
      std::copy_n(theirs.data() + begin, n, received.data() + rank * n);
    });
    return 0;
  }
  int start_gather(std::span<float> values) override {
    meet(values, [&](int rank, std::span<const float> theirs) {
      const auto [begin, n] = share(std::ssize(values), rank);
      if (rank != rank_) std::copy_n(theirs.data() + begin, n, values.data() + begin);
    });
    return 0;
  }

 private:
  template <typename Take>
  void meet(std::span<const float> values, Take&& take) {
    meeting_.floats[static_cast<size_t>(rank_)] = values;
    meeting_.barrier.arrive_and_wait();
    for (int r = 0; r < size(); ++r) take(r, meeting_.floats[static_cast<size_t>(r)]);
    meeting_.barrier.arrive_and_wait();
  }

  Meeting& meeting_;
  int rank_;
};

// Calls body(ranks) for each of `n` ranks, each on a thread of its own.
template <typename Body>
void on_ranks(int n, Body&& body) {
  Meeting meeting(n);
  std::vector<std::thread> threads;
  for (int r = 0; r < n; ++r)
    threads.emplace_back([&, r] { body(std::make_shared<ThreadRanks>(meeting, r)); });
  for (std::thread& thread : threads) thread.join();
}

std::vector<Parameter> parameters(const std::map<std::string, int64_t>& sizes) {
  std::vector<Parameter> all;
  for (const auto& [name, n] : sizes) {
    all.push_back({name, std::make_shared<Tensor>(DType::kF32, Shape{n}),
                   Tensor(DType::kF32, Shape{n}), true});
  }
  return all;
}

// Some are smaller than the number of ranks.
const std::map<std::string, int64_t> kSizes = {{"blk.0.attn_q.weight", 7},
                                               {"blk.1.attn_q.weight", 1},
                                               {"output.weight", 2},
                                               {"token_embd.weight", 40'000}};

// A gradient of micro-batch i whose sum depends on the order of addition.
float element(int64_t i, int64_t at) {
  const float kinds[] = {1e8F, 1.0F, -1e8F, 3.0F, 0.25F, 1e-3F};
  return kinds[(i + at) % 6];
}

std::vector<std::vector<float>> sums(int64_t n_micro_batches, const std::shared_ptr<Ranks>& ranks) {
  std::vector<Parameter> all = parameters(kSizes);
  ThreadPool pool(1);
  GradientSum sum(all, n_micro_batches, ranks, pool);
  for (int64_t round = 0; round < n_micro_batches / ranks->size(); ++round) {
    sum.begin_round(round);
    for (Parameter& parameter : all) {
      const std::span<float> gradient = parameter.gradient.f32();
      for (int64_t at = 0; at < std::ssize(gradient); ++at)
        gradient[at] = element(round * ranks->size() + ranks->rank(), at);
    }
    for (int64_t block = 2; block >= 0; --block) sum.complete(block);
    sum.finish_round();
  }
  std::vector<std::vector<float>> result;
  for (Parameter& parameter : all)
    result.emplace_back(parameter.gradient.f32().begin(), parameter.gradient.f32().end());
  return result;
}

TEST(GradientSum, AddsInOrderOfTheMicroBatchesOnAnyNumberOfRanks) {
  std::vector<std::vector<float>> expected;
  for (const auto& [name, n] : kSizes) {
    expected.emplace_back();
    for (int64_t at = 0; at < n; ++at) {
      float total = element(0, at);
      for (int64_t i = 1; i < 6; ++i) total += element(i, at);
      expected.back().push_back(total);
    }
  }
  EXPECT_EQ(sums(6, std::make_shared<Ranks>()), expected);
  for (const int n_ranks : {2, 3, 6}) {
    on_ranks(n_ranks, [&](const auto& ranks) { EXPECT_EQ(sums(6, ranks), expected) << n_ranks; });
  }
}

TEST(GradientSum, NeedsAsManyMicroBatchesForEachRank) {
  Meeting meeting(2);
  std::vector<Parameter> all = parameters(kSizes);
  ThreadPool pool(1);
  EXPECT_THROW(GradientSum(all, 3, std::make_shared<ThreadRanks>(meeting, 0), pool), ArgumentError);
}

// Losses, norms and weights of a few steps.
struct Course {
  std::vector<double> numbers;
  std::vector<std::vector<float>> weights;
  bool operator==(const Course&) const = default;
};

TokenDocuments documents(int64_t n_tokens) {
  TokenDocuments all;
  for (int64_t i = 0; i < n_tokens; ++i) {
    if (i % 37 == 0) all.begins.push_back(i);
    all.ids.push_back(static_cast<int32_t>(i * i % 29));
  }
  return all;
}

StepReport step(Trainer& trainer) {
  const StepReport measured = trainer.measure();
  trainer.update(measured);
  return measured;
}

Course train(const std::string& model, const std::shared_ptr<Ranks>& ranks) {
  TrainingOptions options;
  options.batch_size = 2;
  options.seq_len = 8;
  options.grad_accum = 4;
  options.n_threads = 1;
  options.schedule = {ScheduleKind::kConstant, 1e-2, 0, 0, 4};
  options.ranks = ranks;
  const Checkpoint checkpoint = open_model_files({testing::test_data_path("training/" + model)});
  Trainer trainer(checkpoint, make_executor("cpu", {.n_threads = 1}), options, documents(900),
                  documents(60));
  Course course;
  for (int i = 0; i < 4; ++i) {
    const StepReport report = step(trainer);
    course.numbers.insert(course.numbers.end(),
                          {report.loss, report.grad_norm, static_cast<double>(report.n_tokens),
                           trainer.held_out_loss()});
  }
  for (Parameter& parameter : trainer.model().parameters())
    course.weights.emplace_back(parameter.value->f32().begin(), parameter.value->f32().end());
  return course;
}

class SharedTraining : public ::testing::TestWithParam<const char*> {};

TEST_P(SharedTraining, HasTheBitsOfOneProcess) {
  const Course expected = train(GetParam(), std::make_shared<Ranks>());
  EXPECT_LT(expected.numbers[12], expected.numbers[0]);
  for (const int n_ranks : {2, 4}) {
    on_ranks(n_ranks,
             [&](const auto& ranks) { EXPECT_TRUE(train(GetParam(), ranks) == expected); });
  }
}

INSTANTIATE_TEST_SUITE_P(Models, SharedTraining,
                         ::testing::Values("gpt2", "llama_tied", "llama_untied", "qwen3"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace limpid
