// The page is one file whose text cannot become markup, whatever the vocabulary holds.
#include "insight/explain_page.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "insight/explain_chart.h"
#include "insight/explanation_json.h"
#include "insight/probed_model.h"
#include "model/run_model.h"
#include "tokenizer/small_vocabulary.h"

namespace limpid {
namespace {

using Json = nlohmann::json;
using testing::ProbedModel;

constexpr const char* kHostile[] = {"</script><script>alert(1)</script>",
                                    "<img src=x onerror=alert(2)>",
                                    "\"><svg onload=alert(3)>",
                                    "{{ markup.script }}",
                                    "]]><!--",
                                    "&lt;b&gt;"};

struct HostilePage {
  HostilePage() {
    TokenizerSpec spec = small_vocabulary("bpe");
    for (const char* piece : kHostile) {
      ids.push_back(static_cast<int32_t>(spec.pieces.size()));
      spec.pieces.emplace_back(piece);
      spec.types.push_back(TokenType::kUserDefined);
    }
    const std::vector<int32_t> twice = ids;
    ids.insert(ids.end(), twice.begin(), twice.end());
    testing::TinyShape shape;
    shape.vocab_size = std::ssize(spec.pieces);
    tokenizer = Tokenizer::create(std::move(spec));
    ProbedModel probed(shape);
    explanation = explain(*probed.model, *probed.probe, ids);
    Edit edit;
    edit.part = model_part("L1.mlp", probed.model->spec());
    contrast = limpid::contrast({*probed.model, *probed.probe},
                                {*probed.model, *probed.probe, {edit}}, ids);
    PageFacts facts;
    facts.model = "<b>model</b>.gguf";
    facts.description = "<i>llama</i>";
    facts.times = {{.op = "linear </script>", .n_calls = 1, .seconds = 1}};
    page = explain_page(explanation, facts, std::vector<ShownContrast>{{"without <u>", contrast}},
                        tokenizer.get());
  }

