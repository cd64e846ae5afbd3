#include "server/metrics.h"

#include <gtest/gtest.h>

namespace limpid::testing {
namespace {

TEST(Metrics, AHistogramCountsWhatLiesBelowEachBound) {
  constexpr double kBounds[] = {1, 10};
  Histogram histogram(kBounds);
  for (const double value : {0.5, 1.0, 2.0, 10.5}) histogram.observe(value);
  std::string text;
  histogram.print("n", "Some numbers.", text);
  EXPECT_EQ(text,
            "# HELP n Some numbers.\n# TYPE n histogram\n"
            "n_bucket{le=\"1\"} 2\nn_bucket{le=\"10\"} 3\nn_bucket{le=\"+Inf\"} 4\n"
            "n_sum 14\nn_count 4\n");
}

TEST(Metrics, AnAnswerCountsInAllOfThem) {
  Metrics metrics;
  metrics.add({.n_prompt = 10,
               .n_reused = 6,
               .prompt_seconds = 2,
               .n_generated = 4,
               .generation_seconds = 1});
  const std::string text = metrics.text({.n_running = 3, .n_waiting = 2});
  for (const char* line :
       {"\nllamacpp:prompt_tokens_total 10\n", "\nllamacpp:prompt_tokens_cached_total 6\n",
        "\nllamacpp:tokens_predicted_total 4\n", "\nllamacpp:requests_processing 3\n",
        "\nllamacpp:requests_deferred 2\n", "\nllamacpp:predicted_tokens_seconds 4\n",
        "\nlimpid:time_per_token_seconds_sum 0.25\n", "\nlimpid:prompt_tokens_sum 16\n"})
    EXPECT_NE(text.find(line), std::string::npos) << line;
}

}  // namespace
}  // namespace limpid::testing
