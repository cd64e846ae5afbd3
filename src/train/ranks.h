// The processes that train one model together. MPI calls their numbers ranks.
//
// Each rank holds the whole model and computes the gradients of its own micro-batches
// (data-parallel training). The gradients that they exchange are summed in order of the ranks, so
// that N ranks compute the same bits as one process that computes the micro-batches in turn.
//
// The methods below are collective: every rank calls the same ones in the same order.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

namespace limpid {

// A single process; mpi_ranks.h has several.
class Ranks {
 public:
  virtual ~Ranks() = default;

  virtual int rank() const { return 0; }  // rank 0 writes logs and checkpoints
  virtual int size() const { return 1; }
  virtual int n_on_this_machine() const { return 1; }
  // Threads for this rank, so that the ranks on this machine share the cores that they may use; 0:
  // as many as cores.
  virtual int n_threads() const { return 0; }

  // Returns the text of rank 0 on every rank. Like all methods below, throws ResourceError when
  // another rank cannot be reached.
  virtual std::string broadcast(std::string text) { return text; }
  // Returns the values of all ranks, those of rank 0 first. Every rank passes the same number of
  // values.
  virtual std::vector<double> gather(std::span<const double> values) {
    return {values.begin(), values.end()};
  }

  // Calls compute(i) for i in [0, n_items), each on rank i % size(), in ascending order on each.
  // Returns all results by i, on every rank.
  std::vector<double> compute(int64_t n_items, const std::function<double(int64_t i)>& compute);

  // Returns whether any rank passes true.
  bool any(bool here);
  // Every rank calls this at the end, before it exits. A process that exits without this call has
  // failed, and its launcher then ends the others.
  virtual void finish() {}

  // A tensor of n elements is divided into shares, one a rank: [begin, begin + n) of it.
  struct Share {
    int64_t begin;
    int64_t n;
  };
  Share share(int64_t n_elements, int rank) const {
    const int64_t begin = n_elements * rank / size();
    return {begin, n_elements * (rank + 1) / size() - begin};
  }

  // Two exchanges that go on while the caller computes. The memory must stay until `wait`, and may
  // be neither read nor changed (`values` of start_scatter may be read). Call `wait` once for each
  // ticket. Throws UnsupportedError for a tensor of 2^31 elements or more.
  //
  // Each rank gets its share of every rank's `values`: received [size, n of the share].
  virtual int start_scatter(std::span<const float> /*values*/, std::span<float> /*received*/) {
    return 0;
  }
  // Each rank has its share of `values`, and gets the other shares.
  virtual int start_gather(std::span<float> /*values*/) { return 0; }
  // Returns whether `wait` would return at once. Exchanges make progress only in calls of `done`
  // and `wait`.
  virtual bool done(int /*ticket*/) { return true; }
  virtual void wait(int /*ticket*/) {}
};

}  // namespace limpid
