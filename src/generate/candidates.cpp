// Candidates and SamplerContext of limpid/sampler.hpp: selection, sorting, softmax, random numbers.
#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "base/check.h"
#include "base/philox.h"
#include "generate/portable_exp.h"
#include "limpid/sampler.hpp"

namespace limpid {
namespace {

// The order of candidates. Equal logits are ordered by id, so the order is unique.
bool better(const Candidate& a, const Candidate& b) {
  return a.logit > b.logit || (a.logit == b.logit && a.id < b.id);
}

// Up to this many, a heap of the best (std::partial_sort) is faster than a partition
// (std::nth_element): most of the vocabulary then costs one comparison each.
constexpr int64_t kHeapSelection = 1024;

[[noreturn]] void throw_not_finite(int64_t id, float logit) {
  throw ArgumentError(fmt::format(
      "[sampler] the logit of token {} is {}: the model's weights or the logits given are damaged",
      id, logit));
}

[[noreturn]] void throw_not_finite(std::span<const float> logits) {
  const auto bad = std::ranges::find_if_not(logits, [](float x) { return std::isfinite(x); });
  throw_not_finite(bad - logits.begin(), *bad);
}

// What decides whether a block of logits must be looked at one by one.
struct BlockSummary {
  float largest;
  bool all_finite;
};

// On integers, because compilers turn a loop of integer maxima into vector instructions, and must
// keep the order of float comparisons. An IEEE float has its sign on top and is ordered like an
// integer below it, so inverting the lower bits of negative ones gives the order of the floats. The
// exponent of NaN and infinity is all ones.
BlockSummary summarize(std::span<const float> logits) {
  constexpr int32_t kExponent = 0x7F800000;
  constexpr int32_t kAllButSign = 0x7FFFFFFF;
  int32_t largest = std::numeric_limits<int32_t>::min();
  int32_t largest_exponent = 0;
  for (const float logit : logits) {
    const auto bits = std::bit_cast<int32_t>(logit);
    largest = std::max(largest, bits ^ (bits >> 31 & kAllButSign));
    largest_exponent = std::max(largest_exponent, bits & kExponent);
  }
  return {std::bit_cast<float>(largest ^ (largest >> 31 & kAllButSign)),
          largest_exponent != kExponent};
}

}  // namespace

void Candidates::assign(std::span<const float> logits) {
  items_.resize(logits.size());
  bool all_finite = true;
  for (size_t i = 0; i < logits.size(); ++i) {
    items_[i] = {static_cast<TokenId>(i), logits[i], 0};
    all_finite &= std::isfinite(logits[i]);
  }
  if (!all_finite) throw_not_finite(logits);
  n_sorted_ = 0;
  complete_ = true;
  probabilities_known_ = false;
}

// A heap keeps the best n so far, with the worst of them in front. Most blocks of a vocabulary have
// no logit above it. An equal logit comes too late: of equal ones the lowest id is better.
void Candidates::assign_best(std::span<const float> logits, int64_t n) {
  constexpr size_t kBlock = 64;
  if (n < 1 || n > kHeapSelection || n >= std::ssize(logits)) {
    assign(logits);
    return keep_best(n);
  }
  items_.clear();
  for (size_t begin = 0; begin < logits.size(); begin += kBlock) {
    const auto block = logits.subspan(begin, std::min(kBlock, logits.size() - begin));
    const auto [largest, all_finite] = summarize(block);
    if (!all_finite) throw_not_finite(logits);
    if (size() == n && largest <= items_.front().logit) continue;
    for (size_t i = 0; i < block.size(); ++i) {
      if (size() == n && block[i] <= items_.front().logit) continue;
      if (size() == n) {
        std::pop_heap(items_.begin(), items_.end(), better);
        items_.pop_back();
      }
      items_.push_back({static_cast<TokenId>(begin + i), block[i], 0});
      std::push_heap(items_.begin(), items_.end(), better);
    }
  }
  std::sort_heap(items_.begin(), items_.end(), better);
  set_removed(size());
}

void Candidates::assign_best(std::span<const Candidate> best) {
  if (!best.empty() && !std::isfinite(best.front().logit))
    throw_not_finite(best.front().id, best.front().logit);
  items_.assign(best.begin(), best.end());
  set_removed(size());
}

// Any logit may change, so nothing that was computed from them remains valid.
std::span<Candidate> Candidates::edit() {
  n_sorted_ = 0;
  probabilities_known_ = false;
  return items_;
}

// While no candidate has been removed or moved, a candidate's index is its id.
Candidate* Candidates::find(TokenId id) {
  edit();
  if (complete_ && id >= 0 && id < size()) {
    Candidate& item = items_[static_cast<size_t>(id)];
    if (item.id == id) return &item;  // otherwise edit() was used to move entries
  }
  const auto found = std::ranges::find(items_, id, &Candidate::id);
  return found == items_.end() ? nullptr : &*found;
}

// The first n_sorted_ candidates are already the best, so only the others are looked at.
void Candidates::sort_best(int64_t n) {
  n = std::clamp<int64_t>(n, 0, size());
  if (n <= n_sorted_) return;
  const auto begin = items_.begin() + n_sorted_;
  const auto middle = items_.begin() + n;
  if (n < size() && n > kHeapSelection) {
    std::nth_element(begin, middle, items_.end(), better);
    std::sort(begin, middle, better);
  } else {
    std::partial_sort(begin, middle, items_.end(), better);
  }
  n_sorted_ = n;
  complete_ = false;
}

void Candidates::keep_best(int64_t n) {
  sort_best(n);
  keep_first(n);
}

void Candidates::keep_first(int64_t n) {
  if (n >= size()) return;
  items_.resize(static_cast<size_t>(std::max<int64_t>(n, 0)));
  set_removed(std::min(n_sorted_, size()));
}

void Candidates::drop_first(int64_t n) {
  n = std::clamp<int64_t>(n, 0, size());
  if (n == 0) return;
  items_.erase(items_.begin(), items_.begin() + n);
  set_removed(std::max<int64_t>(n_sorted_ - n, 0));
}

void Candidates::replace(std::vector<Candidate> items) {
  items_ = std::move(items);
  set_removed(0);
}

float Candidates::max_logit() const {
  float best = -std::numeric_limits<float>::infinity();
  if (n_sorted_ > 0) return items_.front().logit;
  for (const Candidate& c : items_) best = std::max(best, c.logit);
  return best;
}

// Softmax. The largest logit is subtracted first, so that no exponential overflows.
void Candidates::compute_probabilities() {
  if (probabilities_known_) return;
  const float max = max_logit();
  // Not finite when no candidate is left, all are banned, or a sampler wrote NaN or infinity.
  LIMPID_CHECK(ArgumentError, std::isfinite(max),
               "[sampler] no token is left to choose from: bias, ignore_eos or a sampler banned "
               "all of them");
  double sum = 0;
  std::vector<double> weights(items_.size());
  for (size_t i = 0; i < items_.size(); ++i) {
    weights[i] = portable_exp(static_cast<double>(items_[i].logit) - static_cast<double>(max));
    sum += weights[i];
  }
  LIMPID_CHECK(ArgumentError, std::isfinite(sum),
               "[sampler] a sampler set a logit to NaN or infinity");
  for (size_t i = 0; i < items_.size(); ++i)
    items_[i].probability = static_cast<float>(weights[i] / sum);
  probabilities_known_ = true;
}

// Philox maps (position, stream) under the key `seed` to four random words. 53 bits of the first
// two become a double in [0, 1): a double holds 53 bits exactly.
double SamplerContext::uniform(uint32_t stream) const {
  const auto at = static_cast<uint64_t>(position());
  const auto words = philox4x32(at, stream, seed);
  const uint64_t bits = (uint64_t{words[0]} << 32U | words[1]) >> 11U;
  return static_cast<double>(bits) * 0x1p-53;
}

}  // namespace limpid
