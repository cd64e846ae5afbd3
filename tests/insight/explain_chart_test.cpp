#include "insight/explain_chart.h"

#include <gtest/gtest.h>

#include <set>

#include "insight/probed_model.h"
#include "limpid/error.hpp"
#include "model/run_model.h"

namespace limpid {
namespace {

TEST(ExplainChart, DrawsEachPictureAndRefusesOthers) {
  testing::ProbedModel probed(testing::shape_of("llama"));
  const auto ids = testing::some_tokens(20, 50);
  const Explanation explanation = explain(*probed.model, *probed.probe, ids);
  const DecoderSpec& spec = probed.model->spec();
  Edit edit;
  edit.part = model_part("L1.mlp", spec);
  const ShownContrast changed{
      "without <L1.mlp>",
      contrast({*probed.model, *probed.probe}, {*probed.model, *probed.probe, {edit}}, ids)};
  std::set<std::string> pictures;
  for (const char* what : {"surprise", "lens", "parts", "part-heads", "sizes", "heads", "L2.H3",
                           "distance", "divergence"}) {
    const std::string svg = explain_chart(explanation, what, spec, {&changed, 1});
    EXPECT_TRUE(svg.starts_with("<svg")) << what;
    EXPECT_EQ(svg.find("nan"), svg.npos) << what;
    EXPECT_EQ(svg.find("<L1"), svg.npos) << what;
    EXPECT_TRUE(pictures.insert(svg).second) << what << " is the picture of another name";
  }
  for (const char* what : {"distance", "divergence"})
    EXPECT_THROW(explain_chart(explanation, what, spec), ArgumentError) << what;
  for (const char* what : {"", "lense", "L1", "L1.mlp", "L3.H0", "L0.H4"})
    EXPECT_THROW(explain_chart(explanation, what, spec), ArgumentError) << what;
}

}  // namespace
}  // namespace limpid
