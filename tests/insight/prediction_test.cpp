// What is said of logits: beside doubles, and with the same bits in whatever parts the logits come.
#include "insight/prediction.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "base/thread_pool.h"

namespace limpid {
namespace {

constexpr int64_t kRows = 3;
constexpr int64_t kVocabulary = 5 * kPartColumns + 77;

std::vector<float> some_logits() {
  std::mt19937 random(5);
  std::normal_distribution<float> normal(-2, 4);
  std::vector<float> logits(kRows * kVocabulary);
  for (float& each : logits) each = std::round(normal(random) * 8) / 8;  // many are equal
  return logits;
}

void expect_same(const Prediction& a, const Prediction& b) {
  EXPECT_EQ(a.entropy, b.entropy);
  EXPECT_EQ(a.log_sum_exp, b.log_sum_exp);
  ASSERT_EQ(a.likeliest.size(), b.likeliest.size());
  for (size_t i = 0; i < a.likeliest.size(); ++i) {
    EXPECT_EQ(a.likeliest[i].id, b.likeliest[i].id);
    EXPECT_EQ(a.likeliest[i].probability, b.likeliest[i].probability);
  }
}

TEST(Prediction, OfKnownProbabilities) {
  // Probabilities 1/2, 1/4, 1/8, 1/8: 1.75 bits.
  const std::vector<float> logits = {std::log(0.125F), std::log(0.5F), std::log(0.25F),
                                     std::log(0.125F)};
  const Prediction prediction = predict(logits, 3);
  EXPECT_NEAR(prediction.entropy, 1.75, 1e-6);
  EXPECT_NEAR(prediction.log_sum_exp, 0, 1e-6);
  ASSERT_EQ(prediction.likeliest.size(), 3U);
  EXPECT_EQ(prediction.likeliest[0].id, 1);
  EXPECT_NEAR(prediction.likeliest[0].probability, 0.5, 1e-6);
  EXPECT_EQ(prediction.likeliest[2].id, 0);  // before 3, which is as likely
  EXPECT_NEAR(surprise(std::log(0.125)), 3, 1e-12);
}

TEST(Prediction, IsThatOfASumInDoubles) {
  const std::vector<float> logits = some_logits();
  const auto row = std::span(logits).first(kVocabulary);
  double sum = 0;
  for (const float each : row) sum += std::exp(static_cast<double>(each));
  double entropy = 0;
  for (const float each : row) {
    const double log_p = static_cast<double>(each) - std::log(sum);
    entropy -= std::exp(log_p) * log_p / std::log(2);
  }
  const Prediction prediction = predict(row, 5);
  EXPECT_NEAR(prediction.log_sum_exp, std::log(sum), 1e-6);
  EXPECT_NEAR(prediction.entropy, entropy, 1e-5);
}

TEST(LogitReader, HasTheBitsOfAllAtOnceInWhateverParts) {
  const std::vector<float> logits = some_logits();
  const std::vector<int32_t> wanted = {0, 7, -1, -1, 3, kVocabulary - 1};  // two of each row
  for (const int64_t width : {kPartColumns, 2 * kPartColumns, 6 * kPartColumns}) {
    LogitReader reader(kVocabulary);
    reader.begin(kRows + 2, 4);  // what an earlier text leaves behind
    reader.see({0, std::min(width, kVocabulary), logits.data(), 0});
    reader.begin(kRows, 9, wanted);
    ThreadPool pool(3);
    const int64_t n_parts = (kVocabulary + width - 1) / width;
    pool.for_ranges(n_parts, 1, [&](int64_t from, int64_t to, int /*thread*/) {
      for (int64_t i = to; i-- > from;) {
        const int64_t begin = (n_parts - 1 - i) * width;
        reader.see(
            {begin, std::min(begin + width, kVocabulary), logits.data() + begin, kVocabulary});
      }
    });
    for (int64_t i = 0; i < kRows; ++i) {
      const auto row = std::span(logits).subspan(static_cast<size_t>(i * kVocabulary), kVocabulary);
      expect_same(reader.prediction(i), predict(row, 9));
      EXPECT_EQ(reader.largest_logit(i), *std::ranges::max_element(row));
    }
    EXPECT_EQ(reader.wanted_logit(0, 0), logits.front());
    EXPECT_EQ(reader.wanted_logit(0, 1), logits[7]);
    EXPECT_EQ(reader.wanted_logit(2, 0), logits[2 * kVocabulary + 3]);
    EXPECT_EQ(reader.wanted_logit(2, 1), logits.back());
  }
}

}  // namespace
}  // namespace limpid
