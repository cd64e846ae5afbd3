// The samplers of a chain.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <ranges>
#include <utility>

#include "generate/portable_exp.h"
#include "generate/sampler_chain.h"
#include "limpid/error.hpp"

namespace limpid {
namespace {

// Each sampler is a function of the options, which SamplerOptions (limpid/sampler.hpp) documents
// with their sources.

// Makes recent tokens less likely: Keskar et al. 2019, section 4.1 (repeat), and OpenAI's presence
// and frequency penalties. The recent tokens are sorted, so that equal ones form runs whose lengths
// are the counts.
void penalties(const SamplerOptions& o, Candidates& candidates, const SamplerContext& context) {
  auto recent = context.history;
  if (o.repeat_last_n > 0)
    recent = recent.last(std::min(recent.size(), static_cast<size_t>(o.repeat_last_n)));
  std::vector<TokenId> sorted(recent.begin(), recent.end());
  std::ranges::sort(sorted);
  for (auto run = sorted.begin(); run != sorted.end();) {
    const auto next = std::upper_bound(run, sorted.end(), *run);
    if (Candidate* candidate = candidates.find(*run)) {
      float& logit = candidate->logit;
      // A negative logit is multiplied: dividing it would make the token more likely.
      logit = logit <= 0 ? logit * o.repeat_penalty : logit / o.repeat_penalty;
      logit -= static_cast<float>(next - run) * o.frequency_penalty + o.presence_penalty;
    }
    run = next;
  }
}

// Keeps logits within n standard deviations below the best. Mean and deviation are those of all
// candidates but the banned ones.
void top_n_sigma(const SamplerOptions& o, Candidates& candidates, const SamplerContext&) {
  if (candidates.size() <= 1) return;
  double sum = 0;
  int64_t count = 0;
  for (const Candidate& c : candidates.items()) {
    if (std::isfinite(c.logit)) sum += c.logit, ++count;
  }
  if (count == 0) return;
  const double mean = sum / static_cast<double>(count);
  double squares = 0;
  for (const Candidate& c : candidates.items()) {
    if (std::isfinite(c.logit)) squares += (c.logit - mean) * (c.logit - mean);
  }
  const double sigma = std::sqrt(squares / static_cast<double>(count));
  const double least = candidates.max_logit() - o.top_n_sigma * sigma;
  candidates.remove_if([&](const Candidate& c) { return c.logit < least; });
}

// Keeps the k best tokens.
void top_k(const SamplerOptions& o, Candidates& candidates, const SamplerContext&) {
  candidates.keep_best(o.top_k);
}

// Keeps the tokens whose information content -log p is nearest to the entropy, the content that is
// expected on average, until their probabilities exceed p. Tokens that are much more likely than
// expected can go too.
void typical(const SamplerOptions& o, Candidates& candidates, const SamplerContext&) {
  candidates.compute_probabilities();
  // The distance is |-log p_i - H| with H = -sum_j p_j log p_j. As log p_i = logit_i - log Z, the
  // log Z cancels and no logarithm is needed: |sum_j p_j logit_j - logit_i|.
  double expected = 0;
  for (const Candidate& c : candidates.items()) {
    if (c.probability > 0) expected += static_cast<double>(c.probability) * c.logit;
  }
  std::vector<Candidate> items(candidates.items().begin(), candidates.items().end());
  std::ranges::sort(items, {}, [expected](const Candidate& c) {
    return std::pair(std::abs(expected - c.logit), c.id);
  });
  double sum = 0;
  size_t n = 0;
  while (n < items.size()) {
    sum += items[n++].probability;
    if (sum > o.typical_p && n >= static_cast<size_t>(o.min_keep)) break;
  }
  items.resize(n);
  candidates.replace(std::move(items));
}

// Keeps the fewest best tokens whose probabilities reach p: for p = 0.9 and probabilities 0.6,
// 0.25, 0.1, 0.05, the first three.
void top_p(const SamplerOptions& o, Candidates& candidates, const SamplerContext&) {
  constexpr int64_t kFirstSort = 256;
  candidates.compute_probabilities();
  double sum = 0;
  int64_t n = 0;
  // Most of the vocabulary is never reached, so sort only as much as is needed: 256, 2048, …
  for (int64_t n_sorted = kFirstSort; n < candidates.size(); n_sorted *= 8) {
    candidates.sort_best(n_sorted);
    const int64_t end = std::min(n_sorted, candidates.size());
    while (n < end && (sum < o.top_p || n < std::max(o.min_keep, 1))) {
      sum += candidates.items()[static_cast<size_t>(n++)].probability;
    }
    if (n < end) break;
  }
  candidates.keep_first(n);
}

// Keeps tokens that are at least p times as probable as the best one. The ratio of two
// probabilities is e to the difference of their logits, so no softmax is needed.
void min_p(const SamplerOptions& o, Candidates& candidates, const SamplerContext&) {
  if (candidates.size() == 0) return;
  const double max = candidates.max_logit();
  const auto too_improbable = [&](const Candidate& c) {
    return portable_exp(c.logit - max) < o.min_p;
  };
  if (o.min_keep <= 1) return candidates.remove_if(too_improbable);
  candidates.sort();
  const auto items = candidates.items();
  const auto first_bad = std::ranges::find_if(items, too_improbable);
  candidates.keep_first(std::max<int64_t>(first_bad - items.begin(), o.min_keep));
}

// "Exclude top choices": with some probability, drops all tokens above the threshold except the
// least probable of them. Tokens further down, still good, get a chance. For a threshold of 0.1 and
// probabilities 0.5, 0.3, 0.15, 0.05, the first two go. A banned token is not a choice, whatever
// the threshold.
void xtc(const SamplerOptions& o, Candidates& candidates, const SamplerContext& context) {
  constexpr uint32_t kStream = 1;
  if (candidates.size() < 2) return;
  if (context.uniform(kStream) > o.xtc_probability) return;
  candidates.sort();
  candidates.compute_probabilities();
  const auto items = candidates.items();
  const auto below = std::ranges::find_if(items, [&](const Candidate& c) {
    return c.probability < o.xtc_threshold || c.probability == 0;
  });
  const int64_t n_dropped = below - items.begin() - 1;
  if (n_dropped > 0 && candidates.size() - n_dropped >= o.min_keep)
    candidates.drop_first(n_dropped);
}

// Divides logits by the temperature: above 1 probabilities become more equal, below 1 less.
void temperature(const SamplerOptions& o, Candidates& candidates, const SamplerContext&) {
  for (Candidate& c : candidates.edit()) c.logit /= o.temperature;
}

struct NamedSampler {
  std::string_view name;
  bool (*is_on)(const SamplerOptions& o);
  void (*apply)(const SamplerOptions& o, Candidates& candidates, const SamplerContext& context);
};

constexpr NamedSampler kSamplers[] = {
    {"penalties",
     [](const SamplerOptions& o) {
       return o.repeat_last_n != 0 &&
              (o.repeat_penalty != 1 || o.presence_penalty != 0 || o.frequency_penalty != 0);
     },
     penalties},
    {"top_n_sigma", [](const SamplerOptions& o) { return o.top_n_sigma > 0; }, top_n_sigma},
    {"top_k", [](const SamplerOptions& o) { return o.top_k > 0; }, top_k},
    {"typ_p", [](const SamplerOptions& o) { return o.typical_p < 1; }, typical},
    {"top_p", [](const SamplerOptions& o) { return o.top_p < 1; }, top_p},
    {"min_p", [](const SamplerOptions& o) { return o.min_p > 0; }, min_p},
    {"xtc",
     [](const SamplerOptions& o) { return o.xtc_probability > 0 && o.xtc_threshold <= 0.5F; }, xtc},
    {"temperature", [](const SamplerOptions& o) { return o.temperature != 1; }, temperature},
};

class BuiltInSampler : public Sampler {
 public:
  BuiltInSampler(const NamedSampler& named, const SamplerOptions& options)
      : named_(named), options_(options) {}
  std::string_view name() const override { return named_.name; }
  void apply(Candidates& candidates, const SamplerContext& context) override {
    named_.apply(options_, candidates, context);
  }

 private:
  NamedSampler named_;
  SamplerOptions options_;
};

}  // namespace

std::shared_ptr<Sampler> make_sampler(std::string_view name, const SamplerOptions& options) {
  if (name == "typical") name = "typ_p";
  if (name == "temp") name = "temperature";
  for (const NamedSampler& named : kSamplers) {
    if (named.name == name)
      return named.is_on(options) ? std::make_shared<BuiltInSampler>(named, options) : nullptr;
  }
  throw ArgumentError(
      fmt::format("[sampler] unknown sampler '{}'; the samplers are {}", name,
                  fmt::join(kSamplers | std::views::transform(&NamedSampler::name), ", ")));
}

}  // namespace limpid
