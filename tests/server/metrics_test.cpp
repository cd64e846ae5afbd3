#include "server/metrics.h"

#include <gtest/gtest.h>

namespace limpid::testing {
namespace {

TEST(Metrics, AHistogramCountsWhatLiesBelowEachBound) {
  constexpr double kBounds[] = {1, 10};
  Histogram histogram(kBounds);
  for (const double value : {0.5, 1.0, 2.0, 10.5}) histogram.observe(value);
  std::string text;
  histogram.print("n", "", text);
  EXPECT_EQ(text,
            "n_bucket{le=\"1\"} 2\nn_bucket{le=\"10\"} 3\nn_bucket{le=\"+Inf\"} 4\n"
            "n_sum 14\nn_count 4\n");
  text.clear();
  histogram.print("n", "model=\"a\"", text);
  EXPECT_NE(text.find("n_bucket{model=\"a\",le=\"+Inf\"} 4\nn_sum{model=\"a\"} 14\n"), text.npos);
}

TEST(Metrics, AnAnswerCountsInAllOfThem) {
  Metrics metrics;
  metrics.add({.n_prompt = 10,
               .n_reused = 6,
               .prompt_seconds = 2,
               .n_generated = 4,
               .generation_seconds = 1});
  metrics.add_embedded(1000);
  metrics.add({.n_prompt = 1});
  const ModelMetrics of_model[] = {
      {"", metrics, {.n_running = 3, .n_waiting = 2, .n_passes = 12, .n_in_passes = 30}}};
  const std::string text = metrics_text(of_model);
  for (const char* line :
       {"\nllamacpp:prompt_tokens_total 1011\n", "\nllamacpp:prompt_tokens_seconds 5.5\n",
        "\nllamacpp:prompt_tokens_cached_total 6\n", "\nllamacpp:tokens_predicted_total 4\n",
        "\nllamacpp:requests_processing 3\n", "\nllamacpp:requests_deferred 2\n",
        "\nllamacpp:predicted_tokens_seconds 4\n",
        "\n# TYPE llamacpp:n_decode_total counter\nllamacpp:n_decode_total 12\n",
        "\nlimpid:prompt_tokens_sum 1017\n", "\nlimpid:reused_tokens_bucket{le=\"4\"} 1\n",
        "\nlimpid:reused_tokens_sum 6\n", "\nlimpid:context_tokens_sum 21\n",
        "\nllamacpp:n_tokens_max 20\n", "\nllamacpp:n_busy_slots_per_decode 2.5\n"})
    EXPECT_NE(text.find(line), std::string::npos) << line;
}

// Prometheus refuses a text in which a metric has two heads.
TEST(Metrics, OfSeveralModelsEachLineNamesItsModel) {
  const Metrics first, second;
  const ModelMetrics models[] = {{"a", first, {.n_running = 1}}, {"b\"\\\n", second, {}}};
  const std::string text = metrics_text(models);
  EXPECT_NE(text.find("\n# TYPE llamacpp:requests_processing gauge\n"
                      "llamacpp:requests_processing{model=\"a\"} 1\n"
                      "llamacpp:requests_processing{model=\"b\\\"\\\\\\n\"} 0\n"),
            text.npos);
  const std::string head = "# TYPE limpid:prompt_tokens histogram";
  EXPECT_EQ(text.find(head), text.rfind(head));
}

}  // namespace
}  // namespace limpid::testing
