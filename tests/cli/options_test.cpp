#include "cli/options.h"

#include <gtest/gtest.h>

#include <cmath>

#include "limpid/error.hpp"

namespace limpid::cli {
namespace {

TEST(ParseIntegers, AnySeparator) {
  EXPECT_EQ(parse_integers("1,2,3", "x"), (std::vector<int64_t>{1, 2, 3}));
  EXPECT_EQ(parse_integers("[1, -2,\n3]\n", "x"), (std::vector<int64_t>{1, -2, 3}));
  EXPECT_TRUE(parse_integers(" \n", "x").empty());
}

TEST(ParseIntegers, RefusesWhatIsNone) {
  for (const char* text : {"1,two", "1.5", "3x", "99999999999999999999"}) {
    EXPECT_THROW(parse_integers(text, "x"), ArgumentError) << text;
  }
  EXPECT_THROW(parse_token_ids("-1", "x"), ArgumentError);
  EXPECT_THROW(parse_token_ids("4294967296", "x"), ArgumentError);
}

TEST(Unescape, KnownEscapesOnly) { EXPECT_EQ(unescape(R"(a\nb\t\x41\\n\q\)"), "a\nb\tA\\n\\q\\"); }

TEST(GenerationFlags, LogitBias) {
  GenerationFlags values;
  values.logit_bias = {"15043+1.5", "7-2", "9-inf"};
  const auto bias = to_generation_options(values).sampler.logit_bias;
  ASSERT_EQ(bias.size(), 3U);
  EXPECT_EQ(bias[0].id, 15043);
  EXPECT_EQ(bias[0].bias, 1.5F);
  EXPECT_EQ(bias[1].bias, -2.0F);
  EXPECT_TRUE(std::isinf(bias[2].bias) && bias[2].bias < 0);
  for (const char* wrong : {"15043", "x+1", "1+", "1+1x", "+1"}) {
    values.logit_bias = {wrong};
    EXPECT_THROW(to_generation_options(values), ArgumentError) << wrong;
  }
}

TEST(GenerationFlags, DefaultsAreTheLibrarys) {
  const GenerationOptions flags = to_generation_options({});
  const GenerationOptions library;
  EXPECT_EQ(flags.n_predict, library.n_predict);
  EXPECT_EQ(flags.sampler.temperature, library.sampler.temperature);
  EXPECT_EQ(flags.sampler.top_k, library.sampler.top_k);
  EXPECT_EQ(flags.sampler.top_p, library.sampler.top_p);
  EXPECT_EQ(flags.sampler.min_p, library.sampler.min_p);
  EXPECT_EQ(flags.sampler.repeat_last_n, library.sampler.repeat_last_n);
  EXPECT_EQ(flags.sampler.repeat_penalty, library.sampler.repeat_penalty);
  EXPECT_EQ(flags.sampler.order, library.sampler.order);
}

TEST(GenerationFlags, RangesAreChecked) {
  GenerationFlags values;
  values.min_p = 1.5;
  EXPECT_THROW(to_generation_options(values), ArgumentError);
  values = {};
  values.n_predict = -3;
  EXPECT_THROW(to_generation_options(values), ArgumentError);
  values = {};
  values.repeat_penalty = 0;
  EXPECT_THROW(to_generation_options(values), ArgumentError);
}

TEST(ModelFlags, RangesAreChecked) {
  ModelFlags values;
  values.n_batch = 64;
  EXPECT_EQ(to_open_options(values).n_batch, 64);  // the smaller of -b and -ub
  values.n_batch = 0;
  EXPECT_THROW(to_open_options(values), ArgumentError);
  values = {};
  values.cache_type_k = "q3";
  EXPECT_THROW(to_open_options(values), ArgumentError);
  values = {};
  values.n_threads = 2;
  values.n_threads_batch = 4;
  EXPECT_THROW(to_open_options(values), ArgumentError);
}

}  // namespace
}  // namespace limpid::cli
