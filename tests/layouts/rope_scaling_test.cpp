#include "layouts/rope_scaling.h"

#include <gtest/gtest.h>

#include <cmath>

#include "limpid/error.hpp"
#include "model/decoder_from_checkpoint.h"
#include "model/tiny_checkpoint.h"

namespace limpid {
namespace {

using testing::tiny_checkpoint;

TEST(RopeScaling, ReadsWhatAUserWrites) {
  EXPECT_EQ(parse_rope_scaling("none").kind, RopeScalingKind::kNone);
  const RopeScaling linear = parse_rope_scaling("linear:4");
  EXPECT_EQ(linear.kind, RopeScalingKind::kLinear);
  EXPECT_EQ(linear.factor, 4.0);
  const RopeScaling llama3 = parse_rope_scaling("llama3:32,1,4,8192");
  EXPECT_EQ(llama3.kind, RopeScalingKind::kLlama3);
  EXPECT_EQ(llama3.factor, 32.0);
  EXPECT_EQ(llama3.low_freq_factor, 1.0);
  EXPECT_EQ(llama3.high_freq_factor, 4.0);
  EXPECT_EQ(llama3.original_context, 8192);
  for (const char* bad :
       {"", "yarn:4", "none:1", "linear", "linear:", "linear:0", "linear:-2", "linear:4,5",
        "linear:x", "linear:inf", "linear:nan", "llama3", "llama3:8", "llama3:8,1,4",
        "llama3:8,4,1,8192", "llama3:8,1,4,8192.5", "llama3:8,1,4,8192,", "llama3:8,1,4,1e300"}) {
    EXPECT_THROW(parse_rope_scaling(bad), ArgumentError) << bad;
  }
}

// Head of 128, base 500,000, factor 8, low 1, high 4, original length 8,192: Llama 3.1. The
// expected numbers are those of transformers' `_compute_llama3_parameters`, in f64.
TEST(RopeScaling, SlowsDownTheSlowRotationsOfLlama3) {
  const std::vector<double> frequencies = rope_frequencies(500000.0, 128);
  ASSERT_EQ(frequencies.size(), 64U);
  const std::vector<float> divisors =
      rope_divisors(parse_rope_scaling("llama3:8,1,4,8192"), frequencies);
  EXPECT_EQ(divisors[0], 1.0F);
  EXPECT_EQ(divisors[28], 1.0F);
  EXPECT_EQ(divisors[63], 8.0F);
  EXPECT_EQ(divisors[35], 8.0F);
  for (size_t i = 1; i < divisors.size(); ++i) EXPECT_GE(divisors[i], divisors[i - 1]) << i;
  for (const size_t i : {29U, 31U, 34U}) {
    const double turns = 8192 * frequencies[i] / (2 * 3.14159265358979323846);
    ASSERT_GT(turns, 1.0);
    ASSERT_LT(turns, 4.0);
    const double smooth = (turns - 1) / 3;
    const double scaled = (1 - smooth) * frequencies[i] / 8 + smooth * frequencies[i];
    EXPECT_NEAR(frequencies[i] / static_cast<double>(divisors[i]), scaled, 1e-7 * scaled) << i;
  }
}

TEST(RopeScaling, OfAFileAndOfTheUserAreOneTable) {
  const auto table = [](const Checkpoint& checkpoint) {
    return read_spec(checkpoint).rope.inverse_frequencies;
  };
  const auto plain = tiny_checkpoint();
  for (const char* text : {"linear:2.7", "llama3:8,1,4,64"}) {
    const RopeScaling scaling = parse_rope_scaling(text);
    const auto scaled = tiny_checkpoint();
    override_rope_scaling(*scaled, scaling);
    EXPECT_NE(table(*scaled), table(*plain)) << text;
    EXPECT_EQ(read_spec(*scaled).rope.scaling, rope_scaling_name(scaling.kind));

    // The same as factors of a GGUF file.
    const auto with_factors = tiny_checkpoint();
    const std::vector<float> divisors = rope_divisors(scaling, rope_frequencies(10000.0, 16));
    with_factors->owned.push_back(std::make_shared<Tensor>(Tensor::of(Shape{8}, divisors)));
    with_factors->tensors["rope_freqs.weight"] = with_factors->owned.back()->view();
    with_factors->tensor_order.emplace_back("rope_freqs.weight");
    EXPECT_EQ(table(*with_factors), table(*scaled)) << text;

    // And taken away again.
    override_rope_scaling(*with_factors, parse_rope_scaling("none"));
    EXPECT_EQ(table(*with_factors), table(*plain)) << text;
    EXPECT_NE(with_factors->find("rope_freqs.weight"), nullptr);  // the file's tensors stay
    override_rope_scaling(*scaled, parse_rope_scaling("none"));
    EXPECT_EQ(table(*scaled), table(*plain)) << text;
  }
}

TEST(RopeScaling, OfReleasedLlamasIsFoundByItsFactors) {
  const std::vector<double> frequencies = rope_frequencies(500000, 128);
  for (const char* text : {"llama3:8,1,4,8192", "llama3:32,1,4,8192"}) {
    const RopeScaling scaling = parse_rope_scaling(text);
    std::vector<float> divisors = rope_divisors(scaling, frequencies);
    const auto found = find_rope_scaling(divisors, frequencies);
    ASSERT_TRUE(found.has_value()) << text;
    EXPECT_EQ(found->factor, scaling.factor);
    divisors[40] = std::nextafter(divisors[40], 100.0F);
    EXPECT_FALSE(find_rope_scaling(divisors, frequencies).has_value()) << text;
  }
  const auto other = rope_divisors(parse_rope_scaling("llama3:16,1,4,8192"), frequencies);
  EXPECT_FALSE(find_rope_scaling(other, frequencies).has_value());
}

TEST(RopeScaling, IsNothingForLearnedPositions) {
  const auto checkpoint = tiny_checkpoint(testing::tiny_gpt2_shape());
  EXPECT_THROW(override_rope_scaling(*checkpoint, parse_rope_scaling("linear:2")),
               UnsupportedError);
}

}  // namespace
}  // namespace limpid
