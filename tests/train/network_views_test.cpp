// What a page shows of a network is what its training has, and looking changes nothing.
#include <gtest/gtest.h>

#include <cstring>
#include <numeric>

#include "limpid/error.hpp"
#include "train/watch/film.h"
#include "train/watch/lesson.h"
#include "train/watch/microgpt_view.h"

namespace limpid {
namespace {

using microgpt::Config;
using microgpt::Dataset;

Config small() {
  Config config = microgpt::preset("fsharp");
  config.shape.n_layer = 2;
  config.shape.n_embd = 8;
  config.shape.n_head = 2;
  config.num_steps = 30;
  config.batch_size = 2;
  return config;
}

microgpt::Trainer make_trainer(const microgpt::Trainer::MakeEngine& make_engine) {
  return {small(), Dataset::parse("anna\nbob\ncarl\nlongername\n", "names"), make_engine};
}

std::vector<float> unpacked(const std::string& base64) {
  static constexpr std::string_view kDigits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::vector<uint8_t> bytes;
  uint32_t bits = 0;
  int n_bits = 0;
  for (const char c : base64.substr(0, base64.find('='))) {
    bits = bits << 6U | static_cast<uint32_t>(kDigits.find(c));
    if ((n_bits += 6) < 8) continue;
    n_bits -= 8;
    bytes.push_back(static_cast<uint8_t>(bits >> static_cast<uint32_t>(n_bits)));
  }
  std::vector<float> numbers(bytes.size() / sizeof(float));
  std::memcpy(numbers.data(), bytes.data(), numbers.size() * sizeof(float));
  return numbers;
}

std::vector<float> rounded(const std::vector<double>& numbers) {
  return {numbers.begin(), numbers.end()};
}

class MicrogptViews : public ::testing::TestWithParam<microgpt::Trainer::MakeEngine> {};

TEST_P(MicrogptViews, ShowTheNumbersOfTheEngine) {
  auto trainer = make_trainer(GetParam());
  MicrogptView view(trainer);
  for (int i = 0; i < 5; ++i) {
    trainer.look();
    const Json snapshot = view.snapshot(trainer);
    EXPECT_EQ(unpacked(snapshot["weights"]), rounded(trainer.engine().weights()));
    EXPECT_EQ(unpacked(snapshot["gradients"]), rounded(trainer.engine().gradients()));
    EXPECT_EQ(snapshot["step"], i);
    trainer.update();
  }
  // The logits at the last position of the name are those that the engine itself computes.
  trainer.look();
  const Json snapshot = view.snapshot(trainer);
  const auto& document = trainer.batch().front();
  const auto n = snapshot["n_positions"].get<size_t>();
  std::vector<double> logits(static_cast<size_t>(trainer.alphabet().vocab_size()));
  trainer.engine().begin_context();
  for (size_t i = 0; i < n; ++i) trainer.engine().next_logits(document[i], logits);
  const std::vector<float> activations = unpacked(snapshot["activations"]);
  for (size_t i = 0; i < logits.size(); ++i)
    EXPECT_NEAR(activations[activations.size() - logits.size() + i], logits[i], 1e-4);
  // Attention weights of a position, for each head, are on the positions up to its own.
  const std::vector<float> attention = unpacked(snapshot["attention"]);
  const size_t n_heads = 2 * 2;
  ASSERT_EQ(attention.size(), n * n_heads * n);
  for (size_t i = 0; i < n * n_heads; ++i) {
    const size_t position = i / n_heads;
    const auto row = attention.begin() + static_cast<int64_t>(i * n);
    EXPECT_NEAR(std::accumulate(row, row + static_cast<int64_t>(position + 1), 0.0), 1, 1e-6);
    EXPECT_EQ(
        std::count(row + static_cast<int64_t>(position + 1), row + static_cast<int64_t>(n), 0),
        n - position - 1);
  }
}

TEST_P(MicrogptViews, LookingChangesNoLossAndNoName) {
  auto alone = make_trainer(GetParam());
  auto watched = make_trainer(GetParam());
  MicrogptView view(watched);
  for (int i = 0; i < 8; ++i) {
    EXPECT_EQ(watched.look(), alone.look());
    view.snapshot(watched);
    watched.update();
    alone.update();
  }
  EXPECT_EQ(watched.look(), alone.look());
  EXPECT_EQ(watched.engine().weights(), alone.engine().weights());
  EXPECT_EQ(watched.sample(), alone.sample());
}

INSTANTIATE_TEST_SUITE_P(Engines, MicrogptViews,
                         ::testing::Values(microgpt::make_scalar_engine,
                                           microgpt::make_fast_engine<float>,
                                           microgpt::make_tensor_engine));

TEST(MicrogptView, RefusesWhatIsTooLargeToDraw) {
  Config config = small();
  config.shape.n_embd = 128;
  const microgpt::Trainer trainer(config, Dataset::parse("anna\n", "names"),
                                  microgpt::make_fast_engine<float>);
  EXPECT_THROW(MicrogptView{trainer}, ArgumentError);
}

TEST(Lesson, LearnsEachTask) {
  for (const char* task : {"circle", "xor", "spiral"}) {
    Config config;
    config.num_steps = 2000;
    Lesson lesson(task, config);
    while (lesson.steps_done() < config.num_steps) {
      lesson.look();
      lesson.update();
    }
    EXPECT_GE(lesson.accuracy(), 0.97) << task;
  }
  EXPECT_THROW(Lesson("square", Config()), ArgumentError);
}

TEST(Lesson, SnapshotsHaveItsNumbersAndChangeNothing) {
  Lesson alone("xor", Config());
  Lesson watched("xor", Config());
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(watched.look(), alone.look());
    const Json snapshot = watched.snapshot();
    EXPECT_EQ(unpacked(snapshot["weights"]), rounded(watched.weights()));
    EXPECT_EQ(unpacked(snapshot["gradients"]), rounded(watched.gradients()));
    watched.update();
    alone.update();
  }
  EXPECT_EQ(watched.weights(), alone.weights());
}

TEST(Film, KeepsABoundedNumberOfEvenlySpacedFrames) {
  Film film(0);  // nothing is known of its length
  int64_t n_kept = 0;
  for (int64_t step = 0; step < 5000; ++step) {
    if (!film.wants(step)) continue;
    film.add(Json{{"step", step}}.dump());
    ++n_kept;
  }
  film.end(Json{{"step", 5000}}.dump());
  Lesson lesson("xor", Config());
  const std::string page = film.page(lesson.network(), LossCurve());
  const std::string begin = R"(<script type="application/json" id="data">)";
  const size_t at = page.find(begin) + begin.size();
  const Json data = Json::parse(page.substr(at, page.find("</script>", at) - at));
  const Json& frames = data["film"]["frames"];
  EXPECT_LE(frames.size(), Film::kMostFrames + 1);
  EXPECT_GE(frames.size(), Film::kMostFrames / 2);
  const int64_t distance = data["film"]["distance"];
  for (size_t i = 0; i + 1 < frames.size(); ++i)
    EXPECT_EQ(frames[i]["step"], static_cast<int64_t>(i) * distance);
  EXPECT_EQ(frames.back()["step"], 5000);

  Film large(0);
  const std::string megabyte = Json(std::string(1'000'000, 'x')).dump();
  for (int i = 0; i < 30; ++i) large.add(megabyte);
  EXPECT_LE(large.page(lesson.network(), LossCurve()).size(), Film::kMostBytes + 2'000'000);
}

TEST(LossCurve, HoldsMeansOfEqualStrides) {
  LossCurve curve;
  for (int i = 0; i < 10'000; ++i) curve.add(i);
  EXPECT_EQ(curve.stride(), 16);
  EXPECT_EQ(curve.means().size(), 625U);
  EXPECT_EQ(curve.means()[0], 7.5F);
  EXPECT_EQ(curve.means()[624], 624 * 16 + 7.5F);
}

}  // namespace
}  // namespace limpid