  std::vector<int32_t> ids;
  std::shared_ptr<const Tokenizer> tokenizer;
  Explanation explanation;
  Contrast contrast;
  std::string page;
};

size_t count(const std::string& text, const std::string& what) {
  size_t n = 0;
  for (size_t at = text.find(what); at != text.npos; at = text.find(what, at + 1)) ++n;
  return n;
}

Json data_of(const std::string& page) {
  const std::string begin = "id=\"data\">";
  const size_t at = page.find(begin) + begin.size();
  return Json::parse(page.substr(at, page.find("</script>", at) - at));
}

TEST(ExplainPage, TextOfTheModelIsNoMarkup) {
  const HostilePage hostile;
  EXPECT_EQ(count(hostile.page, "<script"), 2U);  // the numbers and the page's own
  EXPECT_EQ(count(hostile.page, "</script"), 2U);
  for (const char* markup : {"<img", "<svg", "<!--", "<b>", "<i>", "<u>"})
    EXPECT_EQ(count(hostile.page, markup), 0U) << markup;
  EXPECT_NE(hostile.page.find("&lt;b&gt;model&lt;/b&gt;.gguf"), std::string::npos);
  EXPECT_NE(hostile.page.find("script-src 'sha256-"), std::string::npos);
  // Nothing is loaded: no address, but for that of SVG's name space.
  EXPECT_EQ(count(hostile.page, "http"),
            count(hostile.page, "http://www.w3.org/2000/svg") + count(hostile.page, "http-equiv"));
}

TEST(ExplainPage, HoldsTheTextsAsTheyAre) {
  const HostilePage hostile;
  const Json data = data_of(hostile.page);
  EXPECT_EQ(data["model"], "<b>model</b>.gguf");
  EXPECT_EQ(data["ids"].size(), 12U);
  EXPECT_EQ(data["texts"][std::to_string(hostile.ids[0])], kHostile[0]);
  EXPECT_EQ(data["contrasts"][0]["title"], "without <u>");
  EXPECT_EQ(data["parts"].size(), 12U);
}

// What bounds the page is what it keeps of attention, parts and lens.
TEST(ExplainPage, Of32LayersAnd512TokensIsBelowFiveMegabytes) {
  testing::TinyShape shape;
  shape.n_layers = shape.n_heads = shape.n_kv_heads = 32;
  shape.head_dim = 2;
  ProbedModel probed(shape);
  const std::vector<int32_t> ids = testing::some_tokens(512, 50);
  const Explanation explanation = explain(*probed.model, *probed.probe, ids);
  const std::string page = explain_page(explanation, {}, {}, nullptr);
  EXPECT_LT(page.size(), 4'700'000U);  // texts of a large vocabulary need room too
  EXPECT_GT(page.size(), 3'000'000U);  // nor is too little kept
}

// 300 heads of 4,096 tokens have 2.5 million numbers in their rows. Those without a habit have
// none.
TEST(ExplainPage, OfALongTextHasTheRowsOfTheClearestHeads) {
  constexpr int64_t kTokens = 4096;
  constexpr size_t kHeads = 300;
  Explanation explanation;
  explanation.token_ids.assign(kTokens, 1);
  explanation.n_layers = 1;
  explanation.n_heads = kHeads;
  const std::vector<int32_t> copies(kTokens, -1);
  const auto reads_the_token_before = [&](float weight) {
    AttentionMap map(kTokens, 1);
    for (int64_t t = 0; t < kTokens; ++t) {
      std::vector<float> weights(static_cast<size_t>(t + 1));
      weights[static_cast<size_t>(std::max<int64_t>(t - 1, 0))] = weight;
      map.add_row(weights, copies);
    }
    return map;
  };
  explanation.attention.assign(kHeads, reads_the_token_before(1));
  explanation.attention[7] = reads_the_token_before(0);
  const Json data = data_of(explain_page(explanation, {}, {}, nullptr));
  size_t n_with_rows = 0;
  for (const Json& head : data["attention"]) n_with_rows += head.contains("columns");
  EXPECT_EQ(n_with_rows, 2'000'000 / (2 * kTokens));
  EXPECT_TRUE(data["attention"][0].contains("columns"));
  EXPECT_FALSE(data["attention"][7].contains("columns"));
  EXPECT_TRUE(data["attention"][7].contains("tiles"));
}

// The last token reads the one before it. Of 65,538 tokens this is column 65,536.
TEST(ExplainPage, ColumnsOfALongTextHave32Bits) {
  for (const int64_t n_tokens : {int64_t{4}, int64_t{65'538}}) {
    Explanation explanation;
    explanation.token_ids.assign(static_cast<size_t>(n_tokens), 1);
    explanation.n_layers = explanation.n_heads = 1;
    const std::vector<int32_t> copies(static_cast<size_t>(n_tokens), -1);
    std::vector<float> weights(static_cast<size_t>(n_tokens));
    weights[1] = 0.5;
    AttentionMap& map = explanation.attention.emplace_back(n_tokens, 1);
    for (int64_t t = 0; t < n_tokens; ++t) {
      if (t == n_tokens - 1) weights[static_cast<size_t>(t - 1)] = 1;
      map.add_row(std::span(weights).first(static_cast<size_t>(t + 1)), copies);
    }
    const Json data = data_of(explain_page(explanation, {}, {}, nullptr));
    const auto columns = data["attention"][0]["columns"].get<std::string>();
    if (n_tokens == 4) {
      EXPECT_EQ(columns, "AAABAAEAAgA=");  // 0, 1, 1, 2 in 16 bits
    } else {
      EXPECT_TRUE(columns.ends_with("AAEAAAAAAAEA")) << columns.substr(columns.size() - 12);
      EXPECT_EQ(columns.size(), (4 * static_cast<size_t>(n_tokens) + 2) / 3 * 4);
    }
  }
}

// A conversion that went wrong may leave NaN in a model. What it does to the activations is shown.
TEST(ExplainPage, OfAModelWithNan) {
  const auto damaged = testing::tiny_checkpoint(testing::shape_of("llama"));
  const std::string name = "blk.1.ffn_down.weight";
  const TensorView view = *damaged->find(name);
  std::vector<float> values(view.f32(), view.f32() + view.shape.n_elements());
  values[5] = std::numeric_limits<float>::quiet_NaN();
  damaged->owned.push_back(std::make_shared<Tensor>(Tensor::of(view.shape, values)));
  damaged->tensors[name] = damaged->owned.back()->view();
  const ProbedModel probed(damaged);
  const auto ids = testing::some_tokens(90, 50);
  const Explanation explanation = explain(*probed.model, *probed.probe, ids);
  EXPECT_EQ(explanation.next[3].likeliest.size(), 10U);
  EXPECT_FALSE(std::isnan(explanation.norms[1].stream[3]));
  EXPECT_TRUE(std::isnan(explanation.norms[2].stream[3]));  // after layer 1
  const Contrast same =
      contrast({*probed.model, *probed.probe}, {*probed.model, *probed.probe}, ids);
  EXPECT_FALSE(
      explain_page(explanation, {}, std::vector<ShownContrast>{{"", same}}, nullptr).empty());
  EXPECT_EQ(explanation_to_json(explanation, nullptr).dump().find("nan"), std::string::npos);
  for (const char* what : {"surprise", "lens", "parts", "part-heads", "sizes", "heads", "L2.H0",
                           "distance", "divergence"}) {
    const std::string svg = explain_chart(explanation, what, probed.model->spec(),
                                          std::vector<ShownContrast>{{"", same}}, nullptr);
    EXPECT_TRUE(svg.starts_with("<svg")) << what;
    // The title of a picture of the parts says that the logit is NaN.
    EXPECT_LE(count(svg, "nan"), std::string_view(what).starts_with("part") ? 2U : 0U) << what;
  }
}

TEST(ExplanationJson, NamesTokensAndSumsParts) {
  const HostilePage hostile;
  const auto json = explanation_to_json(hostile.explanation, hostile.tokenizer.get());
  EXPECT_EQ(json["tokens"][1]["text"], kHostile[1]);
  EXPECT_TRUE(json["surprise_bits"].dump().starts_with("[null,"));
  EXPECT_NEAR(json["parts"][3]["sum"].get<double>(), json["parts"][3]["logit"].get<double>(), 1e-4);
  EXPECT_EQ(json["attention"].size(), 8U);
  EXPECT_EQ(json["norms"][0]["layer"], -1);
  EXPECT_EQ(token_text(nullptr, 7), "#7");
  EXPECT_EQ(token_text(hostile.tokenizer.get(), 1 << 20), "#1048576");
}

}  // namespace
}  // namespace limpid
