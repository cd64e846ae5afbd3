// An executor that measures where the time of a step goes: it passes every op on to another one and
// adds up the wall clock by what the op works on.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "executor/delegating_executor.h"

namespace limpid {

// All calls of one op on the same kind of weight, the blocks of a model taken together.
struct OpTime {
  std::string op;       // "rms_norm", "attention", "linear attn_q, attn_k, attn_v", …
  int64_t n_calls = 0;  // a `linear` of several projections is one
  double seconds = 0;
  uint64_t n_weight_bytes = 0;  // of matrices, as stored in the file; each call reads its own once
  int64_t n_flops = 0;          // of products with matrices: 2 per weight and row
  int64_t n_int8_flops = 0;     // of n_flops, those with quantised matrices
};

// The results are bit for bit those of the inner executor, which has to do its work within the call
// of an op.
class TimingExecutor final : public DelegatingExecutor {
 public:
  using DelegatingExecutor::DelegatingExecutor;

  // What ran since it was asked last, the longest first.
  std::vector<OpTime> take();

  Weight load_weight(const WeightSource& source) override;
  void linear(const Activation& x, std::span<Projection> projections) override;

 protected:
  void enter(std::string_view op) override;
  void leave() override;

 private:
  using Clock = std::chrono::steady_clock;
  struct Matrix {
    std::string kind;  // the name without block and suffix: "attn_q"
    uint64_t n_bytes;
    bool is_quantized;
  };

  std::map<int32_t, Matrix> matrices_;  // by the weight's id
  std::string linear_label_;            // of the `linear` in progress
  std::map<std::string, OpTime, std::less<>> times_;
  OpTime* current_ = nullptr;
  Clock::time_point begin_;
};

}  // namespace limpid
