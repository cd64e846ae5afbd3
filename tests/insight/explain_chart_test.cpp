#include "insight/explain_chart.h"

#include <gtest/gtest.h>

#include "insight/probed_model.h"
#include "limpid/error.hpp"
#include "model/run_model.h"

namespace limpid {
namespace {

TEST(ExplainChart, DrawsEachPictureAndRefusesOthers) {
  const testing::ProbedModel probed(testing::shape_of("llama"));
  const auto ids = testing::some_tokens(20, 50);
  const Explanation explanation = explain(*probed.model, *probed.probe, ids);
  const DecoderSpec& spec = probed.model->spec();
  for (const char* what : {"surprise", "lens", "parts", "sizes", "L2.H3"}) {
    const std::string svg = explain_chart(explanation, what, spec);
    EXPECT_TRUE(svg.starts_with("<svg")) << what;
    EXPECT_EQ(svg.find("nan"), svg.npos) << what;
    EXPECT_NE(svg,
              explain_chart(explanation, what == std::string("lens") ? "L0.H0" : "lens", spec));
  }
  for (const char* what : {"", "lense", "L1", "L1.mlp", "L3.H0", "L0.H4"})
    EXPECT_THROW(explain_chart(explanation, what, spec), ArgumentError) << what;
}

}  // namespace
}  // namespace limpid
