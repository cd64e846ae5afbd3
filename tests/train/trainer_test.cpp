// The loop of training: resumed to the bit, for any number of threads.
#include "train/trainer.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <malloc.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>

#include "base/mapped_file.h"
#include "checkpoint/safetensors.h"
#include "checkpoint/safetensors_writer.h"
#include "checkpoint/temp_file.h"
#include "executor/executors.h"
#include "limpid/error.hpp"
#include "model/tiny_checkpoint.h"

namespace limpid {
namespace {

struct Case {
  std::string name;
  void (*change)(TrainingOptions& options);
};

TrainingOptions options_of(const Case& c) {
  TrainingOptions options;
  options.batch_size = 3;
  options.seq_len = 20;
  options.grad_accum = 2;
  options.schedule = {ScheduleKind::kConstant, 1e-2, 0, 0, 6};
  options.n_threads = 1;
  c.change(options);
  return options;
}

std::shared_ptr<Checkpoint> model() {
  testing::TinyShape shape = testing::tiny_gpt2_shape();
  shape.d_model = 20;
  shape.n_heads = shape.n_kv_heads = 2;
  shape.head_dim = 10;
  shape.d_ff = 36;
  shape.vocab_size = 19;
  shape.n_ctx = 32;
  return testing::tiny_checkpoint(shape);
}

TokenDocuments documents() {
  TokenDocuments documents;
  for (int32_t t = 0; t < 400; ++t) {
    if (t % 37 == 0) documents.begins.push_back(t);
    documents.ids.push_back((t * t + 3 * t) % 19);
  }
  return documents;
}

StepReport step(Trainer& trainer) {
  const StepReport measured = trainer.measure();
  trainer.update(measured);
  return measured;
}

struct Result {
  std::vector<double> losses;
  std::vector<std::vector<float>> weights;
  bool operator==(const Result&) const = default;

