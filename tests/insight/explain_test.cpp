// The numbers of an explanation are those of the model: parts sum to logits, the last layer of the
// lens is the model's own answer, attention weights read what the heads read.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "generate/logprobs.h"
#include "insight/explanation.h"
#include "insight/probed_model.h"
#include "limpid/error.hpp"
#include "model/run_model.h"

namespace limpid {
namespace {

using testing::ProbedModel;
using testing::run_in_chunks;
using testing::shape_of;
using testing::some_tokens;

constexpr int64_t kTokens = 150;
constexpr int64_t kVocabulary = 50;

std::span<const float> row(std::span<const float> values, int64_t i, int64_t n) {
  return values.subspan(static_cast<size_t>(i * n), static_cast<size_t>(n));
}

// More than two steps for kTokens.
Explanation explain_in_steps(ProbedModel& probed, std::span<const int32_t> ids,
                             ExplainOptions options = {}) {
  options.n_batch = 64;
  return explain(*probed.model, *probed.probe, ids, options);
}

class Explain : public ::testing::TestWithParam<const char*> {};

TEST_P(Explain, PartsSumToTheLogitAtEachPosition) {
  for (const char* executor : {"reference", "cpu"}) {
    ProbedModel probed(shape_of(GetParam()), executor);
    const std::vector<int32_t> ids = some_tokens(kTokens, kVocabulary);
    const Explanation explanation = explain_in_steps(probed, ids);
    const std::vector<float> logits = run_in_chunks(*probed.model, ids, ids.size());
    ASSERT_EQ(std::ssize(explanation.parts), kTokens);
    for (int64_t t = 0; t < kTokens; ++t) {
      const Attribution& parts = explanation.parts[static_cast<size_t>(t)];
      EXPECT_EQ(parts.position, t);
      EXPECT_TRUE(t + 1 == kTokens || parts.token == ids[static_cast<size_t>(t + 1)]);
      EXPECT_EQ(parts.logit, row(logits, t, kVocabulary)[static_cast<size_t>(parts.token)]);
      EXPECT_NEAR(parts.sum(), parts.logit, 1e-4) << t;
      EXPECT_NEAR(parts.rounding, 0, 1e-4) << t;
      for (const float part : parts.mlps) EXPECT_NE(part, 0);
      // What attention adds is the heads' work and the bias, where there is one.
      for (const float rest : parts.attention_rest)
        EXPECT_EQ(std::abs(rest) > 1e-4, std::string(GetParam()) == "gpt2") << rest;
    }
  }
}

// The executor rounds activations to 8 bits. What that does to a logit is at most half a step of
// each activation, and the parts still sum to the logit of the executor.
TEST_P(Explain, PartsOfAQuantisedModelSumToItsLogit) {
  testing::TinyShape shape = shape_of(GetParam());
  shape.dtype = DType::kQ8_0;
  ProbedModel probed(shape);
  const std::vector<int32_t> ids = some_tokens(kTokens, kVocabulary);
  const Explanation explanation = explain_in_steps(probed, ids);
  const std::vector<float> logits = run_in_chunks(*probed.model, ids, ids.size());
  double largest = 0;
  for (int64_t t = 0; t < kTokens; ++t) {
    const Attribution& parts = explanation.parts[static_cast<size_t>(t)];
    EXPECT_EQ(parts.logit, row(logits, t, kVocabulary)[static_cast<size_t>(parts.token)]);
    EXPECT_NEAR(parts.sum(), parts.logit, 1e-4) << t;
    largest = std::max(largest, std::abs(parts.rounding));
  }
  EXPECT_GT(largest, 1e-4);
  EXPECT_LT(largest, 0.1);
}

// The parts of a chosen token's logit, and of a difference, which is also the difference of the
// parts of both.
TEST_P(Explain, AttributesAChosenTokenAgainstAnother) {
  for (const DType dtype : {DType::kF32, DType::kQ8_0}) {
    testing::TinyShape shape = shape_of(GetParam());
    shape.dtype = dtype;
    ProbedModel probed(shape);
    const std::vector<int32_t> ids = some_tokens(kTokens, kVocabulary);
    const std::vector<float> logits = run_in_chunks(*probed.model, ids, ids.size());
    const auto parts_of = [&](int32_t token, int32_t against) {
      ExplainOptions options;
      options.token = token;
      options.against = against;
      return explain_in_steps(probed, ids, options).parts;
    };
    const auto first = parts_of(7, -1);
    const auto second = parts_of(9, -1);
    const auto difference = parts_of(7, 9);
    ASSERT_EQ(std::ssize(difference), kTokens);
    for (size_t t = 0; t < kTokens; ++t) {
      const auto of_row = row(logits, static_cast<int64_t>(t), kVocabulary);
      EXPECT_EQ(first[t].token, 7);
      EXPECT_EQ(first[t].against, -1);
      EXPECT_EQ(difference[t].token, 7);
      EXPECT_EQ(difference[t].against, 9);
      EXPECT_EQ(first[t].logit, of_row[7]);
      EXPECT_DOUBLE_EQ(difference[t].logit, static_cast<double>(of_row[7]) - of_row[9]);
      EXPECT_NEAR(first[t].sum(), first[t].logit, 1e-4);
      EXPECT_NEAR(difference[t].sum(), difference[t].logit, 1e-4);
      for (size_t head = 0; head < difference[t].heads.size(); ++head)
        EXPECT_NEAR(difference[t].heads[head], first[t].heads[head] - second[t].heads[head], 1e-5);
    }
  }
}

// Only a difference: the token that follows against another.
TEST_P(Explain, AttributesTheTokenThatFollowsAgainstAnother) {
  ProbedModel probed(shape_of(GetParam()));
  const std::vector<int32_t> ids = some_tokens(kTokens, kVocabulary);
  const std::vector<float> logits = run_in_chunks(*probed.model, ids, ids.size());
  ExplainOptions options;
  options.against = 5;
  const auto parts = explain_in_steps(probed, ids, options).parts;
  for (int64_t t = 0; t < kTokens; ++t) {
    const auto of_row = row(logits, t, kVocabulary);
    const Attribution& each = parts[static_cast<size_t>(t)];
    const int32_t follows =
        t + 1 < kTokens ? ids[static_cast<size_t>(t + 1)]
                        : static_cast<int32_t>(std::ranges::max_element(of_row) - of_row.begin());
    EXPECT_EQ(each.token, follows);
    EXPECT_DOUBLE_EQ(each.logit,
                     static_cast<double>(of_row[static_cast<size_t>(follows)]) - of_row[5]);
    EXPECT_NEAR(each.sum(), each.logit, 1e-4);
  }
}

TEST_P(Explain, LastLayerOfTheLensIsTheModelToTheBit) {
  ProbedModel probed(shape_of(GetParam()));
  const std::vector<int32_t> ids = some_tokens(kTokens, kVocabulary);
  ExplainOptions options;
  options.n_lens_best = options.n_best = 7;
  options.lens_every = 2;
  const Explanation explanation = explain_in_steps(probed, ids, options);
  ASSERT_EQ(explanation.lens.size(), 3U);  // the embedding, layer 1, layer 2
  EXPECT_EQ(explanation.lens[1].layer, 1);
  EXPECT_EQ(explanation.lens[2].layer, 2);
  for (size_t t = 0; t < ids.size(); ++t) {
    const Prediction& of_lens = explanation.lens.back().predictions[t];
    const Prediction& of_model = explanation.next[t];
    EXPECT_EQ(of_lens.entropy, of_model.entropy);
    EXPECT_EQ(of_lens.log_sum_exp, of_model.log_sum_exp);
    ASSERT_EQ(of_lens.likeliest.size(), 7U);
    for (size_t i = 0; i < 7; ++i) {
      EXPECT_EQ(of_lens.likeliest[i].id, of_model.likeliest[i].id);
      EXPECT_EQ(of_lens.likeliest[i].probability, of_model.likeliest[i].probability);
    }
  }
  EXPECT_NE(explanation.lens[1].predictions[9].entropy, explanation.next[9].entropy);
}

TEST_P(Explain, SurpriseIsThatOfThePlainModel) {
  ProbedModel probed(shape_of(GetParam()));
  const std::vector<int32_t> ids = some_tokens(kTokens, kVocabulary);
  const Explanation explanation = explain_in_steps(probed, ids);
  const auto plain =
      Model::load(testing::tiny_checkpoint(shape_of(GetParam())), make_executor("cpu", {}));
  const std::vector<float> logits = run_in_chunks(*plain, ids, 40);
  EXPECT_TRUE(std::isnan(explanation.surprise[0]));
  for (int64_t t = 0; t + 1 < kTokens; ++t) {
    const auto next = row(logits, t, kVocabulary);
    const double log_p =
        next[static_cast<size_t>(ids[static_cast<size_t>(t + 1)])] - log_sum_exp(next);
    EXPECT_NEAR(explanation.surprise[static_cast<size_t>(t + 1)], -log_p / std::log(2), 1e-5);
  }
}

// The heads' outputs, computed once more from the kept weights and the values.
TEST_P(Explain, AttentionWeightsReadWhatTheHeadsRead) {
  constexpr int64_t kShort = 30;
  const testing::TinyShape shape = shape_of(GetParam());
  ProbedModel probed(shape);
  const std::vector<int32_t> ids = some_tokens(kShort, kVocabulary);
  const Explanation explanation = explain_in_steps(probed, ids);
  std::map<int64_t, std::vector<float>> values;
  std::map<int64_t, std::vector<float>> heads;
  probed.probe->set_observer(PlaceSet(Place::kValue, Place::kAttnHeads),
                             [&](Place place, int64_t layer, std::span<const float> seen) {
                               auto& kept = place == Place::kValue ? values : heads;
                               kept[layer].assign(seen.begin(), seen.end());
                             });
  run_in_chunks(*probed.model, ids, ids.size());
  for (int64_t i = 0; i < shape.n_layers * shape.n_heads; ++i) {
    const AttentionMap& map = explanation.attention[static_cast<size_t>(i)];
    const int64_t layer = i / shape.n_heads;
    const int64_t head = i % shape.n_heads;
    const int64_t kv_head = head / (shape.n_heads / shape.n_kv_heads);
    for (int64_t t = 0; t < kShort; ++t) {
      std::vector<double> read(static_cast<size_t>(shape.head_dim));
      double sum = 0;
      const auto add = [&](int64_t s, double weight) {
        sum += weight;
        const auto v =
            row(row(values[layer], s, shape.n_kv_heads * shape.head_dim), kv_head, shape.head_dim);
        for (size_t j = 0; j < v.size(); ++j) read[j] += weight * v[j];
      };
      add(0, map.first()[static_cast<size_t>(t)]);
      for (const AttentionMap::Kept& kept : map.row(t)) {
        if (kept.column >= 0) add(kept.column, kept.weight);
      }
      EXPECT_NEAR(sum, 1, 1e-5);
      const auto z =
          row(row(heads[layer], t, shape.n_heads * shape.head_dim), head, shape.head_dim);
      for (size_t j = 0; j < z.size(); ++j) EXPECT_NEAR(read[j], z[j], 1e-5);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Families, Explain, ::testing::Values("llama", "gpt2", "qwen3"),
                         [](const auto& info) { return std::string(info.param); });

TEST(ExplainSizes, AreNormsOfTheStream) {
  ProbedModel probed(shape_of("llama"));
  const std::vector<int32_t> ids = some_tokens(20, kVocabulary);
  const Explanation explanation = explain_in_steps(probed, ids);
  std::vector<float> embedding;
  probed.probe->set_observer(PlaceSet(Place::kEmbedding),
                             [&](Place, int64_t, std::span<const float> seen) {
                               embedding.assign(seen.begin(), seen.end());
                             });
  run_in_chunks(*probed.model, ids, ids.size());
  ASSERT_EQ(explanation.norms.size(), 4U);
  EXPECT_TRUE(explanation.norms[0].attention.empty());
  const auto first = row(embedding, 0, 64);
  const double norm = std::sqrt(std::inner_product(first.begin(), first.end(), first.begin(), 0.0));
  EXPECT_NEAR(explanation.norms[0].stream[0], norm, 1e-5);
  const LayerNorms& layer = explanation.norms[2];
  EXPECT_EQ(layer.stream.size(), 20U);
  EXPECT_EQ(layer.mlp.size(), 20U);
  EXPECT_GT(std::abs(layer.outlier), 1.5);
  EXPECT_LT(std::abs(layer.outlier), 8);  // sqrt(64) at most
}

// A feature that no token's embedding has, and a neuron that nothing reaches.
TEST(ExplainSizes, CountWhatIsDead) {
  const auto checkpoint = testing::tiny_checkpoint(shape_of("llama"));
  const auto clear = [&](const std::string& name, auto is_cleared) {
    const TensorView view = *checkpoint->find(name);
    std::vector<float> values(view.f32(), view.f32() + view.shape.n_elements());
    for (int64_t i = 0; i < std::ssize(values); ++i)
      if (is_cleared(i / 64, i % 64)) values[static_cast<size_t>(i)] = 0;
    checkpoint->owned.push_back(std::make_shared<Tensor>(Tensor::of(view.shape, values)));
    checkpoint->tensors[name] = checkpoint->owned.back()->view();
  };
  clear("token_embd.weight", [](int64_t, int64_t column) { return column == 3; });
  clear("blk.1.ffn_up.weight", [](int64_t row, int64_t) { return row % 4 == 1; });
  ProbedModel probed(checkpoint);
  const Explanation explanation = explain_in_steps(probed, some_tokens(kTokens, kVocabulary));
  EXPECT_EQ(explanation.norms[0].n_dead, 1);
  EXPECT_EQ(explanation.norms[3].n_dead, 0);  // the blocks write into it
  const LayerNorms& layer = explanation.norms[2];
  EXPECT_GE(layer.n_quiet, 6);
  EXPECT_EQ(layer.quiet, (std::vector<int64_t>{1, 5, 9, 13, 17}));
}

// Also when the logits of one step, or of several, are attributed together.
TEST_P(Explain, DoesNotDependOnTheTokensOfAStep) {
  constexpr int64_t kLong = 300;
  ProbedModel probed(shape_of(GetParam()));
  const std::vector<int32_t> ids = some_tokens(kLong, kVocabulary);
  const auto with_steps_of = [&](int64_t n) {
    ExplainOptions options;
    options.n_batch = n;
    return explain(*probed.model, *probed.probe, ids, options);
  };
  const Explanation whole = with_steps_of(kLong);
  ASSERT_EQ(std::ssize(whole.parts), kLong);
  for (const int64_t n : {7, 100, 256}) {
    const Explanation stepwise = with_steps_of(n);
    ASSERT_EQ(std::ssize(stepwise.parts), kLong) << n;
    for (size_t t = 0; t < kLong; ++t) {
      EXPECT_EQ(stepwise.parts[t].logit, whole.parts[t].logit);
      EXPECT_EQ(stepwise.parts[t].heads, whole.parts[t].heads);
      EXPECT_EQ(stepwise.parts[t].mlps, whole.parts[t].mlps);
      EXPECT_EQ(stepwise.next[t].entropy, whole.next[t].entropy);
    }
    for (size_t head = 0; head < whole.attention.size(); ++head) {
      const auto last = whole.attention[head].row(kLong - 1);
      const auto found = stepwise.attention[head].row(kLong - 1);
      for (size_t i = 0; i < last.size(); ++i) {
        EXPECT_EQ(found[i].column, last[i].column);
        EXPECT_EQ(found[i].weight, last[i].weight);
      }
    }
    for (size_t layer = 0; layer < whole.norms.size(); ++layer) {
      EXPECT_EQ(stepwise.norms[layer].stream, whole.norms[layer].stream);
      EXPECT_EQ(stepwise.norms[layer].outlier_token, whole.norms[layer].outlier_token);
      EXPECT_EQ(stepwise.norms[layer].n_dead, whole.norms[layer].n_dead);
      EXPECT_EQ(stepwise.norms[layer].quiet, whole.norms[layer].quiet);
    }
  }
}

TEST(LayerRows, RefuseMoreThanTheirRoom) {
  ThreadPool pool(2);
  LayerRows rows(2, 6, pool);
  rows.append(1, std::vector<float>{1, 2, 3, 4}, pool);
  EXPECT_THROW(rows.append(1, std::vector<float>(3), pool), ShapeError);
  rows.append(1, std::vector<float>{5, 6}, pool);
  EXPECT_TRUE(rows[0].empty());
  EXPECT_TRUE(std::ranges::equal(rows[1], std::vector<float>{1, 2, 3, 4, 5, 6}));
  rows.clear(1);
  EXPECT_TRUE(rows[1].empty());
}

TEST(ExplainOptions, BoundWhatIsKept) {
  ProbedModel probed(shape_of("llama"));
  const std::vector<int32_t> ids = some_tokens(kTokens, kVocabulary);
  ExplainOptions options;
  options.most_attention = 3 * 4 * kTokens * 2;
  options.n_attributed = 5;
  const Explanation explanation = explain_in_steps(probed, ids, options);
  EXPECT_EQ(explanation.attention[0].n_kept(), 2);
  ASSERT_EQ(explanation.parts.size(), 5U);
  EXPECT_EQ(explanation.parts.front().position, kTokens - 5);
  const auto strongest = explanation.attention[0].row(100);
  EXPECT_GE(strongest[0].weight, strongest[1].weight);
  EXPECT_THROW(explain(*probed.model, *probed.probe, {}), ArgumentError);
  options.n_attributed = -1;
  options.most_parts = 7 * (2 + 3 * (4 + 2));
  EXPECT_EQ(explain_in_steps(probed, ids, options).parts.size(), 7U);
  options.n_attributed = kTokens;  // asked for, so it is not bounded
  EXPECT_EQ(std::ssize(explain_in_steps(probed, ids, options).parts), kTokens);
  ExplainOptions of_unknown;
  of_unknown.against = kVocabulary;
  EXPECT_THROW(explain(*probed.model, *probed.probe, ids, of_unknown), ArgumentError);
  options.progress = [](int64_t, int64_t) { return false; };
  EXPECT_THROW(explain_in_steps(probed, ids, options), ResourceError);
}

// One token repeats: A B … A. Weights that a head would have are written by hand.
TEST(AttentionMap, KnowsTheHabitsOfAHead) {
  const std::vector<int32_t> copies = earlier_copies(std::vector<int32_t>{7, 8, 9, 7});
  EXPECT_EQ(copies, (std::vector<int32_t>{-1, -1, -1, 0}));
  AttentionMap map(4, 10);
  map.add_row(std::vector<float>{1}, copies);
  map.add_row(std::vector<float>{0.75F, 0.25F}, copies);
  map.add_row(std::vector<float>{0.5F, 0.375F, 0.125F}, copies);
  map.add_row(std::vector<float>{0.25F, 0.5F, 0.125F, 0.125F}, copies);
  const HeadHabits habits = map.habits();
  EXPECT_DOUBLE_EQ(habits.first, 0.5);
  EXPECT_DOUBLE_EQ(habits.itself, (1 + 0.25 + 0.125 + 0.125) / 4);
  EXPECT_DOUBLE_EQ(habits.previous, (0.75 + 0.375 + 0.125) / 3);
  EXPECT_DOUBLE_EQ(habits.same, 0.25);
  EXPECT_DOUBLE_EQ(habits.after_same, 0.5);
  EXPECT_EQ(map.row(3)[0].column, 1);
  EXPECT_EQ(map.row(1)[1].column, -1);
  EXPECT_EQ(map.tiles()[4 * 3 + 1], 0.5F);
}

}  // namespace
}  // namespace limpid
