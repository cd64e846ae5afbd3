// An executor that measures where the time of a step goes. It passes every op on to another
// executor and adds up the wall-clock time, by op and by the weights that the op uses.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/stopwatch.h"
#include "executor/delegating_executor.h"
#include "insight/flop_count.h"

namespace limpid {

// All calls of one op on the same kind of weight. The blocks of a model are added up.
struct OpTime {
  std::string op;       // "rms_norm", "attention", "linear attn_q, attn_k, attn_v", …
  int64_t n_calls = 0;  // a `linear` of several projections counts once
  double seconds = 0;
  uint64_t n_weight_bytes = 0;  // of matrices, as in the file, added up over the calls
  // Of products with matrices 2 for each weight and row; of attention 4 for each element of a head,
  // token and position that it reads.
  FlopCount flops{};
  std::optional<double> share = {};  // share_of_limit(), where the limits were measured

  // The least time that a machine of these limits, a second, needs to read the weights and to
  // multiply with them, as a share of `seconds`: the larger of the two. NaN for an op without
  // products, and where the limits are 0 (not measured).
  double share_of_limit(double read_bytes, const FlopCount& limits) const;
};

// The name of a matrix without its block: "blk.3.attn_q.weight" -> "attn_q",
// "layers.3.attention.wq.weight" -> "attention.wq".
std::string matrix_kind(std::string_view name);

// The results are bit for bit those of the inner executor. The inner executor must do its work
// within the call of an op, as one on the CPU does; one that only queues the work would show no
// time.
class TimingExecutor final : public DelegatingExecutor {
 public:
  using DelegatingExecutor::DelegatingExecutor;

  // Returns the times since the last call of take(), longest first.
  std::vector<OpTime> take();

  void linear(const Activation& x, std::span<Projection> projections) override;
  Activation attention(const Activation& q, const Activation& k, const Activation& v, KvStorage& kv,
                       int64_t layer, const AttentionShape& shape) override;
  // Counts as `linear`, with what `see` does.
  void linear_in_parts(const Activation& x, const Weight& weight, const SeePart& see) override;

 protected:
  void enter(std::string_view op) override;
  void leave() override;

 private:
  // Times a call of products of x with the weights.
  template <typename Run>
  void time_linear(const Activation& x, std::span<const Projection> projections, Run run);

  std::string linear_label_;  // the name of the `linear` in progress
  std::map<std::string, OpTime, std::less<>> times_;
  OpTime* current_ = nullptr;
  Stopwatch watch_;  // of the op in progress
};

}  // namespace limpid
