// Gradients and twenty steps of AdamW and of Muon beside torch's in f64
// (tools/golden/make_training.py).
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "data_paths.h"
#include "executor/executors.h"
#include "model/model_files.h"
#include "train/optimizer.h"
#include "train/training_model.h"

namespace limpid {
namespace {

struct Golden {
  std::string folder;
  nlohmann::json steps;
};

Golden golden(const std::string& name) {
  const std::string folder = testing::test_data_path("training/" + name);
  return {folder, nlohmann::json::parse(std::ifstream(folder + "/steps.json"))};
}

Batch batch_of(const nlohmann::json& sequences) {
  Batch batch;
  for (const auto& ids : sequences) {
    batch.lengths.push_back(static_cast<int64_t>(ids.size()));
    for (size_t i = 0; i < ids.size(); ++i) {
      batch.token_ids.push_back(ids[i]);
      batch.targets.push_back(i + 1 < ids.size() ? ids[i + 1].get<int32_t>() : Batch::kNoTarget);
    }
  }
  return batch;
}

double mean_loss(TrainingModel& model, const Batch& batch) {
  const auto n = static_cast<double>(batch.n_targets());
  double sum = 0;
  for (const double loss : model.losses_and_gradients(batch, static_cast<float>(1 / n)))
    sum += loss;
  return sum / n;
}

using Case = std::tuple<const char*, const char*>;  // model, executor

class Torch : public ::testing::TestWithParam<Case> {
 protected:
  Golden golden_ = golden(std::get<0>(GetParam()));
  std::string executor_ = std::get<1>(GetParam());
  TrainingModel model_{open_model_files({golden_.folder}), make_executor(executor_)};
};

TEST_P(Torch, HasTheSameGradients) {
  mean_loss(model_, batch_of(golden_.steps["batches"][0]));
  const auto expected = copy_to_f32(open_model_files({golden_.folder + "/gradients"}));
  const double limit = executor_ == "reference" ? 1e-5 : 1e-4;
  for (const Parameter& parameter : model_.parameters()) {
    const float* wanted = expected->tensors.at(parameter.name).f32();
    const std::span<const float> given = parameter.gradient.f32();
    double largest = 0;
    double difference = 0;
    for (size_t i = 0; i < given.size(); ++i) {
      largest = std::max(largest, std::abs(static_cast<double>(wanted[i])));
      difference = std::max(difference, std::abs(static_cast<double>(given[i]) - wanted[i]));
    }
    EXPECT_GT(largest, 0) << parameter.name;
    EXPECT_LE(difference, limit * largest) << parameter.name;
  }
}

// Of GPT-2's matrices, which lie transposed in torch, the golden run has none.
class TorchMuon : public Torch {};

TEST_P(TorchMuon, HasTheSameLossesForTwentySteps) {
  OptimizerOptions options;
  options.kind = OptimizerKind::kMuon;
  Optimizer optimizer(options, model_.parameters());
  ThreadPool pool(2);
  for (size_t step = 0; step < golden_.steps["muon_losses"].size(); ++step) {
    model_.zero_gradients();
    const double loss = mean_loss(model_, batch_of(golden_.steps["batches"][step]));
    EXPECT_NEAR(loss, golden_.steps["muon_losses"][step].get<double>(), 1e-4) << "step " << step;
    optimizer.step(1e-2, optimizer.gradient_norm(pool), pool);
    model_.refresh();
  }
}

TEST_P(Torch, HasTheSameLossesForTwentySteps) {
  OptimizerOptions options;
  options.beta1 = 0.9;
  options.beta2 = 0.95;
  options.weight_decay = 0.1;
  options.clip = 1.0;
  Optimizer optimizer(options, model_.parameters());
  ThreadPool pool(2);
  for (size_t step = 0; step < golden_.steps["losses"].size(); ++step) {
    model_.zero_gradients();
    const double loss = mean_loss(model_, batch_of(golden_.steps["batches"][step]));
    EXPECT_NEAR(loss, golden_.steps["losses"][step].get<double>(), 1e-4) << "step " << step;
    const double norm = optimizer.gradient_norm(pool);
    EXPECT_NEAR(norm, golden_.steps["norms"][step].get<double>(), 1e-3 * norm) << "step " << step;
    optimizer.step(1e-2, norm, pool);
    model_.refresh();
  }
}

const auto kName = [](const auto& info) {
  return std::string(std::get<0>(info.param)) + "_" + std::get<1>(info.param);
};

INSTANTIATE_TEST_SUITE_P(Models, Torch,
                         ::testing::Combine(::testing::Values("gpt2", "llama_tied", "llama_untied",
                                                              "qwen3"),
                                            ::testing::Values("reference", "cpu")),
                         kName);

INSTANTIATE_TEST_SUITE_P(Models, TorchMuon,
                         ::testing::Combine(::testing::Values("llama_tied", "llama_untied",
                                                              "qwen3"),
                                            ::testing::Values("reference", "cpu")),
                         kName);

}  // namespace
}  // namespace limpid
