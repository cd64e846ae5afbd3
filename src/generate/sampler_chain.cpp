#include "generate/sampler_chain.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/check.h"
#include "base/text.h"

namespace limpid {
namespace {

// The stream of random numbers (SamplerContext::uniform) that draws the token.
constexpr uint32_t kDrawStream = 0;
// Logits divided by a smaller temperature could leave the range of a float.
constexpr float kLeastTemperature = 1e-6F;
// The token of a bias or a penalty is searched for among the best candidates; among all of them its
// id is its place. So beyond this many comparisons it costs less to take all.
constexpr int64_t kMostComparisons = 1 << 16;

uint64_t random_seed() {
  // 32 bits, short enough for a user to type again.
  return std::random_device{}() & 0xFFFFFFFFU;
}

void check_number(std::string_view option, float value, float least, float most) {
  LIMPID_CHECK(ArgumentError, value >= least && value <= most,
               "[sampler] {} is {}, must be between {} and {}", option, value, least, most);
}

// The ranges of all options. NaN fails every comparison, so it is refused too.
void check_options(const SamplerOptions& o) {
  constexpr float kMax = std::numeric_limits<float>::max();
  LIMPID_CHECK(ArgumentError, o.seed >= -1, "[sampler] seed is {}, must be -1 (random) or more",
               o.seed);
  check_number("temperature", o.temperature, -kMax, kMax);
  check_number("top_p", o.top_p, 0, kMax);
  check_number("min_p", o.min_p, -kMax, 1);
  check_number("typical_p", o.typical_p, 0, kMax);
  check_number("top_n_sigma", o.top_n_sigma, -kMax, kMax);
  check_number("xtc_probability", o.xtc_probability, 0, 1);
  check_number("xtc_threshold", o.xtc_threshold, 0, kMax);
  check_number("repeat_penalty", o.repeat_penalty, 1e-3F, 1e3F);
  check_number("presence_penalty", o.presence_penalty, -kMax, kMax);
  check_number("frequency_penalty", o.frequency_penalty, -kMax, kMax);
  LIMPID_CHECK(ArgumentError, o.repeat_last_n >= -1,
               "[sampler] repeat_last_n is {}, must be -1 (all) or more", o.repeat_last_n);
  LIMPID_CHECK(ArgumentError, o.min_keep >= 0, "[sampler] min_keep is {}, must be 0 or more",
               o.min_keep);
}

// Sorting needs an order, and NaN has none. A custom sampler may have written one.
void check_logits(const Sampler& sampler, const Candidates& candidates) {
  for (const Candidate& c : candidates.items()) {
    LIMPID_CHECK(ArgumentError, c.logit < std::numeric_limits<float>::infinity(),
                 "[sampler] sampler '{}' set the logit of token {} to {}", sampler.name(), c.id,
                 c.logit);
  }
}

}  // namespace

// A custom sampler may have the name of a built-in one, and then takes its place.
SamplerChain::SamplerChain(const SamplerOptions& options, int64_t vocab_size,
                           std::span<const TokenId> stop_ids)
    : seed_(options.seed < 0 ? random_seed() : static_cast<uint64_t>(options.seed)),
      greedy_(options.temperature < kLeastTemperature),
      bias_(options.logit_bias),
      stop_ids_(stop_ids.begin(), stop_ids.end()) {
  check_options(options);
  check_bias(vocab_size);
  if (options.random_numbers == RandomNumbers::kMersenneTwister)
    twister_.emplace(static_cast<uint32_t>(seed_));
  if (options.ignore_eos) {
    for (const TokenId id : stop_ids) {
      LIMPID_CHECK(ArgumentError, id >= 0 && id < vocab_size,
                   "[sampler] ignore_eos bans stop id {}, the vocabulary has tokens 0 to {}", id,
                   vocab_size - 1);
      bias_.push_back({id, -std::numeric_limits<float>::infinity()});
    }
  }

  const auto names = split_list(options.order, ';');
  std::vector<std::shared_ptr<Sampler>> custom;
  for (const auto& given : options.custom) {
    LIMPID_CHECK(ArgumentError, given != nullptr, "[sampler] a custom sampler is null");
    LIMPID_CHECK(ArgumentError,
                 std::ranges::find(custom, given->name(), &Sampler::name) == custom.end(),
                 "[sampler] two custom samplers are named '{}'", given->name());
    auto own = given->clone();
    custom.push_back(own != nullptr ? own : given);
    if (std::ranges::find(names, given->name()) == names.end()) samplers_.push_back(custom.back());
  }
  for (const auto& name : names) {
    const auto found = std::ranges::find(custom, name, &Sampler::name);
    const bool is_custom = found != custom.end();
    auto sampler = is_custom ? *found : make_sampler(name, options);
    if (!sampler) continue;
    if (!greedy_ || is_custom || sampler->name() == "penalties")
      samplers_.push_back(std::move(sampler));
  }
  n_best_ = n_deciding(options);
}

// If nothing but biases and penalties changes the logits before only the best are kept, the others
// need not become candidates at all. Lowering the logits of m tokens moves at most m others up, so
// the new n best are among the old n + m best. Example: a greedy choice with a penalty of the last
// 64 tokens is among the best 65 logits.
int64_t SamplerChain::n_deciding(const SamplerOptions& options) const {
  auto next = samplers_.begin();
  const auto is_next = [&](std::string_view name) {
    return next != samplers_.end() && (*next)->name() == name &&
           std::ranges::find(options.custom, name, &Sampler::name) == options.custom.end();
  };
  bool only_lowers =
      std::ranges::all_of(bias_, [](const LogitBias& bias) { return bias.bias <= 0; });
  int64_t n_lowered = std::ssize(bias_);
  if (is_next("penalties")) {
    only_lowers &= options.repeat_penalty >= 1 && options.presence_penalty >= 0 &&
                   options.frequency_penalty >= 0 && options.repeat_last_n > 0;
    n_lowered += options.repeat_last_n;
    ++next;
  }
  int64_t n_kept = 0;
  if (greedy_ && next == samplers_.end()) n_kept = 1;
  if (is_next("top_k")) n_kept = options.top_k;
  const int64_t n = n_kept + n_lowered;
  return n_kept > 0 && only_lowers && n_lowered <= kMostComparisons / n ? n : 0;
}

void SamplerChain::add_bias() {
  for (const auto& [id, bias] : bias_) {
    if (Candidate* candidate = candidates_.find(id)) candidate->logit += bias;
  }
}

// A sampler, such as a grammar, may leave only tokens that end the text. If they are banned, the
// choice is between the end and an error that loses the text.
void SamplerChain::allow_end() {
  constexpr float kBanned = -std::numeric_limits<float>::infinity();
  const auto n_left = static_cast<size_t>(candidates_.size());
  if (bias_.empty() || n_left > stop_ids_.size() || candidates_.max_logit() != kBanned) return;
  for (const TokenId id : stop_ids_) {
    if (Candidate* candidate = candidates_.find(id)) candidate->logit = 0;
  }
}

void SamplerChain::check_bias(int64_t vocab_size) const {
  for (const auto& [id, bias] : bias_) {
    LIMPID_CHECK(ArgumentError, id >= 0 && id < vocab_size,
                 "[sampler] logit_bias names token {}, the vocabulary has tokens 0 to {}", id,
                 vocab_size - 1);
    LIMPID_CHECK(ArgumentError, bias < std::numeric_limits<float>::infinity(),
                 "[sampler] the logit_bias of token {} is {}, must be a number or -infinity", id,
                 bias);
  }
}

TokenId SamplerChain::sample(std::span<const float> logits, std::span<const TokenId> history) {
  if (n_best_ == 0) {
    candidates_.assign(logits);
  } else {
    candidates_.assign_best(logits, n_best_);
  }
  return choose(history);
}

// Candidates beyond the n_best() best are dropped first: when a bias or a penalty lowers the best
// ones, no token that sample() would not see may move up.
TokenId SamplerChain::sample_best(std::span<const Candidate> best,
                                  std::span<const TokenId> history) {
  candidates_.assign_best(best);
  candidates_.keep_best(n_best_);
  return choose(history);
}

TokenId SamplerChain::choose(std::span<const TokenId> history) {
  const SamplerContext context{history, seed_};
  add_bias();
  for (const auto& sampler : samplers_) {
    sampler->apply(candidates_, context);
    allow_end();
    check_logits(*sampler, candidates_);
  }
  if (greedy_) candidates_.keep_best(1);
  candidates_.compute_probabilities();

  const TokenId token = draw(next_uniform(context));
  // `order` may name a sampler twice.
  for (auto at = samplers_.begin(); at != samplers_.end(); ++at) {
    if (std::find(samplers_.begin(), at, *at) == at) (*at)->accept(token);
  }
  return token;
}

// The number that draws the next token. The Mersenne Twister's is what
// std::uniform_real_distribution<double> makes of two of its words in libstdc++, the low word
// first.
double SamplerChain::next_uniform(const SamplerContext& context) {
  if (!twister_) return context.uniform(kDrawStream);
  const auto low = static_cast<double>((*twister_)());
  const auto high = static_cast<double>((*twister_)());
  return std::min((low + high * 0x1p32) * 0x1p-64, std::nextafter(1.0, 0.0));
}

// The draw: a number u in [0, 1) walks through the candidates and subtracts their probabilities;
// the token at which it becomes negative is chosen. With probabilities 0.5, 0.3, 0.2 and u = 0.6,
// the rest is 0.1 and then -0.2: the second token.
TokenId SamplerChain::draw(double u) const {
  TokenId last_possible = -1;
  for (const Candidate& c : candidates_.items()) {
    if (c.probability <= 0) continue;
    last_possible = c.id;
    u -= c.probability;
    if (u < 0) break;
  }
  return last_possible;  // after rounding a rest may remain; the last candidate gets it
}

}  // namespace limpid
