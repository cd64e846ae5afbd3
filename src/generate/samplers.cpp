#include "generate/samplers.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "generate/portable_exp.h"

namespace limpid {
namespace {

// Makes recent tokens less likely: Keskar et al. 2019, section 4.1 (repeat), and OpenAI's presence
// and frequency penalties. The recent tokens are sorted, so that equal ones form runs whose lengths
// are the counts.
class Penalties : public Sampler {
 public:
  Penalties(int32_t last_n, float repeat, float presence, float frequency)
      : last_n_(last_n), repeat_(repeat), presence_(presence), frequency_(frequency) {}
  std::string_view name() const override { return "penalties"; }

  void apply(Candidates& candidates, const SamplerContext& context) override {
    if (last_n_ == 0 || (repeat_ == 1.0F && presence_ == 0.0F && frequency_ == 0.0F)) return;
    auto recent = context.history;
    if (last_n_ > 0 && recent.size() > static_cast<size_t>(last_n_))
      recent = recent.last(static_cast<size_t>(last_n_));
    recent_.assign(recent.begin(), recent.end());
    std::sort(recent_.begin(), recent_.end());
    for (auto run = recent_.begin(); run != recent_.end();) {
      const auto next = std::upper_bound(run, recent_.end(), *run);
      if (Candidate* candidate = candidates.find(*run))
        penalize(*candidate, static_cast<float>(next - run));
      run = next;
    }
  }

 private:
  void penalize(Candidate& candidate, float count) const {
    // A negative logit is multiplied: dividing it would make the token more likely.
    candidate.logit = candidate.logit <= 0 ? candidate.logit * repeat_ : candidate.logit / repeat_;
    candidate.logit -= count * frequency_ + presence_;
  }

  int32_t last_n_;
  float repeat_, presence_, frequency_;
  std::vector<TokenId> recent_;
};

// Keeps logits within n standard deviations below the best. Mean and deviation are those of all
// candidates but the banned ones.
class TopNSigma : public Sampler {
 public:
  explicit TopNSigma(float n) : n_(n) {}
  std::string_view name() const override { return "top_n_sigma"; }

  void apply(Candidates& candidates, const SamplerContext&) override {
    if (n_ <= 0 || candidates.size() <= 1) return;
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
    const double least = candidates.max_logit() - n_ * sigma;
    candidates.remove_if([&](const Candidate& c) { return c.logit < least; });
  }

 private:
  float n_;
};

// Keeps the k best tokens.
class TopK : public Sampler {
 public:
  explicit TopK(int32_t k) : k_(k) {}
  std::string_view name() const override { return "top_k"; }
  void apply(Candidates& candidates, const SamplerContext&) override {
    if (k_ > 0) candidates.keep_best(k_);
  }

 private:
  int32_t k_;
};

// Keeps the tokens whose information content -log p is nearest to the entropy, the content that is
// expected on average, until their probabilities exceed p. Tokens that are much more likely than
// expected can go too.
class Typical : public Sampler {
 public:
  Typical(float p, int32_t min_keep) : p_(p), min_keep_(min_keep) {}
  std::string_view name() const override { return "typ_p"; }

  void apply(Candidates& candidates, const SamplerContext&) override {
    if (p_ >= 1.0F) return;
    candidates.compute_probabilities();
    // The distance is |-log p_i - H| with H = -sum_j p_j log p_j. As log p_i = logit_i - log Z, the
    // log Z cancels and no logarithm is needed: |sum_j p_j logit_j - logit_i|.
    double expected = 0;
    for (const Candidate& c : candidates.items()) {
      if (c.probability > 0) expected += static_cast<double>(c.probability) * c.logit;
    }
    const auto distance = [expected](const Candidate& c) { return std::abs(expected - c.logit); };
    std::vector<Candidate> items(candidates.items().begin(), candidates.items().end());
    std::sort(items.begin(), items.end(), [&](const Candidate& a, const Candidate& b) {
      return std::pair(distance(a), a.id) < std::pair(distance(b), b.id);
    });
    double sum = 0;
    size_t n = 0;
    while (n < items.size()) {
      sum += items[n++].probability;
      if (sum > p_ && n >= static_cast<size_t>(std::max(min_keep_, 0))) break;
    }
    items.resize(n);
    candidates.replace(std::move(items));
  }

 private:
  float p_;
  int32_t min_keep_;
};

// Keeps the fewest best tokens whose probabilities reach p: for p = 0.9 and probabilities 0.6,
// 0.25, 0.1, 0.05, the first three.
class TopP : public Sampler {
 public:
  static constexpr int64_t kFirstSort = 256;
  TopP(float p, int32_t min_keep) : p_(p), min_keep_(min_keep) {}
  std::string_view name() const override { return "top_p"; }

