// Trained GPT-2s as their authors saved them, against logits of a numpy forward pass in f64.
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "checkpoint/checkpoint.h"
#include "data_paths.h"
#include "executor/executors.h"
#include "executor/gpu_devices.h"
#include "layouts/canonical.h"
#include "model/decoder_from_checkpoint.h"
#include "model/run_model.h"
#include "model/tiny_checkpoint.h"

namespace limpid {
namespace {

using testing::metadata_value;

struct RealModel {
  const char* file;
  const char* activation;  // what no state dictionary says
  int64_t n_heads;         // 0: the file says it
  bool tied;
};

class RealStateDict : public ::testing::TestWithParam<RealModel> {};

TEST_P(RealStateDict, HasTheLogitsOfItsReference) {
  const std::string folder = testing::shared_data_path("models/makemore-induction/");
  const std::string path = folder + GetParam().file;
  if (!std::filesystem::exists(path)) GTEST_SKIP() << "needs " << path;
  std::ifstream file(folder + "reference_logits_numpy_f64.json");
  const auto reference = nlohmann::json::parse(file).at(GetParam().file);

  Checkpoint checkpoint = open_checkpoint(path);
  checkpoint.metadata.set("given.activation_function",
                          metadata_value(std::string(GetParam().activation)));
  if (GetParam().n_heads > 0)
    checkpoint.metadata.set("given.n_head", metadata_value(GetParam().n_heads));
  const auto canonical = std::make_shared<const Checkpoint>(to_canonical(std::move(checkpoint)));
  const DecoderSpec spec = read_spec(*canonical);
  EXPECT_EQ(spec.tied_embeddings, GetParam().tied);
  EXPECT_EQ(spec.n_layers, reference.at("config").at("n_layer").get<int64_t>());

  const auto ids = reference.at("input_ids").get<std::vector<int32_t>>();
  std::vector<double> expected;
  for (const auto& row : reference.at("logits")) {
    for (const auto& value : row) expected.push_back(value.get<double>());
  }
  double mean = 0;
  double square = 0;
  for (const double value : expected) mean += value / static_cast<double>(expected.size());
  for (const double value : expected)
    square += (value - mean) * (value - mean) / static_cast<double>(expected.size());
  std::vector<const char*> executors = {"reference", "cpu"};
  if (testing::gpu_problem("opencl").empty()) executors.push_back("opencl");
  for (const char* executor : executors) {
    const auto model = Model::load(canonical, make_executor(executor, {.n_threads = 2}));
    const std::vector<float> logits = testing::run_in_chunks(*model, ids, 64);
    ASSERT_EQ(logits.size(), expected.size());
    double worst = 0;
    for (size_t i = 0; i < logits.size(); ++i)
      worst = std::max(worst, std::abs(logits[i] - expected[i]));
    EXPECT_LE(worst / std::sqrt(square), 1e-4) << executor;
    RecordProperty(executor, std::to_string(worst / std::sqrt(square)));
    std::printf("%s, %s: %.3g of the logits' spread\n", GetParam().file, executor,
                worst / std::sqrt(square));
  }
}

INSTANTIATE_TEST_SUITE_P(Models, RealStateDict,
                         ::testing::Values(RealModel{"makemore_induction_gpt2arch.pt", "gelu_new",
                                                     1, false},
                                           RealModel{"slm4096_char_ckpt.pt", "gelu", 0, true}),
                         [](const auto& info) { return info.index == 0 ? "makemore" : "slm4096"; });

}  // namespace
}  // namespace limpid
