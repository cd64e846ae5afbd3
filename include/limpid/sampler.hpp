// From logits to a token: the options of the sampler chain, and the interface for your own
// samplers.
//
//   class NoLongTokens : public limpid::Sampler {
//    public:
//     std::string_view name() const override { return "no_long_tokens"; }
//     void apply(limpid::Candidates& candidates, const limpid::SamplerContext&) override {
//       candidates.remove_if([](const limpid::Candidate& c) { return c.id > 50'000; });
//     }
//   };
//   options.sampler.custom.push_back(std::make_shared<NoLongTokens>());
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace limpid {

using TokenId = int32_t;

// A token that may still be chosen.
struct Candidate {
  TokenId id = 0;
  float logit = 0;
  float probability = 0;  // valid after Candidates::compute_probabilities
};

// The tokens that may still be chosen. At first this is the whole vocabulary, in order of id. The
// class remembers how much of it is sorted and whether probabilities are known, so that samplers in
// a row do not repeat the work.
class Candidates {
 public:
  Candidates() = default;
  // Takes all of `logits` [vocab_size]. Throws ArgumentError, which names the first token whose
  // logit is NaN or infinite.
  void assign(std::span<const float> logits);
  // The same as assign() and keep_best(n), in one pass over the logits.
  void assign_best(std::span<const float> logits, int64_t n);
  // The same when only the best logits are known, best first. A logit that is not finite counts as
  // the best.
  void assign_best(std::span<const Candidate> best);

  std::span<const Candidate> items() const { return items_; }
  int64_t size() const { return static_cast<int64_t>(items_.size()); }
  // For changing logits. Sorting and probabilities are unknown afterwards. -infinity bans a token.
  std::span<Candidate> edit();
  // The entry of token `id`, or null if it was removed. As with edit(), its logit may be changed.
  Candidate* find(TokenId id);

  // Sorts, best first: by logit, then by lowest id. sort() sorts all; sort_best(n) puts the best
  // `n` first and the others, unsorted, after them; keep_best(n) drops the others.
  void sort() { sort_best(size()); }
  void sort_best(int64_t n);
  void keep_best(int64_t n);
  // Drops all but the first `n` in the present order.
  void keep_first(int64_t n);
  // Drops the first `n` in the present order.
  void drop_first(int64_t n);
  template <typename Predicate>
  void remove_if(Predicate predicate) {
    const bool sorted = n_sorted_ == size();
    std::erase_if(items_, predicate);
    set_removed(sorted ? size() : 0);
  }
  // Replaces the candidates by others, or by the same ones in another order.
  void replace(std::vector<Candidate> items);

  // Softmax over the candidates, in f64 and with an exponential that rounds alike on every machine.
  // Does not reorder. Throws ArgumentError when no candidate is left.
  void compute_probabilities();
  float max_logit() const;  // -infinity when no candidate is left

 private:
  // Call after candidates were removed: `n_sorted` of those that remain are sorted.
  void set_removed(int64_t n_sorted) {
    n_sorted_ = n_sorted;
    complete_ = probabilities_known_ = false;
  }

  std::vector<Candidate> items_;
  int64_t n_sorted_ = 0;   // this many at the front are the best, in order
  bool complete_ = false;  // items_[id].id == id, unless edit() was used to move entries
  bool probabilities_known_ = false;
};

// What a sampler may use besides the logits. `history` is the whole sequence, prompt included; the
// token being chosen gets position history.size().
struct SamplerContext {
  std::span<const TokenId> history;
  uint64_t seed = 0;

  int64_t position() const { return static_cast<int64_t>(history.size()); }
  // A number in [0, 1) that depends on (seed, position, stream) alone: Philox4x32-10 (Salmon et al.
  // 2011, "Parallel random numbers: as easy as 1, 2, 3"). A sequence therefore samples the same
  // tokens alone and in a batch. Stream 0 draws the token; your own samplers should use streams
  // from 1000 on.
  double uniform(uint32_t stream) const;
};

// One step of the chain. An object serves one sequence at a time.
class Sampler {
 public:
  virtual ~Sampler() = default;
  // For a sampler with a state: a new object in its initial state. Each sequence then gets one of
  // its own. Null, as here: the object has no state, and all sequences share it.
  virtual std::shared_ptr<Sampler> clone() const { return nullptr; }
  // The sequence now goes on with `token`, which the whole chain chose. Called once for each token
  // of the answer, a stopping one included; not for those of the prompt.
  virtual void accept(TokenId /*token*/) {}
  // The name in SamplerOptions::order.
  virtual std::string_view name() const = 0;
  // Removes candidates or changes their logits. At least one candidate must remain.
  virtual void apply(Candidates& candidates, const SamplerContext& context) = 0;
};

// A change of one token's logit before all samplers.
struct LogitBias {
  TokenId id = 0;
  // Added to the logit. -infinity bans the token, but not the end of the text when samplers leave
  // nothing else.
  float bias = 0;
};

// How the numbers that draw the tokens follow from the seed.
enum class RandomNumbers : uint8_t {
  // SamplerContext::uniform: each number depends on the seed and the position alone.
  kPhilox,
  // llama.cpp's: the Mersenne Twister MT19937 (Matsumoto and Nishimura 1998), seeded with the low
  // 32 bits of the seed for each answer; one number of 53 bits for each token. With the same seed
  // the text is then the same as llama.cpp's, as long as the logits of both programs lead to the
  // same choices.
  kMersenneTwister,
};

// Names and defaults are llama.cpp's.
struct SamplerOptions {
  int64_t seed = -1;  // 32 or 64 bits; -1: a random one (GenerationResult::seed has it)
  RandomNumbers random_numbers = RandomNumbers::kPhilox;
  float temperature = 0.8F;   // below 1e-6: greedy, see `order`
  int32_t top_k = 40;         // 0 or less: off
  float top_p = 0.95F;        // 1: off (Holtzman et al. 2020, arXiv:1904.09751)
  float min_p = 0.05F;        // 0: off (Nguyen et al. 2024, arXiv:2407.01082)
  float typical_p = 1.0F;     // 1: off (Meister et al. 2023, arXiv:2202.00666)
  float top_n_sigma = -1.0F;  // 0 or less: off (Tang et al. 2024, arXiv:2411.07641)
  // The probability that all tokens above the threshold are dropped except the least probable of
  // them. 0: off.
  float xtc_probability = 0.0F;
  float xtc_threshold = 0.1F;   // above 0.5: off
  int32_t repeat_last_n = 64;   // tokens that the penalties look at; 0: none, -1: all
  float repeat_penalty = 1.0F;  // 1: off (Keskar et al. 2019, arXiv:1909.05858)
  // Subtracted from the logit of a token that occurred: the presence penalty once, the frequency
  // penalty as many times as it did. 0: off.
  float presence_penalty = 0.0F;
  float frequency_penalty = 0.0F;
  int32_t min_keep = 0;  // top_p, min_p, typ_p and xtc leave at least this many
  std::vector<LogitBias> logit_bias{};
  bool ignore_eos = false;  // bans every token that would end the text, as a bias of -infinity does

  // The chain that runs after logit_bias. It may also name custom samplers. With temperature 0 the
  // chain is greedy: the token with the highest logit (of equal ones the lowest id) after bias,
  // penalties and custom samplers is taken, and the samplers that only remove tokens do not run.
  std::string order = "penalties;top_n_sigma;top_k;typ_p;top_p;min_p;xtc;temperature";
  // Custom samplers run where `order` names them, in place of a built-in one of the same name;
  // those that it does not name run before all others. Their names must differ.
  std::vector<std::shared_ptr<Sampler>> custom{};
};

}  // namespace limpid