  void apply(Candidates& candidates, const SamplerContext&) override {
    if (p_ >= 1.0F) return;
    candidates.compute_probabilities();
    double sum = 0;
    int64_t n = 0;
    // Most of the vocabulary is never reached, so sort only as much as is needed: 256, 2048, …
    for (int64_t n_sorted = kFirstSort; n < candidates.size(); n_sorted *= 8) {
      candidates.sort_best(n_sorted);
      const int64_t end = std::min(n_sorted, candidates.size());
      while (n < end && (sum < p_ || n < std::max(min_keep_, 1))) {
        sum += candidates.items()[static_cast<size_t>(n++)].probability;
      }
      if (n < end) break;
    }
    candidates.keep_first(n);
  }

 private:
  float p_;
  int32_t min_keep_;
};

// Keeps tokens that are at least p times as probable as the best one. The ratio of two
// probabilities is e to the difference of their logits, so no softmax is needed.
class MinP : public Sampler {
 public:
  MinP(float p, int32_t min_keep) : p_(p), min_keep_(min_keep) {}
  std::string_view name() const override { return "min_p"; }

  void apply(Candidates& candidates, const SamplerContext&) override {
    if (p_ <= 0 || candidates.size() == 0) return;
    const double max = candidates.max_logit();
    const auto too_improbable = [&](const Candidate& c) {
      return portable_exp(c.logit - max) < p_;
    };
    if (min_keep_ <= 1) {
      candidates.remove_if(too_improbable);
      return;
    }
    candidates.sort();
    const auto items = candidates.items();
    const auto first_bad = std::find_if(items.begin(), items.end(), too_improbable);
    candidates.keep_first(std::max<int64_t>(first_bad - items.begin(), min_keep_));
  }

 private:
  float p_;
  int32_t min_keep_;
};

// "Exclude top choices": with some probability, drops all tokens above the threshold except the
// least probable of them. Tokens further down, still good, get a chance. For a threshold of 0.1 and
// probabilities 0.5, 0.3, 0.15, 0.05, the first two go.
class Xtc : public Sampler {
 public:
  static constexpr uint32_t kStream = 1;
  Xtc(float probability, float threshold, int32_t min_keep)
      : probability_(probability), threshold_(threshold), min_keep_(min_keep) {}
  std::string_view name() const override { return "xtc"; }

  void apply(Candidates& candidates, const SamplerContext& context) override {
    if (probability_ <= 0 || threshold_ > 0.5F || candidates.size() < 2) return;
    if (context.uniform(kStream) > probability_) return;
    candidates.sort();
    candidates.compute_probabilities();
    int64_t n_above = 0;
    for (const Candidate& c : candidates.items()) {
      if (c.probability < threshold_) break;
      ++n_above;
    }
    const int64_t n_dropped = n_above - 1;
    if (n_dropped > 0 && candidates.size() - n_dropped >= min_keep_)
      candidates.drop_first(n_dropped);
  }

 private:
  float probability_, threshold_;
  int32_t min_keep_;
};

// Divides logits by the temperature: above 1 probabilities become more equal, below 1 less. At 0
// and below only the best candidate is left.
class Temperature : public Sampler {
 public:
  explicit Temperature(float temperature) : temperature_(temperature) {}
  std::string_view name() const override { return "temperature"; }
  void apply(Candidates& candidates, const SamplerContext&) override {
    if (temperature_ <= 0) {
      candidates.keep_best(1);
    } else if (temperature_ != 1.0F) {
      for (Candidate& c : candidates.edit()) c.logit /= temperature_;
    }
  }

 private:
  float temperature_;
};

}  // namespace

std::shared_ptr<Sampler> make_penalties(int32_t last_n, float repeat, float presence,
                                        float frequency) {
  return std::make_shared<Penalties>(last_n, repeat, presence, frequency);
}
std::shared_ptr<Sampler> make_top_n_sigma(float n) { return std::make_shared<TopNSigma>(n); }
std::shared_ptr<Sampler> make_top_k(int32_t k) { return std::make_shared<TopK>(k); }
std::shared_ptr<Sampler> make_typical(float p, int32_t min_keep) {
  return std::make_shared<Typical>(p, min_keep);
}
std::shared_ptr<Sampler> make_top_p(float p, int32_t min_keep) {
  return std::make_shared<TopP>(p, min_keep);
}
std::shared_ptr<Sampler> make_min_p(float p, int32_t min_keep) {
  return std::make_shared<MinP>(p, min_keep);
}
std::shared_ptr<Sampler> make_xtc(float probability, float threshold, int32_t min_keep) {
  return std::make_shared<Xtc>(probability, threshold, min_keep);
}
std::shared_ptr<Sampler> make_temperature(float temperature) {
  return std::make_shared<Temperature>(temperature);
}

}  // namespace limpid
