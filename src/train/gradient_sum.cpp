#include "train/gradient_sum.h"

#include <algorithm>
#include <charconv>
#include <limits>
#include <string_view>
#include <utility>

#include "base/check.h"

namespace limpid {
namespace {

constexpr int64_t kElementsPerRange = 1 << 15;
// Exchanges that go on at the same time: each needs memory for what it receives.
constexpr size_t kExchangesAtOnce = 4;

// The block that a tensor belongs to: "blk.3.ffn_up.weight" to 3. Tensors that the forward pass
// uses after the blocks have the largest number. Everything else may be used by the first op, so
// its gradient is the last to be complete: -1. (Tied embeddings are an example.)
int64_t block_of(std::string_view name) {
  constexpr std::string_view kBlock = "blk.";
  int64_t block = -1;
  if (name.starts_with(kBlock)) {
    std::from_chars(name.data() + kBlock.size(), name.data() + name.size(), block);
  } else if (name.starts_with("output")) {
    block = std::numeric_limits<int64_t>::max();
  }
  return block;
}

}  // namespace

GradientSum::GradientSum(std::span<Parameter> parameters, int64_t n_micro_batches,
                         std::shared_ptr<Ranks> ranks, ThreadPool& pool)
    : ranks_(std::move(ranks)), pool_(pool), n_rounds_(n_micro_batches / ranks_->size()) {
  LIMPID_CHECK(ArgumentError, n_micro_batches % ranks_->size() == 0,
               "{} processes cannot share the {} batches of a step evenly", ranks_->size(),
               n_micro_batches);
  for (Parameter& parameter : parameters) {
    if (!parameter.learns) continue;
    const std::span<float> gradient = parameter.gradient.f32();
    const Ranks::Share share = ranks_->share(std::ssize(gradient), ranks_->rank());
    entries_.push_back({gradient, block_of(parameter.name), share});
    if (n_rounds_ > 1) entries_.back().total.resize(static_cast<size_t>(share.n));
  }
  std::ranges::stable_sort(entries_, std::ranges::greater(), &Entry::block);
}

void GradientSum::begin_round(int64_t round) {
  round_ = round;
  next_ = 0;
}

void GradientSum::complete(int64_t first_block) {
  if (!is_needed()) return;
  for (; next_ < entries_.size() && entries_[next_].block >= first_block; ++next_)
    start(entries_[next_]);
  advance(kExchangesAtOnce);
}

void GradientSum::finish_round() {
  complete(-1);
  advance(0);
}

void GradientSum::start(Entry& entry) {
  advance(kExchangesAtOnce - 1);
  if (ranks_->size() > 1) {
    if (!spare_.empty()) {
      entry.received = std::move(spare_.back());
      spare_.pop_back();
    }
    entry.received.resize(static_cast<size_t>(entry.share.n * ranks_->size()));
  }
  entry.ticket = ranks_->start_scatter(entry.gradient, entry.received);
  scatters_.push_back(&entry);
}

// All ranks start the scatters in the same order, and the gathers too.
void GradientSum::advance(size_t n_unfinished) {
  const auto ends = [&](const std::deque<Entry*>& exchanges) {
    return !exchanges.empty() && (scatters_.size() + gathers_.size() > n_unfinished ||
                                  ranks_->done(exchanges.front()->ticket));
  };
  for (;;) {
    if (ends(gathers_)) {
      ranks_->wait(gathers_.front()->ticket);
      gathers_.pop_front();
    } else if (ends(scatters_)) {
      Entry& entry = *scatters_.front();
      ranks_->wait(entry.ticket);
      add(entry);
      scatters_.pop_front();
      if (!last_round()) continue;
      entry.ticket = ranks_->start_gather(entry.gradient);
      gathers_.push_back(&entry);
    } else {
      return;
    }
  }
}

// total = total + g_0 + g_1 + … of the ranks, element by element and in this order. The first round
// begins with g_0; the last one leaves its result in the gradient.
void GradientSum::add(Entry& entry) {
  float* const own = entry.gradient.data() + entry.share.begin;
  const float* const received = ranks_->size() == 1 ? own : entry.received.data();
  float* const out = last_round() ? own : entry.total.data();
  pool_.for_ranges(entry.share.n, kElementsPerRange, [&](int64_t begin, int64_t end, int) {
    for (int rank = 0; rank < ranks_->size(); ++rank) {
      const float* const g = received + rank * entry.share.n;
      if (rank == 0 && round_ == 0) {
        std::copy(g + begin, g + end, out + begin);
        continue;
      }
      const float* const before = rank == 0 ? entry.total.data() : out;
      for (int64_t i = begin; i < end; ++i) out[i] = before[i] + g[i];
    }
  });
  if (!entry.received.empty()) spare_.push_back(std::exchange(entry.received, {}));
}

}  // namespace limpid
