#include "model/configuration.h"

#include <gtest/gtest.h>

#include <map>

#include "limpid/error.hpp"
#include "model/registry.h"

namespace limpid {
namespace {

int64_t parameters_of(const Checkpoint& checkpoint) {
  int64_t n = 0;
  for (const auto& [name, tensor] : checkpoint.tensors) n += tensor.shape.n_elements();
  return n;
}

// As their publishers count them (model cards; the sums that transformers gives).
TEST(Configuration, CountsTheParametersOfPublishedModels) {
  const std::map<std::string_view, int64_t> published = {
      {"llama-2-7b", 6'738'415'616},
      {"llama-2-13b", 13'015'864'320},
      {"llama-2-70b", 68'976'648'192},
      {"llama-3-8b", 8'030'261'248},
      {"llama-3-70b", 70'553'706'496},
      {"llama-3.1-8b", 8'030'261'248},
      {"llama-3.1-70b", 70'553'706'496},
      {"llama-3.1-405b", 405'853'388'800},
      {"llama-3.2-1b", 1'235'814'400},
      {"llama-3.2-3b", 3'212'749'824},
      {"mistral-7b-v0.3", 7'248'023'552},
      {"smollm2-135m", 134'515'008},
      {"smollm2-360m", 361'821'120},
      {"smollm2-1.7b", 1'711'376'384},
      {"qwen2.5-0.5b", 494'032'768},
      {"qwen2.5-7b", 7'615'616'512},
      {"qwen3-0.6b", 596'049'920},
      {"qwen3-8b", 8'190'735'360},
      {"gpt2", 124'439'808},
      {"gpt2-medium", 354'823'168},
      {"gpt2-large", 774'030'080},
      {"gpt2-xl", 1'557'611'200},
  };
  EXPECT_EQ(published.size(), configuration_names().size());
  for (const auto& [name, n] : published)
    EXPECT_EQ(parameters_of(named_configuration(name)), n) << name;
}

TEST(Configuration, IsASpecLikeAnyOther) {
  const DecoderSpec spec = read_spec(named_configuration("llama-3.2-1b"));
  EXPECT_TRUE(spec.tied_embeddings);
  EXPECT_EQ(spec.n_kv_heads, 8);
  EXPECT_EQ(spec.rope.scaling, "llama3");
  EXPECT_EQ(spec.rope.scaling_factor, 32.0);
  EXPECT_EQ(read_spec(named_configuration("gpt2-xl")).position, PositionKind::kLearned);
}

TEST(Configuration, OfAnUnknownNameListsTheKnown) {
  try {
    named_configuration("llama-4");
    FAIL();
  } catch (const ArgumentError& error) {
    EXPECT_NE(std::string(error.what()).find("llama-3-8b"), std::string::npos);
  }
}

}  // namespace
}  // namespace limpid
