// An executor that shows a step op by op: what comes out of each op, where in the model it belongs,
// and how long it took. It passes every op on to another executor.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "executor/delegating_executor.h"
#include "insight/contrast.h"
#include "model/decoder_spec.h"

namespace limpid {

// One result of an op. A `linear` of several projections has one for each.
struct TracedOp {
  std::string op;              // "rms_norm", "linear attn_q", "attention", …
  std::optional<Place> place;  // the name of the result, if the decoder names it
  int64_t layer = -1;          // -1: outside the blocks
  int64_t n_rows = 0;
  int64_t n_cols = 0;
  std::vector<float> values;      // [n_rows, n_cols]
  std::optional<double> seconds;  // of the call; nothing for its second result and later ones
};

// The results are bit for bit those of the inner executor. Each result is read back within the
// step, so the inner executor must be able to do that, and a step takes longer than without. The
// time of an op is that of the inner executor's call; for one that queues its work (a GPU) it is
// not the time of the work.
class StepTracer final : public DelegatingExecutor {
 public:
  // Called on the thread that runs the step, in the order of the ops. A result is shown when the
  // decoder has named it, or names a later one: its op is the last one that ran, or for V the
  // projection of Q, K and V, because V is named after the rotation of Q and K. What the function
  // throws ends the step.
  using Show = std::function<void(const TracedOp& op)>;

  using DelegatingExecutor::DelegatingExecutor;

  // An empty function ends it.
  void set_show(Show show);

  // All names by which an op can be asked for: those of ops, of the model's matrices, of places.
  std::vector<std::string> op_names() const;

  void end_step() override;
  void observe(Place place, int64_t layer, const Activation& x) override;

#define LIMPID_OP(result, name, parameters, arguments) result name parameters override;
#include "executor/op_list.h"

 private:
  struct Pending {
    int32_t id;  // of the activation
    TracedOp op;
  };

  Activation traced(std::string op, const std::function<Activation()>& run);
  void add(std::string op, const Activation& y, std::optional<double> seconds);
  void show_pending();

  Show show_;
  std::vector<Pending> pending_;
  int64_t layer_ = -1;  // of ops that the decoder does not name
};

// Reads the name of an activation. `verify` and trace files have "L2.attn_heads",
// "blk.2.attn_heads", "output_norm"; `explain` has "L2.attn" (or "L2.attention"), "L2.mlp",
// "L2.H5", "L2". Throws ArgumentError for other texts, and for layers and heads that the model does
// not have.
ModelPart named_tensor(std::string_view name, const DecoderSpec& spec);

}  // namespace limpid
