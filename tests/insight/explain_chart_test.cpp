#include "insight/explain_chart.h"

#include <gtest/gtest.h>

#include <set>

#include "base/printable.h"
#include "base/svg.h"
#include "insight/explanation_json.h"
#include "insight/probed_model.h"
#include "limpid/error.hpp"
#include "model/run_model.h"
#include "tokenizer/small_vocabulary.h"

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
    const std::string svg = explain_chart(explanation, what, spec, {&changed, 1}, nullptr);
    EXPECT_TRUE(svg.starts_with("<svg")) << what;
    EXPECT_EQ(svg.find("nan"), svg.npos) << what;
    EXPECT_EQ(svg.find("<L1"), svg.npos) << what;
    EXPECT_TRUE(pictures.insert(svg).second) << what << " is the picture of another name";
  }
  for (const char* what : {"distance", "divergence"})
    EXPECT_THROW(explain_chart(explanation, what, spec, {}, nullptr), ArgumentError) << what;
  for (const char* what : {"", "lense", "L1", "L1.mlp", "L3.H0", "L0.H4"})
    EXPECT_THROW(explain_chart(explanation, what, spec, {}, nullptr), ArgumentError) << what;
}

// What a model's vocabulary says is on the axes, in the cells of the lens and in titles.
TEST(ExplainChart, ShowsTokensAsText) {
  constexpr std::string_view kPieces[] = {"<b>", "a\x1b[2J", " sea", "\n"};
  TokenizerSpec spec = small_vocabulary("bpe");
  std::vector<int32_t> ids;
  for (const std::string_view piece : kPieces) {
    ids.push_back(static_cast<int32_t>(spec.pieces.size()));
    spec.pieces.emplace_back(piece);
    spec.types.push_back(TokenType::kUserDefined);
  }
  testing::TinyShape shape = testing::shape_of("llama");
  shape.vocab_size = std::ssize(spec.pieces);
  const auto tokenizer = Tokenizer::create(std::move(spec));
  testing::ProbedModel probed(shape);
  const Explanation explanation = explain(*probed.model, *probed.probe, ids);
  const auto drawn = [&](std::string_view what) {
    return explain_chart(explanation, what, probed.model->spec(), {}, tokenizer.get());
  };
  for (const std::string& svg : {drawn("surprise"), drawn("lens"), drawn("L1.H0")}) {
    for (const char* label : {">&lt;b&gt;<", ">a�[2J<", ">·sea<", ">⏎<"})
      EXPECT_NE(svg.find(label), svg.npos) << label << svg;
    EXPECT_EQ(svg.find('\x1b'), svg.npos);
  }
  const std::string word =
      visible(token_text(tokenizer.get(), explanation.lens.back().predictions[2].likeliest[0].id));
  EXPECT_NE(drawn("lens").find(">" + escape_markup(word) + "<"), std::string::npos) << word;
  for (const char* what : {"parts", "part-heads"})
    EXPECT_NE(drawn(what).find("after token 3, &quot;⏎&quot;</title>"), std::string::npos) << what;
}

// The first token is on top, and at the left.
TEST(ExplainChart, RowsOfAHeadReadFromTheTop) {
  testing::ProbedModel probed(testing::shape_of("llama"));
  const Explanation explanation =
      explain(*probed.model, *probed.probe, testing::some_tokens(4, 50));
  const std::string svg = explain_chart(explanation, "L0.H0", probed.model->spec(), {}, nullptr);
  // The first token reads itself alone: the darkest shade begins in the upper left corner.
  const size_t darkest = svg.find("fill-opacity='1.00' d='M");
  ASSERT_NE(darkest, svg.npos);
  EXPECT_NE(svg.substr(darkest, 60).find(" 40.0h"), std::string::npos) << svg.substr(darkest, 60);
}

}  // namespace
}  // namespace limpid