  void add(Trainer& trainer, int n_steps) {
    for (int i = 0; i < n_steps; ++i) losses.push_back(step(trainer).loss);
    weights.clear();
    for (const Parameter& p : trainer.model().parameters())
      weights.emplace_back(p.value->f32().begin(), p.value->f32().end());
  }
};

Result whole_run(const TrainingOptions& options) {
  Trainer trainer(*model(), make_cpu_executor({.n_threads = options.n_threads}), options,
                  documents(), {});
  Result result;
  result.add(trainer, 6);
  return result;
}

class Training : public ::testing::TestWithParam<Case> {};

TEST_P(Training, GoesOnToTheBit) {
  const TrainingOptions options = options_of(GetParam());
  const auto path = std::filesystem::path(::testing::TempDir()) /
                    fmt::format("trainer_test.{}.{}.safetensors", GetParam().name, ::getpid());
  Result result;
  Trainer first(*model(), make_cpu_executor({.n_threads = 1}), options, documents(), {});
  result.add(first, 3);
  first.save_state(path.string());
  Trainer second(first.model().checkpoint(), make_cpu_executor({.n_threads = 1}), options,
                 documents(), {});
  second.load_state(path.string());
  result.add(second, 3);
  EXPECT_TRUE(result == whole_run(options));
  std::filesystem::remove(path);
}

TEST_P(Training, GivesTheSameBitsForAnyThreads) {
  TrainingOptions options = options_of(GetParam());
  const Result expected = whole_run(options);
  options.n_threads = 3;
  EXPECT_TRUE(expected == whole_run(options));
  EXPECT_LT(expected.losses.back(), expected.losses.front());
}

// A process that notes how much memory it holds at the end of a step's micro-batches.
struct WatchedRanks final : Ranks {
  std::vector<double> gather(std::span<const double> values) override {
    const struct mallinfo2 memory = mallinfo2();
    n_bytes = memory.uordblks + memory.hblkhd;
    return Ranks::gather(values);
  }
  size_t n_bytes = 0;
};

// The plan of memory would not know of them.
TEST(TrainingStep, DoesNotHoldTheTokensOfAllItsBatches) {
  const auto n_bytes = [](int64_t grad_accum) {
    const auto ranks = std::make_shared<WatchedRanks>();
    TokenDocuments one = documents();
    one.begins = {0};
    TrainingOptions options = options_of({"adamw", [](TrainingOptions&) {}});
    options.batch_size = 8;
    options.seq_len = 32;
    options.grad_accum = grad_accum;
    options.ranks = ranks;
    Trainer trainer(*model(), make_cpu_executor({.n_threads = 1}), options, one, {});
    trainer.measure();
    return ranks->n_bytes;
  };
  n_bytes(2);
  constexpr size_t kTokensOf100Batches = 100 * 8 * 32 * 2 * sizeof(int32_t);
  EXPECT_LT(n_bytes(102), n_bytes(2) + kTokensOf100Batches / 4);
}

TEST(TrainingState, IsOfItsData) {
  const TempFolder folder;
  const std::string path = folder.path("state.safetensors");
  const TrainingOptions options = options_of({"adamw", [](TrainingOptions&) {}});
  Trainer trainer(*model(), make_cpu_executor({.n_threads = 1}), options, documents(), {});
  trainer.save_state(path);
  trainer.load_state(path);
  TokenDocuments changed;
  const DocumentView same = documents();
  changed.ids.assign(same.ids.begin(), same.ids.end());
  changed.begins.assign(same.begins.begin(), same.begins.end());
  changed.ids.back() ^= 1;
  Trainer other(*model(), make_cpu_executor({.n_threads = 1}), options, changed, {});
  EXPECT_THROW(other.load_state(path), ArgumentError);
  Trainer other_held_out(*model(), make_cpu_executor({.n_threads = 1}), options, same, changed);
  EXPECT_THROW(other_held_out.load_state(path), ArgumentError);
}

TEST(TrainingState, CannotHaveSkippedMoreStepsThanItTook) {
  const TempFolder folder;
  const std::string path = folder.path("state.safetensors");
  const TrainingOptions options = options_of({"adamw", [](TrainingOptions&) {}});
  Trainer trainer(*model(), make_cpu_executor({.n_threads = 1}), options, documents(), {});
  step(trainer);
  trainer.save_state(path);
  std::string bytes(std::filesystem::file_size(path), '\0');
  std::ifstream(path, std::ios::binary).read(bytes.data(), std::ssize(bytes));
  const std::string none = R"("skipped":"0")";
  const size_t at = bytes.find(none);
  ASSERT_NE(at, std::string::npos);
  for (const char* skipped : {R"("skipped":"2")", R"("skipped":"x")"}) {
    folder.write("state.safetensors", bytes.replace(at, none.size(), skipped));
    EXPECT_THROW(trainer.load_state(path), FormatError) << skipped;
  }
}

TEST(TrainingState, HasCountsThatStepsCanAddTo) {
  const TempFolder folder;
  const TrainingOptions options = options_of({"adamw", [](TrainingOptions&) {}});
  Trainer trainer(*model(), make_cpu_executor({.n_threads = 1}), options, documents(), {});
  trainer.save_state(folder.path("saved"));
  const auto file = MappedFile::open(folder.path("saved"));
  const SafetensorsFile saved = parse_safetensors(folder.path("saved"), file->bytes());
  std::vector<NamedTensor> tensors;
  for (const SafetensorsTensor& tensor : saved.tensors)
    tensors.push_back({std::string(tensor.name), tensor.view});
  for (const char* name : {"updates", "position", "tokens"}) {
    auto metadata = saved.metadata;
    metadata.at(name) = std::to_string(std::numeric_limits<int64_t>::max());
    write_safetensors(folder.path("changed"), metadata, tensors);
    EXPECT_THROW(trainer.load_state(folder.path("changed")), FormatError) << name;
  }
}

// Gradients beyond f16: nothing changes but the scale, until they fit; AdamW does not count the
// steps that were skipped.
TEST(LossScaling, SkipsStepsWhoseGradientsAreBeyondF16) {
  testing::TinyShape shape = testing::tiny_gpt2_shape();
  shape.n_ctx = 32;
  shape.tied = false;
  const auto checkpoint = testing::tiny_checkpoint(shape);
  for (const auto& tensor : checkpoint->owned) {
    if (tensor->data() != checkpoint->tensors.at("output.weight").data) continue;
    for (float& value : tensor->f32()) value *= 300;
  }
  TrainingOptions options = options_of({"f16", [](TrainingOptions&) {}});
  options.model.tape.dtype = DType::kF16;
  Trainer trainer(*checkpoint, make_cpu_executor({.n_threads = 1}), options, documents(), {});
  const auto weights = [&] {
    Result result;
    result.add(trainer, 0);
    return result.weights;
  };
  const auto before = weights();
  StepReport report = step(trainer);
  EXPECT_EQ(report.loss_scale, 65536);
  ASSERT_TRUE(report.skipped);
  EXPECT_TRUE(weights() == before);
  while (report.skipped && trainer.n_updates() < 6) report = step(trainer);
  EXPECT_FALSE(report.skipped);
  EXPECT_EQ(report.loss_scale, std::ldexp(65536, 1 - static_cast<int>(trainer.n_updates())));
  EXPECT_TRUE(std::isfinite(report.grad_norm));
  EXPECT_FALSE(weights() == before);
}

TEST(LossScaling, RisesAfterManyGoodSteps) {
  LossScale scale(DType::kF16);
  scale.skipped();
  for (int i = 0; i < 1999; ++i) scale.updated();
  EXPECT_EQ(scale.value(), 32768);
  scale.updated();
  EXPECT_EQ(scale.value(), 65536);
  EXPECT_EQ(scale.n_good_steps(), 0);
  LossScale fixed(DType::kBF16);
  for (int i = 0; i < 5000; ++i) fixed.updated();
  EXPECT_EQ(fixed.value(), 1);
  EXPECT_FALSE(fixed.can_fall());
}

using Options = TrainingOptions;
INSTANTIATE_TEST_SUITE_P(
    Cases, Training,
    ::testing::Values(Case{"adamw", [](Options&) {}},
                      Case{"sgd", [](Options& o) { o.optimizer.kind = OptimizerKind::kSgd; }},
                      Case{"muon", [](Options& o) { o.optimizer.kind = OptimizerKind::kMuon; }},
                      Case{"dropout", [](Options& o) { o.model.dropout = 0.1; }},
                      Case{"bf16", [](Options& o) { o.model.tape.dtype = DType::kBF16; }},
                      Case{"f16_dropout_recompute",
                           [](Options& o) {
                             o.model.tape = {DType::kF16, true};
                             o.model.dropout = 0.1;
                           }}),
    [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace limpid
