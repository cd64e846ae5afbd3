// A change of one part acts from its layer on, and is the change that was asked for.
#include "insight/contrast.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <tuple>

#include "insight/probed_model.h"
#include "limpid/error.hpp"
#include "model/run_model.h"

namespace limpid {
namespace {

using testing::ProbedModel;
using testing::shape_of;
using testing::some_tokens;

const std::vector<int32_t> kIds = some_tokens(100, 50);

Edit edit_of(const ProbedModel& probed, const char* part, float keep = 0) {
  Edit edit;
  edit.part = model_part(part, probed.model->spec());
  edit.keep = keep;
  return edit;
}

Contrast contrast_of(const ProbedModel& probed, std::vector<Edit> edits) {
  return contrast({*probed.model, *probed.probe}, {*probed.model, *probed.probe, std::move(edits)},
                  kIds);
}

TEST(Contrast, PartsWhereTheEditIs) {
  const ProbedModel probed(shape_of("llama"));
  const std::pair<const char*, int64_t> cases[] = {
      {"L0.mlp", 0}, {"L1.H2", 1}, {"L2.attn", 2}, {"L1", 1}};
  for (const auto& [part, layer] : cases) {
    const Contrast result = contrast_of(probed, {edit_of(probed, part)});
    EXPECT_EQ(result.first_layer(), layer) << part;
    EXPECT_EQ(result.distance.size(), 4U);
    EXPECT_EQ(result.divergence.size(), kIds.size());
    EXPECT_GT(result.divergence[50], 0);
    EXPECT_NE(result.surprise[0][60], result.surprise[1][60]);
    ASSERT_EQ(result.changes.size(), kIds.size());
    EXPECT_EQ(result.changes[98].size(), 10U);
    EXPECT_EQ(result.changes[99].size(), 20U);
    for (const auto& changes : result.changes) {
      EXPECT_TRUE(std::ranges::is_sorted(changes, std::ranges::greater(), [](const auto& each) {
        return std::abs(static_cast<float>(each.after - each.before));
      }));
    }
  }
}

TEST(Contrast, WithoutAnEditNothingDiffers) {
  const ProbedModel probed(shape_of("gpt2"));
  const Contrast same = contrast_of(probed, {edit_of(probed, "L1", 1)});  // keeps everything
  EXPECT_EQ(same.first_layer(), 3);
  for (const double bits : same.divergence) EXPECT_EQ(bits, 0);
  EXPECT_EQ(same.mean_divergence(), 0);
  for (const auto& changes : same.changes) EXPECT_TRUE(changes.empty());
  EXPECT_EQ(same.mean_surprise(0), same.mean_surprise(1));
}

// Patched with its own values a run stays as it is; with those of another text it follows that one.
TEST(Contrast, PatchingPutsTheOtherRunThere) {
  const ProbedModel probed(shape_of("llama"));
  const auto patch = [&](const std::vector<int32_t>& source) {
    Edit edit = edit_of(probed, "L2");
    const auto values =
        values_of_parts(*probed.model, *probed.probe, std::vector{edit.part}, source);
    for (int64_t t = 0; t < std::ssize(source); ++t) edit.at[t] = values[0][static_cast<size_t>(t)];
    return contrast_of(probed, {edit});
  };
  EXPECT_EQ(patch(kIds).first_layer(), 3);
  std::vector<int32_t> other = kIds;
  other[0] += 1;
  const Contrast patched = patch(other);
  const std::vector<float> logits = testing::run_in_chunks(*probed.model, other, other.size());
  const std::span last = std::span(logits).subspan(99 * 50);
  const Prediction prediction = predict(last, 1);
  for (const Contrast::Change& change : patched.changes.back()) {
    EXPECT_NEAR(change.after,
                std::exp(last[static_cast<size_t>(change.id)] - prediction.log_sum_exp), 1e-6);
  }
}

// After each token, what was kept is the largest change of all 50 tokens. Of a long text fewer are
// kept, but one of each token and those of the last.
TEST(Contrast, KeepsTheChangesOfEachToken) {
  const ProbedModel probed(shape_of("llama"));
  const Edit edit = edit_of(probed, "L0.mlp");
  const auto changes_with = [&](ContrastOptions options) {
    return contrast({*probed.model, *probed.probe}, {*probed.model, *probed.probe, {edit}}, kIds,
                    options)
        .changes;
  };
  const auto logits = [&](std::vector<Edit> edits) {
    set_edits(*probed.probe, std::move(edits));
    auto result = testing::run_in_chunks(*probed.model, kIds, kIds.size());
    set_edits(*probed.probe, {});
    return result;
  };
  const std::vector<float> before = logits({});
  const std::vector<float> after = logits({edit});
  const auto kept = changes_with({});
  for (const size_t t : {0U, 40U, 99U}) {
    const std::span a = std::span(before).subspan(50 * t, 50);
    const std::span b = std::span(after).subspan(50 * t, 50);
    double largest = 0;
    for (size_t i = 0; i < 50; ++i) {
      const double change =
          std::exp(b[i] - predict(b, 1).log_sum_exp) - std::exp(a[i] - predict(a, 1).log_sum_exp);
      largest = std::max(largest, std::abs(change));
    }
    EXPECT_NEAR(std::abs(kept[t][0].after - kept[t][0].before), largest, 1e-6);
  }
  const auto bounded = changes_with({.n_last = 7, .most_changes = 300});
  EXPECT_EQ(bounded[40].size(), 3U);
  EXPECT_EQ(bounded[99].size(), 7U);
  EXPECT_EQ(bounded[40][2].id, kept[40][2].id);
  EXPECT_EQ(changes_with({.most_changes = 0})[40].size(), 1U);
}

TEST(Contrast, HasAMeanDivergence) {
  Contrast contrast;
  contrast.divergence = {0.5, 0, 1};
  EXPECT_EQ(contrast.mean_divergence(), 0.5);
}

// At one position only, what comes before it stays as it is.
TEST(Contrast, APositionIsChangedAlone) {
  const ProbedModel probed(shape_of("llama"));
  Edit edit = edit_of(probed, "L0.attn", 1);
  edit.at[70] = std::vector<float>(64, 0.5F);
  const Contrast result = contrast_of(probed, {edit});
  for (size_t t = 0; t < 70; ++t) EXPECT_EQ(result.divergence[t], 0) << t;
  EXPECT_GT(result.divergence[70], 0);
  EXPECT_GT(result.divergence[99], 0);  // by way of attention
  EXPECT_EQ(result.token_distance[69], 0);
}

TEST(Contrast, OfTwoModels) {
  const ProbedModel one(shape_of("llama"));
  const ProbedModel same(shape_of("llama"), "reference");
  const Contrast close = contrast({*one.model, *one.probe}, {*same.model, *same.probe}, kIds);
  for (const double bits : close.divergence) EXPECT_LT(bits, 1e-6);
  const ProbedModel gpt2(shape_of("gpt2"));
  EXPECT_GT(contrast({*one.model, *one.probe}, {*gpt2.model, *gpt2.probe}, kIds).divergence[9],
            0.01);
  testing::TinyShape larger = shape_of("llama");
  larger.n_layers = 4;
  const ProbedModel deep(larger);
  const Contrast other = contrast({*one.model, *one.probe}, {*deep.model, *deep.probe}, kIds);
  EXPECT_TRUE(other.distance.empty());
  larger.vocab_size = 60;
  const ProbedModel wide(larger);
  EXPECT_THROW(contrast({*one.model, *one.probe}, {*wide.model, *wide.probe}, kIds), ArgumentError);
}

TEST(ModelPart, IsReadFromItsName) {
  const ProbedModel probed(shape_of("llama"));
  const DecoderSpec& spec = probed.model->spec();
  const auto read = [&](const char* name) {
    const ModelPart part = model_part(name, spec);
    return std::tuple(part.place, part.layer, part.first_column, part.n_columns);
  };
  const int64_t width = spec.head_dim;
  EXPECT_EQ(read("L0"), std::tuple(Place::kFfnResidual, 0, 0, -1));
  EXPECT_EQ(read("L2.attn"), std::tuple(Place::kAttnOutput, 2, 0, -1));
  EXPECT_EQ(read("L1.mlp"), std::tuple(Place::kFfnOutput, 1, 0, -1));
  EXPECT_EQ(read("L2.H3"), std::tuple(Place::kAttnHeads, 2, 3 * width, width));
  for (const auto& [name, own] : {std::pair("L1.attn_output", "L1.attn"),
                                  {"blk.2.ffn_output", "L2.mlp"},
                                  {"blk.0.ffn_residual", "L0"},
                                  {"L2.attention", "L2.attn"},
                                  {"blk.1.H3", "L1.H3"}})
    EXPECT_EQ(read(name), read(own));
  for (const char* name :
       {"", "L", "3", "L3", "L1.H4", "L1.h2", "L1.", "L-1", "L1.mlp2", "H3", "L1 .mlp"})
    EXPECT_THROW(model_part(name, spec), ArgumentError) << name;
}

TEST(Contrast, WhatIsNotANumberDiffers) {
  const ProbedModel probed(shape_of("llama"));
  Edit edit = edit_of(probed, "L1", 1);
  edit.everywhere.assign(64, NAN);
  const Contrast result = contrast_of(probed, {edit});
  EXPECT_EQ(result.first_layer(), 1);
  EXPECT_TRUE(std::isnan(result.divergence[9]));
}

}  // namespace
}  // namespace limpid
