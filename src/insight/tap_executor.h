// An executor that shows what a forward pass computes. It passes every op on to another executor,
// and keeps copies of activations that the decoder names with Executor::observe.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "executor/delegating_executor.h"

namespace limpid {

// One activation of a step, copied to the host.
struct Observation {
  std::string what;    // the name of its place: "embedding", "attn_heads", "ffn_residual", …
  int64_t layer = -1;  // the block; -1: outside the blocks
  int64_t n_rows = 0;
  int64_t n_cols = 0;
  std::vector<float> values;  // [n_rows, n_cols]
};

// The results are bit for bit those of the inner executor. A copy is an op of its own (a scale by
// 1), so nothing is read back within a step, and the inner executor may be of any kind. The inner
// executor did not reserve memory for the copies, so `observe` may throw ResourceError.
class TapExecutor final : public DelegatingExecutor {
 public:
  using DelegatingExecutor::DelegatingExecutor;

  // Returns the activations of the last step, in order, and forgets them.
  std::vector<Observation> take();

  void begin_step() override;
  void observe(Place place, int64_t layer, const Activation& x) override;

 private:
  // An activation that is still in the inner executor's memory.
  struct Copy {
    Place place;
    int64_t layer;
    Activation values;
  };

  // Handles of the inner executor. The base owns that one and is destroyed after this member.
  std::vector<Copy> copies_;
};

}  // namespace limpid
