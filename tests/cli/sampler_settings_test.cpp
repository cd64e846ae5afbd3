#include "cli/sampler_settings.h"

#include <gtest/gtest.h>

#include <CLI/CLI.hpp>

#include "cli/flags.h"
#include "cli/model_path.h"
#include "limpid/error.hpp"

namespace limpid::cli {
namespace {

TEST(SamplerSettings, AreReadByTheNamesOfTheirFlags) {
  SamplerOptions sampler;
  set_samplers("temp 0.25, top-k 7, repeat-penalty 1.5, seed 9000000000", sampler);
  EXPECT_EQ(sampler.temperature, 0.25F);
  EXPECT_EQ(sampler.top_k, 7);
  EXPECT_EQ(sampler.repeat_penalty, 1.5F);
  EXPECT_EQ(sampler.seed, 9'000'000'000);
  for (const char* wrong : {"temp", "temp x", "temp 1x", "top-k 1.5", "tmep 1"}) {
    EXPECT_THROW(set_samplers(wrong, sampler), ArgumentError) << wrong;
  }
}

TEST(SamplerSettings, AreShownAsTheyAreRead) {
  SamplerOptions sampler;
  EXPECT_EQ(differing_settings(sampler, {}), "");
  sampler.temperature = 0.2F;
  sampler.repeat_last_n = -1;
  EXPECT_EQ(differing_settings(sampler, {}), "temp 0.2, repeat-last-n -1");
  SamplerOptions again;
  set_samplers(all_settings(sampler), again);
  EXPECT_EQ(all_settings(again), all_settings(sampler));
}

TEST(SamplerSettings, HaveRanges) {
  SamplerOptions sampler;
  EXPECT_THROW(set_sampler("min-p", "1.5", sampler), ArgumentError);
  EXPECT_EQ(sampler.min_p, SamplerOptions{}.min_p);
  // As a float, 1e30 is a little more than the bound.
  for (const char* end : {"1e30", "-1e30"}) EXPECT_NO_THROW(set_sampler("temp", end, sampler));
  EXPECT_THROW(set_sampler("temp", "1.001e30", sampler), ArgumentError);
}

TEST(SamplerSettings, HaveEverySpellingOfTheirOptions) {
  SamplerOptions sampler;
  EXPECT_EQ(set_sampler("temperature", "0.25", sampler), "temp");
  EXPECT_EQ(set_sampler("top_k", "7", sampler), "top-k");
  EXPECT_EQ(set_sampler("typical_p", "0.5", sampler), "typical");
  EXPECT_EQ(set_sampler("s", "3", sampler), "seed");
  EXPECT_EQ(differing_settings(sampler, {}), "seed 3, temp 0.25, top-k 7, typical 0.5");
}

TEST(SamplerSettings, RecommendedOnesCountWhereNoFlagSaysOtherwise) {
  SamplerOptions recommended;
  recommended.temperature = 0.0F;
  recommended.top_k = 20;
  recommended.repeat_penalty = 1.1F;
  SamplerOptions sampler;
  std::vector<std::string> given;
  CLI::App app;
  declare_settings(app, sampler, given);
  parse(app, "run", {"--temperature", "0.5", "--top-p", "0.7"});
  EXPECT_EQ(apply_recommended(given, recommended, sampler), "top-k 20, repeat-penalty 1.1");
  EXPECT_EQ(sampler.temperature, 0.5F);
  EXPECT_EQ(sampler.top_p, 0.7F);
  EXPECT_EQ(sampler.top_k, 20);
  EXPECT_EQ(sampler.repeat_penalty, 1.1F);
}

TEST(SamplerSettings, OfEveryNamedModelCanBeRead) {
  for (const NamedModel& model : kNamedModels) {
    SamplerOptions sampler;
    EXPECT_NO_THROW(set_samplers(model.sampling, sampler)) << model.name;
  }
}

}  // namespace
}  // namespace limpid::cli
