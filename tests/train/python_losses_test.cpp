// Runs of Karpathy's original, repeated: every loss to 1e-9, every sample to the letter.
#include <gtest/gtest.h>

#include <cmath>

#include "data_paths.h"
#include "train/microgpt/trainer.h"
#include "train/microgpt_golden.h"

namespace limpid::microgpt {
namespace {

const std::string kData = testing::test_data_path("microgpt/");

void expect_repeats(const Config& config, std::string_view data, const Golden& golden) {
  Trainer trainer(config, Dataset::parse(data, "data"), make_scalar_engine);
  ASSERT_FALSE(golden.losses.empty());
  double worst = 0;
  for (size_t i = 0; i < golden.losses.size(); ++i) {
    const double loss = trainer.look();
    trainer.update();
    const double error = std::abs(loss / golden.losses[i] - 1.0);
    ASSERT_LE(error, 1e-9) << "step " << i + 1 << ": " << loss << " for " << golden.losses[i];
    worst = std::max(worst, error);
  }
  ::testing::Test::RecordProperty("worst_relative_error", std::to_string(worst));
  for (const std::string& sample : golden.samples) EXPECT_EQ(trainer.sample(), sample);
}

TEST(PythonLosses, DefaultSettings) {
  Config config = preset("python");
  config.num_steps = 50;
  expect_repeats(config, names_text(), read_golden(kData + "python_default.txt"));
}

TEST(PythonLosses, TwoLayersThirtyTwoWide) {
  Config config = preset("python");
  config.shape.n_embd = 32;
  config.shape.n_layer = 2;
  config.num_steps = 40;
  expect_repeats(config, names_text(), read_golden(kData + "python_wide.txt"));
}

TEST(PythonLosses, OtherSeedOddSizesAndLettersBeyondAscii) {
  Config config = preset("python");
  config.seed = 1234567890123;
  config.shape.n_embd = 12;
  config.shape.n_head = 3;
  config.shape.block_size = 8;
  config.num_steps = 60;
  config.learning_rate = 0.02;
  config.temperature = 0.9;
  expect_repeats(config, read_file(kData + "cities.txt"), read_golden(kData + "python_cities.txt"));
}

TEST(PythonLosses, SeedZeroThreeLayersEightWide) {
  Config config = preset("python");
  config.seed = 0;
  config.shape.n_embd = 8;
  config.shape.n_layer = 3;
  config.shape.n_head = 2;
  config.shape.block_size = 6;
  config.num_steps = 60;
  expect_repeats(config, names_text(), read_golden(kData + "python_seed0.txt"));
}

TEST(PythonLosses, AThousandStepsAndTwentySamples) {
  const Golden golden = read_golden(kData + "python_default_1000.txt");
  ASSERT_EQ(golden.losses.size(), 1000U);
  ASSERT_EQ(golden.samples.size(), 20U);
  expect_repeats(preset("python"), names_text(), golden);
}

}  // namespace
}  // namespace limpid::microgpt
