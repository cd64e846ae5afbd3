#include "generate/model_sampler.h"

#include <gtest/gtest.h>

#include <limits>

#include "limpid/error.hpp"

namespace limpid {
namespace {

TEST(ModelSampler, WhatTheFileStatesReplacesTheDefaults) {
  Metadata metadata;
  const SamplerOptions plain = model_sampler_options(metadata, "m");
  EXPECT_EQ(plain.temperature, SamplerOptions{}.temperature);
  EXPECT_EQ(plain.top_k, SamplerOptions{}.top_k);
  metadata.set("general.sampling.temp", {0.6, "f32"});
  metadata.set("general.sampling.top_k", {int64_t{20}, "i32"});
  metadata.set("general.sampling.top_p", {0.9, "f32"});
  metadata.set("general.sampling.min_p", {0.0, "f32"});
  metadata.set("general.sampling.penalty_repeat", {1.1, "f32"});
  metadata.set("general.sampling.penalty_last_n", {int64_t{-1}, "i32"});
  const SamplerOptions options = model_sampler_options(metadata, "m");
  EXPECT_EQ(options.temperature, 0.6F);
  EXPECT_EQ(options.top_k, 20);
  EXPECT_EQ(options.top_p, 0.9F);
  EXPECT_EQ(options.min_p, 0.0F);
  EXPECT_EQ(options.repeat_penalty, 1.1F);
  EXPECT_EQ(options.repeat_last_n, -1);
}

TEST(ModelSampler, WhatIsOutOfRangeIsRefusedByName) {
  const auto refused = [](const char* name, MetadataValue value) {
    Metadata metadata;
    metadata.set(std::string("general.sampling.") + name, std::move(value));
    EXPECT_THROW(model_sampler_options(metadata, "m"), Error) << name;
  };
  refused("temp", {-1.0, "f32"});
  refused("temp", {std::numeric_limits<double>::quiet_NaN(), "f32"});
  refused("temp", {1e300, "f64"});
  refused("temp", {std::string("hot"), "string"});
  refused("top_k", {int64_t{-1}, "i32"});
  refused("top_k", {int64_t{1} << 40, "i64"});
  refused("penalty_last_n", {int64_t{-2}, "i32"});
}

}  // namespace
}  // namespace limpid
