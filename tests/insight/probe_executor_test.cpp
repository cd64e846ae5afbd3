// A probe that nobody uses changes nothing; an intervention changes what comes after it.
#include "insight/probe_executor.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "insight/probed_model.h"
#include "limpid/error.hpp"
#include "model/run_model.h"

namespace limpid {
namespace {

using testing::ProbedModel;
using testing::run_in_chunks;
using testing::shape_of;
using testing::some_tokens;

const std::vector<int32_t> kIds = some_tokens(20, 50);

std::vector<float> plain_logits(const std::string& family, const std::string& executor) {
  const auto plain =
      Model::load(testing::tiny_checkpoint(shape_of(family)), make_executor(executor, {}));
  return run_in_chunks(*plain, kIds, kIds.size());
}

TEST(Probe, LookingChangesNothing) {
  for (const char* executor : {"reference", "cpu"}) {
    ProbedModel probed(shape_of("gpt2"), executor);
    int n_seen = 0;
    probed.probe->set_observer(PlaceSet(Place::kQuery, Place::kFfnHidden),
                               [&](Place, int64_t, std::span<const float>) { ++n_seen; });
    probed.probe->set_intervention(PlaceSet(Place::kEmbedding, Place::kAttnHeads),
                                   [](Place, int64_t, std::span<float>) { return false; });
    EXPECT_EQ(run_in_chunks(*probed.model, kIds, kIds.size()), plain_logits("gpt2", executor));
    EXPECT_EQ(n_seen, 2 * 3);
    probed.probe->set_observer({}, {});
    run_in_chunks(*probed.model, kIds, kIds.size());
    EXPECT_EQ(n_seen, 2 * 3);
  }
}

// With nothing added by any block, the stream at the end is the embedding.
TEST(Probe, ABlockThatAddsNothingLeavesTheStreamAsItIs) {
  for (const char* executor : {"reference", "cpu"}) {
    ProbedModel probed(shape_of("llama"), executor);
    probed.probe->set_intervention(PlaceSet(Place::kAttnOutput, Place::kFfnOutput),
                                   [](Place, int64_t, std::span<float> values) {
                                     std::ranges::fill(values, 0.0F);
                                     return true;
                                   });
    std::vector<float> embedding;
    std::vector<float> last;
    probed.probe->set_observer(PlaceSet(Place::kEmbedding, Place::kFfnResidual),
                               [&](Place place, int64_t layer, std::span<const float> values) {
                                 if (place == Place::kEmbedding)
                                   embedding.assign(values.begin(), values.end());
                                 if (layer == 2) last.assign(values.begin(), values.end());
                               });
    const std::vector<float> logits = run_in_chunks(*probed.model, kIds, kIds.size());
    EXPECT_EQ(embedding, last);
    EXPECT_NE(logits, plain_logits("llama", executor));
    probed.probe->set_intervention({}, {});
    EXPECT_EQ(run_in_chunks(*probed.model, kIds, kIds.size()), plain_logits("llama", executor));
  }
}

// The end of the pass alone gives the logits of the whole pass, to the bit.
TEST(Probe, ReadsAStreamOut) {
  for (const char* family : {"llama", "gpt2"}) {
    ProbedModel probed(shape_of(family));
    std::vector<float> stream;
    probed.probe->set_observer(PlaceSet(Place::kFfnResidual),
                               [&](Place, int64_t, std::span<const float> values) {
                                 stream.assign(values.begin(), values.end());
                               });
    const std::vector<float> logits = run_in_chunks(*probed.model, kIds, kIds.size());
    EXPECT_EQ(testing::read_out(*probed.model, stream), logits);
    EXPECT_THROW(testing::read_out(*probed.model, std::span(stream).first(65)), ShapeError);
  }
}

TEST(Places, HaveNames) {
  for (int i = 0; i < kNumPlaces; ++i) {
    const auto place = static_cast<Place>(i);
    EXPECT_EQ(place_from_name(place_name(place)), place);
  }
  EXPECT_EQ(place_name(Place::kFfnResidual), "ffn_residual");
  EXPECT_FALSE(place_from_name("nowhere").has_value());
  constexpr PlaceSet kSome(Place::kQuery, Place::kLogits);
  static_assert(kSome.contains(Place::kLogits) && !kSome.contains(Place::kKey));
}

}  // namespace
}  // namespace limpid
