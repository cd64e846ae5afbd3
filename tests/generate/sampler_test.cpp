#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <random>
#include <set>

#include "base/philox.h"
#include "data_paths.h"
#include "generate/portable_exp.h"
#include "generate/sampler_chain.h"
#include "limpid/error.hpp"

namespace limpid {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

std::vector<float> random_logits(int64_t n, uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<float> logits(static_cast<size_t>(n));
  for (float& x : logits) {
    double sum = 0;  // nearly normal, and the same on every standard library
    for (int i = 0; i < 12; ++i) sum += static_cast<double>(random()) / 4294967296.0;
    x = static_cast<float>(2.5 * (sum - 6.0));
  }
  return logits;
}

SamplerOptions options_of(const nlohmann::json& o, const std::string& order) {
  SamplerOptions options;
  options.seed = 1;
  options.order = order;
  options.temperature = o.at("temperature");
  options.top_k = o.at("top_k");
  options.top_p = o.at("top_p");
  options.min_p = o.at("min_p");
  options.typical_p = o.at("typical_p");
  options.top_n_sigma = o.at("top_n_sigma");
  options.xtc_probability = o.at("xtc_probability");
  options.xtc_threshold = o.at("xtc_threshold");
  options.repeat_last_n = o.at("repeat_last_n");
  options.repeat_penalty = o.at("repeat_penalty");
  options.presence_penalty = o.at("presence_penalty");
  options.frequency_penalty = o.at("frequency_penalty");
  options.min_keep = o.at("min_keep");
  return options;
}

SamplerOptions only(const std::string& order) {
  SamplerOptions options;
  options.seed = 7;
  options.order = order;
  return options;
}

template <typename Function>
std::string argument_error_of(Function&& function) {
  try {
    function();
  } catch (const ArgumentError& error) {
    return error.what();
  }
  return "";
}

TEST(SamplerGolden, EverySamplerLeavesWhatNumpySays) {
  std::ifstream file(testing::test_data_path("sampler/golden.json"));
  const auto cases = nlohmann::json::parse(file);
  ASSERT_GT(cases.size(), 25U);
  for (const auto& c : cases) {
    SCOPED_TRACE(c.at("case").get<std::string>());
    const auto logits = c.at("logits").get<std::vector<float>>();
    const auto history = c.at("history").get<std::vector<TokenId>>();
    SamplerChain chain(options_of(c.at("options"), c.at("order")), std::ssize(logits), {});
    const TokenId chosen = chain.sample(logits, history);

    std::vector<Candidate> left(chain.candidates().items().begin(),
                                chain.candidates().items().end());
    std::sort(left.begin(), left.end(), [](const auto& a, const auto& b) { return a.id < b.id; });
    std::vector<TokenId> ids;
    ids.reserve(left.size());
    for (const auto& candidate : left) ids.push_back(candidate.id);
    ASSERT_EQ(ids, c.at("ids").get<std::vector<TokenId>>());
    EXPECT_TRUE(std::binary_search(ids.begin(), ids.end(), chosen));
    for (size_t i = 0; i < left.size(); ++i) {
      const double expected = c.at("probabilities")[i];
      EXPECT_NEAR(left[i].probability, expected, 2e-6 * expected + 1e-12) << "token " << left[i].id;
    }
  }
}

// Salmon et al. publish these with their code (Random123, kat_vectors).
TEST(Philox, KnownAnswers) {
  using Words = std::array<uint32_t, 4>;
  EXPECT_EQ(philox4x32(0, 0, 0), (Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  constexpr uint64_t kOnes = ~uint64_t{0};
  EXPECT_EQ(philox4x32(kOnes, kOnes, kOnes),
            (Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox4x32(0x85a308d3'243f6a88, 0x03707344'13198a2e, 0x299f31d0'a4093822),
            (Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(PortableExp, IsWithinTwoUnitsInTheLastPlace) {
  std::mt19937_64 random(3);
  for (int i = 0; i < 200'000; ++i) {
    const double x =
        -708.0 * static_cast<double>(random() >> 11U) * 0x1p-53 * (i % 2 == 0 ? 1.0 : 0.01);
    const double expected = std::exp(x);
    ASSERT_NEAR(portable_exp(x), expected, 2 * 0x1p-52 * expected) << x;
  }
  EXPECT_EQ(portable_exp(0), 1.0);
  EXPECT_EQ(portable_exp(-kInfinity), 0.0);
  EXPECT_EQ(portable_exp(-1e6), 0.0);
}

TEST(SamplerChain, DrawsWithTheProbabilitiesOfTheSoftmax) {
  const auto logits = random_logits(12, 5);
  SamplerOptions options = only("temperature");
  options.temperature = 1.5F;
  SamplerChain chain(options, 12, {});
  constexpr int kDraws = 40'000;
  std::vector<int> counts(12);
  std::vector<TokenId> history;
  for (int i = 0; i < kDraws; ++i) {
    ++counts[static_cast<size_t>(chain.sample(logits, history))];
    history.push_back(0);
  }
  double chi_squared = 0;
  for (const Candidate& c : chain.candidates().items()) {
    const double expected = kDraws * static_cast<double>(c.probability);
    chi_squared += std::pow(counts[static_cast<size_t>(c.id)] - expected, 2) / expected;
  }
  EXPECT_LT(chi_squared, 31.3);  // 11 degrees of freedom, p = 0.001
  EXPECT_GT(chi_squared, 1.5);   // p = 0.9995: numbers too even are no random numbers
}

TEST(SamplerChain, XtcDropsWithItsProbability) {
  SamplerOptions options = only("xtc");
  options.xtc_probability = 0.3F;
  options.xtc_threshold = 0.2F;
  SamplerChain chain(options, 4, {});
  const std::vector<float> logits = {2, 2, 1, -3};
  std::vector<TokenId> history;
  int n_dropped = 0;
  constexpr int kDraws = 10'000;
  for (int i = 0; i < kDraws; ++i) {
    chain.sample(logits, history);
    history.push_back(0);
    n_dropped += chain.candidates().size() < 4;
  }
  EXPECT_NEAR(n_dropped, 0.3 * kDraws, 4 * std::sqrt(0.3 * 0.7 * kDraws));
}

TEST(SamplerChain, XtcDoesNotLeaveOnlyABannedToken) {
  SamplerOptions options = only("xtc");
  options.xtc_probability = 1;
  options.xtc_threshold = 0;
  options.logit_bias = {{0, -std::numeric_limits<float>::infinity()}};
  SamplerChain chain(options, 3, {});
  EXPECT_EQ(chain.sample(std::vector<float>{5, 2, 1}, {}), 2);
}

// Among a thousand equal tokens, the one drawn is the number's first three digits. The numbers are
// those that numpy's RandomState(42) makes of two words of 32 bits each, the low one first.
TEST(SamplerChain, TheMersenneTwisterDrawsAsInLlamaCpp) {
  SamplerOptions options = only("");
  options.seed = 42;
  options.random_numbers = RandomNumbers::kMersenneTwister;
  const std::vector<float> logits(1000, 1.0F);
  for (int chain = 0; chain < 2; ++chain) {
    SamplerChain sampler(options, 1000, {});
    std::vector<TokenId> history(7, 0);  // its length has no effect
    for (const TokenId expected : {796, 183, 779, 596, 445, 99}) {
      history.push_back(sampler.sample(logits, history));
      EXPECT_EQ(history.back(), expected);
    }
  }
}

TEST(SamplerChain, IsAFunctionOfSeedAndHistory) {
  const auto logits = random_logits(500, 9);
  const auto draw = [&](int64_t seed, size_t n) {
    SamplerOptions options;
    options.seed = seed;
    SamplerChain chain(options, 500, {});
    const std::vector<TokenId> history(n, 3);
    return chain.sample(logits, history);
  };
  std::set<TokenId> over_positions, over_seeds;
  for (size_t i = 0; i < 60; ++i) {
    EXPECT_EQ(draw(42, i), draw(42, i));
    over_positions.insert(draw(42, i));
    over_seeds.insert(draw(static_cast<int64_t>(i), 5));
  }
  EXPECT_GT(over_positions.size(), 5U);
  EXPECT_GT(over_seeds.size(), 5U);
  EXPECT_NE(SamplerChain(SamplerOptions{}, 500, {}).seed(),
            SamplerChain(SamplerOptions{}, 500, {}).seed());
}

TEST(SamplerChain, GreedyTakesTheLowestIdAmongEquals) {
  SamplerOptions options;
  options.temperature = 0;
  SamplerChain chain(options, 6, {});
  EXPECT_EQ(chain.sample(std::vector<float>{0, 5, 1, 5, 5, -2}, {}), 1);
  EXPECT_EQ(chain.candidates().size(), 1);
}

TEST(SamplerChain, GreedyHeedsBiasPenaltiesAndIgnoreEos) {
  const std::vector<float> logits = {0, 5, 4, 3};
  SamplerOptions options;
  options.temperature = 0;
  options.logit_bias = {{0, 10.0F}};
  EXPECT_EQ(SamplerChain(options, 4, {}).sample(logits, {}), 0);
  options.logit_bias = {{1, -kInfinity}};
  EXPECT_EQ(SamplerChain(options, 4, {}).sample(logits, {}), 2);
  options.logit_bias.clear();
  options.repeat_penalty = 1.5F;
  const std::vector<TokenId> history = {1};
  EXPECT_EQ(SamplerChain(options, 4, {}).sample(logits, history), 2);
  options.ignore_eos = true;
  const std::vector<TokenId> stops = {2};
  EXPECT_EQ(SamplerChain(options, 4, stops).sample(logits, history), 1);
}

TEST(SamplerChain, RefusesDamagedLogits) {
  SamplerChain chain(SamplerOptions{}, 3, {});
  for (const float bad : {std::numeric_limits<float>::quiet_NaN(), kInfinity, -kInfinity}) {
    const std::vector<float> logits = {1, 2, bad};
    EXPECT_NE(argument_error_of([&] { chain.sample(logits, {}); }).find("logit of token 2 is"),
              std::string::npos);
  }
}

// Notes how many candidates it sees, and bans odd ids.
class EvenOnly : public Sampler {
 public:
  std::string_view name() const override { return "even_only"; }
  void apply(Candidates& candidates, const SamplerContext&) override {
    n_seen = candidates.size();
    candidates.remove_if([](const Candidate& c) { return c.id % 2 == 1; });
  }
  void accept(TokenId) override { ++n_accepted; }
  int64_t n_seen = 0;
  int64_t n_accepted = 0;
};

TEST(SamplerChain, RefusesOptionsOutsideTheirRange) {
  const auto refuse = [](const auto& change, const std::string& word) {
    SamplerOptions options;
    change(options);
    const auto error =
        argument_error_of([&] { SamplerChain(options, 10, std::vector<TokenId>{12}); });
    EXPECT_NE(error.find(word), std::string::npos) << "error: '" << error << "' lacks " << word;
  };
  refuse([](auto& o) { o.order = "top_k;nonsense"; }, "nonsense");
  refuse([](auto& o) { o.temperature = NAN; }, "temperature");
  refuse([](auto& o) { o.top_p = -0.1F; }, "top_p");
  refuse([](auto& o) { o.min_p = NAN; }, "min_p");
  refuse([](auto& o) { o.repeat_penalty = 0; }, "repeat_penalty");
  refuse([](auto& o) { o.repeat_last_n = -2; }, "repeat_last_n");
  refuse([](auto& o) { o.seed = -2; }, "seed");
  refuse([](auto& o) { o.logit_bias = {{10, 1.0F}}; }, "token 10");
  refuse([](auto& o) { o.logit_bias = {{1, NAN}}; }, "token 1");
  refuse([](auto& o) { o.ignore_eos = true; }, "stop id 12");
  refuse([](auto& o) { o.custom = {nullptr}; }, "null");
  refuse(
      [](auto& o) {
        o.custom = {std::make_shared<EvenOnly>(), std::make_shared<EvenOnly>()};
      },
      "two custom samplers are named 'even_only'");
}

TEST(SamplerChain, SaysSoWhenEverythingIsBanned) {
  SamplerOptions options;
  options.logit_bias = {{0, -kInfinity}, {1, -kInfinity}};
  for (const float temperature : {0.0F, 0.8F}) {
    options.temperature = temperature;
    SamplerChain chain(options, 2, {});
    EXPECT_NE(argument_error_of([&] {
                chain.sample(std::vector<float>{1, 2}, {});
              }).find("no token is left"),
              std::string::npos);
  }
}

TEST(SamplerChain, RunsACustomSamplerWhereTheOrderSays) {
  const auto logits = random_logits(100, 2);
  const auto sampler = std::make_shared<EvenOnly>();
  SamplerOptions options = only("top_k;even_only;temperature");
  options.custom = {sampler};
  options.top_k = 10;
  for (size_t i = 0; i < 20; ++i) {
    EXPECT_EQ(SamplerChain(options, 100, {}).sample(logits, std::vector<TokenId>(i)) % 2, 0);
  }
  EXPECT_EQ(sampler->n_seen, 10);
  sampler->n_accepted = 0;
  options.order = "even_only;top_k;even_only;temperature";
  SamplerChain(options, 100, {}).sample(logits, {});
  EXPECT_EQ(sampler->n_accepted, 1);
  options.order = "top_k;temperature";
  SamplerChain chain(options, 100, {});
  chain.sample(logits, {});
  EXPECT_EQ(sampler->n_seen, 100);
  EXPECT_EQ(chain.candidates().size(), 10);
  options.temperature = 0;
  EXPECT_EQ(SamplerChain(options, 100, {}).sample(logits, {}) % 2, 0);
}

class WritesNan : public Sampler {
 public:
  std::string_view name() const override { return "writes_nan"; }
  void apply(Candidates& candidates, const SamplerContext&) override {
    candidates.edit()[4].logit = NAN;
  }
};

TEST(SamplerChain, NamesTheSamplerThatWritesNan) {
  SamplerOptions options;
  options.custom = {std::make_shared<WritesNan>()};
  SamplerChain chain(options, 50, {});
  const auto error = argument_error_of([&] { chain.sample(random_logits(50, 1), {}); });
  EXPECT_NE(error.find("writes_nan"), std::string::npos);
  EXPECT_NE(error.find("token 4"), std::string::npos);
}

// Sorting 128k candidates takes 10 ms and more; the whole chain with top-k must stay far below one
// token's time.
TEST(SamplerChain, DoesNotSortTheVocabulary) {
  const auto logits = random_logits(128'256, 4);
  SamplerOptions options;
  options.seed = 3;
  SamplerChain chain(options, 128'256, {});
  double best_seconds = 1;
  std::vector<TokenId> history;
  for (int i = 0; i < 15; ++i) {
    const auto start = std::chrono::steady_clock::now();
    history.push_back(chain.sample(logits, history));
    const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
    best_seconds = std::min(best_seconds, taken.count());
  }
  RecordProperty("best_microseconds", static_cast<int>(best_seconds * 1e6));
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  std::vector<float> sorted = logits;
  const auto start = std::chrono::steady_clock::now();
  std::sort(sorted.begin(), sorted.end(), std::greater<>());
  const std::chrono::duration<double> sort_seconds = std::chrono::steady_clock::now() - start;
  EXPECT_LT(best_seconds, 0.5 * sort_seconds.count());
#endif
}

// Logits of few values, so that many are equal, and of both zeros.
TEST(Candidates, AreFoundAfterTheyWereMoved) {
  Candidates candidates;
  candidates.assign(random_logits(50, 1));
  std::ranges::reverse(candidates.edit());
  EXPECT_EQ(candidates.find(20)->id, 20);
  EXPECT_EQ(candidates.find(50), nullptr);
  EXPECT_EQ(candidates.find(-1), nullptr);
}

TEST(Candidates, TheBestAreThoseOfTheWholeVocabulary) {
  std::mt19937 random(3);
  for (const size_t n_tokens : {1U, 5U, 64U, 65U, 1000U, 5000U}) {
    for (const int n_values : {2, 50, 1'000'000}) {
      std::vector<float> logits(n_tokens);
      for (float& logit : logits) {
        logit = static_cast<float>(static_cast<int>(random() % n_values) - n_values / 2) / 7;
        if (logit == 0 && random() % 2 == 0) logit = -0.0F;
      }
      for (const int64_t n : {-1, 0, 1, 2, 40, 1024, 2000}) {
        Candidates one_pass;
        one_pass.assign_best(logits, n);
        Candidates whole;
        whole.assign(logits);
        whole.keep_best(n);
        ASSERT_EQ(one_pass.size(), whole.size());
        for (int64_t i = 0; i < whole.size(); ++i) {
          EXPECT_EQ(one_pass.items()[i].id, whole.items()[i].id);
          EXPECT_EQ(one_pass.items()[i].logit, whole.items()[i].logit);
        }
      }
      for (const float bad : {NAN, -NAN, INFINITY, -INFINITY}) {
        logits[n_tokens / 2] = bad;
        EXPECT_THROW(Candidates().assign_best(logits, 1), ArgumentError);
      }
    }
  }
}

// A chain that begins with top_k sees the best only; custom samplers in front of it see all.
TEST(SamplerChain, ABiasBeforeTopKCountsAsInTheWholeVocabulary) {
  std::mt19937 random(4);
  std::normal_distribution<float> any(0, 3);
  std::vector<float> logits(3000);
  for (float& logit : logits) logit = any(random);
  for (int trial = 0; trial < 50; ++trial) {
    SamplerOptions options;
    options.seed = trial;
    options.top_k = 5;
    const int n_biases = trial % 2 == 0 ? 30 : 300;
    for (int i = 0; i < n_biases; ++i)
      options.logit_bias.push_back({static_cast<TokenId>(random() % 3000), -std::abs(any(random))});
    const auto best = std::ranges::max_element(logits) - logits.begin();
    options.logit_bias.push_back({static_cast<TokenId>(best), -INFINITY});
    SamplerChain fast(options, 3000, {});
    EXPECT_EQ(fast.n_best(), n_biases == 30 ? 36 : 0);  // to search for 300 would cost more
    options.logit_bias.push_back({0, 1e-30F});          // raises one: no short way
    SamplerChain slow(options, 3000, {});
    EXPECT_EQ(fast.sample(logits, {}), slow.sample(logits, {}));
    EXPECT_EQ(fast.candidates().size(), slow.candidates().size());
  }
}

// Half of the history is among the best, so that penalties change what is chosen.
TEST(SamplerChain, PenaltiesBeforeTheBestCountAsInTheWholeVocabulary) {
  std::mt19937 random(5);
  std::normal_distribution<float> any(0, 3);
  int n_changed = 0;
  for (int trial = 0; trial < 100; ++trial) {
    std::vector<float> logits(3000);
    for (float& logit : logits) logit = any(random);
    Candidates best;
    best.assign_best(logits, 40);
    std::vector<TokenId> history;
    for (int i = 0; i < 80; ++i) {
      history.push_back(i % 2 == 0 ? static_cast<TokenId>(random() % 3000)
                                   : best.items()[random() % 40].id);
    }
    SamplerOptions options;
    options.seed = trial;
    options.temperature = trial % 2 == 0 ? 0.0F : 2.0F;
    options.repeat_penalty = 1.5F;
    options.presence_penalty = 0.5F;
    options.frequency_penalty = 0.25F;
    SamplerChain fast(options, 3000, {});
    EXPECT_EQ(fast.n_best(), trial % 2 == 0 ? 65 : 104);
    const TokenId without = SamplerChain(options, 3000, {}).sample(logits, {});
    options.logit_bias.push_back({0, 1e-30F});  // raises one: no short way
    SamplerChain slow(options, 3000, {});
    EXPECT_EQ(slow.n_best(), 0);
    const TokenId chosen = slow.sample(logits, history);
    EXPECT_EQ(fast.sample(logits, history), chosen);
    EXPECT_TRUE(std::ranges::equal(fast.candidates().items(), slow.candidates().items(), {},
                                   &Candidate::id, &Candidate::id));
    n_changed += without != chosen ? 1 : 0;
  }
  EXPECT_GT(n_changed, 50);
}

TEST(SamplerChain, NeedsAllLogitsForPenaltiesThatMayRaiseAny) {
  const auto n_best = [](const auto& change) {
    SamplerOptions options;
    options.temperature = 0;
    options.repeat_penalty = 1.1F;
    change(options);
    return SamplerChain(options, 3000, {}).n_best();
  };
  EXPECT_EQ(n_best([](auto&) {}), 65);
  EXPECT_EQ(n_best([](auto& o) { o.repeat_penalty = 0.9F; }), 0);
  EXPECT_EQ(n_best([](auto& o) { o.presence_penalty = -0.1F; }), 0);
  EXPECT_EQ(n_best([](auto& o) { o.frequency_penalty = -0.1F; }), 0);
  EXPECT_EQ(n_best([](auto& o) { o.repeat_last_n = -1; }), 0);
  EXPECT_EQ(n_best([](auto& o) { o.repeat_last_n = 2'000'000'000; }), 0);
  EXPECT_EQ(n_best([](auto& o) {
              o.temperature = 1;
              o.top_k = 2'000'000'000;
            }),
            0);
}

}  // namespace
}  // namespace limpid
