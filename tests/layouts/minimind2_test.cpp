// MiniMind2-Small from its Hugging Face folder, against an f64 forward pass in numpy.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "data_paths.h"
#include "executor/executors.h"
#include "model/model.h"
#include "model/model_files.h"

namespace limpid {
namespace {

const std::string kFolder = testing::shared_data_path("models/minimind2-small");

struct Step {
  Model& model;
  KvCache& cache;
  SequenceId sequence;

  std::vector<float> operator()(std::span<const int32_t> tokens) {
    const StepItem item{sequence, tokens, StepItem::Outputs::kLast};
    const auto logits = model.step(cache, {&item, 1});
    return {logits.begin(), logits.end()};
  }
};

float spread_of(const std::vector<float>& values) {
  double sum = 0;
  double squares = 0;
  for (const float value : values) sum += value;
  const double mean = sum / static_cast<double>(values.size());
  for (const float value : values) squares += (value - mean) * (value - mean);
  return static_cast<float>(std::sqrt(squares / static_cast<double>(values.size())));
}

TEST(MiniMind2, GreedyFromIdsIsTheReferences) {
  if (!std::filesystem::exists(kFolder))
    GTEST_SKIP() << "the shared data with MiniMind2-Small are not beside the clone";
  std::ifstream file(kFolder + "/reference_greedy_numpy_f64.json");
  const auto reference = nlohmann::json::parse(file);
  const auto model =
      Model::load(std::make_shared<const Checkpoint>(open_model_files({kFolder, ""})),
                  make_cpu_executor({.n_threads = 2}), {.n_ctx = 512});
  for (const auto& [prompt, expected] : reference.items()) {
    SCOPED_TRACE(prompt);
    const auto cache = model->make_cache(512, DType::kF32, DType::kF32);
    Step step{*model, *cache, cache->add_sequence()};
    std::vector<float> logits = step(expected["prompt_tokens"].get<std::vector<int32_t>>());
    for (const auto& [id, value] :
         expected["top8_logits_after_prompt"].get<std::vector<std::pair<size_t, double>>>()) {
      EXPECT_NEAR(logits[id], value, 1e-4 * spread_of(logits));
    }
    for (const int32_t id : expected["greedy_tokens"].get<std::vector<int32_t>>()) {
      ASSERT_EQ(std::ranges::max_element(logits) - logits.begin(), id);
      logits = step({&id, 1});
    }
  }
}

}  // namespace
}  // namespace limpid
