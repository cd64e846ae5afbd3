// The sum of the gradients of a step's micro-batches.
//
// One order of addition: each micro-batch's gradient is a sum of its own, and these are added in
// order of the micro-batches, ((g0 + g1) + g2) + …, wherever each was computed. With N ranks, round
// i of a step computes micro-batches i N to i N + N - 1, one on each rank. So a step has the same
// bits on one process and on any number of ranks that divides its micro-batches.
//
// Each rank adds its own share of every tensor, and only that share of a running sum is kept; the
// last round gathers the shares, in the memory of the gradients. One micro-batch on one process
// needs neither a sum nor memory for it.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <vector>

#include "base/thread_pool.h"
#include "train/parameters.h"
#include "train/ranks.h"

namespace limpid {

class GradientSum {
 public:
  // The parameters must outlive the sum, and their memory must stay. Throws ArgumentError unless
  // the number of micro-batches is a multiple of the number of ranks.
  GradientSum(std::span<Parameter> parameters, int64_t n_micro_batches,
              std::shared_ptr<Ranks> ranks, ThreadPool& pool);

  // Begins a round. The backward pass of the round's micro-batch follows, and overwrites all
  // gradients.
  void begin_round(int64_t round);
  // Call when the backward pass has finished the gradients of block `first_block` and of all later
  // blocks. Their exchange between the ranks begins while the backward pass continues.
  void complete(int64_t first_block);
  // Call after the backward pass. After the last round the parameters hold the sum.
  void finish_round();

 private:
  struct Entry {
    std::span<float> gradient;
    int64_t block;               // -1: before the first block; n_layers: after the last block
    Ranks::Share share;          // that this rank adds
    std::vector<float> total{};  // of the share, over rounds; empty when there is one round
    // While the ranks exchange it.
    std::vector<float> received{};
    int ticket = 0;
  };
  bool is_needed() const { return n_rounds_ * ranks_->size() > 1; }
  bool last_round() const { return round_ == n_rounds_ - 1; }
  void start(Entry& entry);
  void add(Entry& entry);
  // Adds the results of the oldest exchanges that are complete. Waits until at most `n_unfinished`
  // exchanges remain.
  void advance(size_t n_unfinished);

  std::vector<Entry> entries_;  // in the order in which the backward pass finishes them
  std::shared_ptr<Ranks> ranks_;
  ThreadPool& pool_;
  int64_t n_rounds_;
  int64_t round_ = 0;
  size_t next_ = 0;                        // entry that is not complete
  std::deque<Entry*> scatters_;            // exchanges that have begun and are not added
  std::deque<Entry*> gathers_;             // sums that are not gathered
  std::vector<std::vector<float>> spare_;  // memory for what is received
};

}  // namespace limpid
