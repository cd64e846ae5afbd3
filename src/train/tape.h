// Automatic differentiation in reverse mode (Griewank & Walther 2008, chapter 3) over the ops of
// an executor.
//
// A tape wraps an executor. In the forward pass it passes every op on to that executor, keeps the
// operands that the backward formula of the op needs, and records the op in a list. `backward`
// walks the list from its end: each op turns the gradient of its result into gradients of its
// operands, which are added up where a value was used more than once, and into gradients of its
// weights. The decoder does not know the tape: the forward pass of training is the forward pass of
// inference.
//
//   Tape tape(make_cpu_executor());
//   const DecoderWeights weights = load_weights(checkpoint, spec, tape);
//   tape.gradients().keep_gradient(weight, memory);             // for each weight that learns
//   tape.begin_step();
//   const Activation logits =
//       forward(tape, spec, weights, kv, PassResult::kLogits, {});  // kv may be empty
//   tape.cross_entropy(logits, targets, losses);
//   tape.backward();
//   tape.end_step();
//
// How the list of records becomes gradients, for y = rms_norm(x) and z = y W^T:
//
//   forward    record_[0]  x -> y          backward   z has its gradient dz, from the loss
//              record_[1]  y -> z                     record_[1]  dy = dz W, dW += dz^T y
//                                                     record_[0]  dx by the formula of rms_norm
//
// An op can only read values that exist, so every op that reads y has a later record than the op
// that made y. On the way from the end of the list to its start, all of these have therefore added
// their part to dy when record_[0] asks for dy. The tape searches no graph and sorts nothing.
//
// The residual stream is the embedding and what is added to it. The tape keeps it in f32. Every
// other value is inside of a block, and the options say what the tape does with those:
//  - dtype: they are rounded to 16 bits as soon as they are computed, and wait in 16 bits for the
//    backward pass. Matrices are read in 16 bits too, and so are the gradients that a matrix is
//    multiplied with. Sums, gradients of weights and the loss are f32 (Micikevicius et al. 2018,
//    "Mixed precision training").
//  - recompute: they are dropped and computed again on the way back (Chen et al. 2016, "Training
//    deep nets with sublinear memory cost"). A value that is missing is computed from its
//    operands, which may have to be computed first; this ends at the residual stream. Every op
//    computes the same bits again, so the gradients are the same.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "executor/delegating_executor.h"
#include "executor/gradient_ops.h"

namespace limpid {

struct TapeOptions {
  DType dtype = DType::kF32;  // kF32, kBF16 or kF16
  bool recompute = false;
};

class Tape final : public DelegatingExecutor {
 public:
  // Throws UnsupportedError when the executor has no backward formulas.
  explicit Tape(std::unique_ptr<Executor> inner, const TapeOptions& options = {});

  GradientOps& gradients() { return *gradients_; }

  // Throws UnsupportedError for rows of interleaved pairs.
  Weight load_weight(const WeightSource& source) override;
  // Every weight with the tensor that it was loaded from.
  struct LoadedWeight {
    Weight handle;
    TensorView tensor;
    WeightUse use = WeightUse::kVector;
    Tensor rounded = {};  // to 16 bits: what the executor reads
  };
  std::span<const LoadedWeight> weights() const { return weights_; }
  // Call after the tensors of weights that keep a gradient have changed. Renews every copy of these
  // tensors.
  void refresh();

  // Sets the dropout of the next steps, in the places where GPT-2 had it: the sum of the
  // embeddings, the probabilities of attention, and the two updates that a block adds to the
  // residual stream. The tape sets `place`. {}: no dropout.
  void set_dropout(const Dropout& dropout) { dropout_ = dropout; }

  void begin_step() override;  // the list is empty again

  // Computes the loss of each row of `logits`, the result of the last op of the forward pass, in
  // nats. With `want_gradients`, also begins the backward pass with the gradient of sum(factor *
  // loss). The logits themselves are never computed (GradientOps::cross_entropy), unless they are
  // read.
  void cross_entropy(const Activation& logits, std::span<const LossTarget> targets,
                     std::span<double> losses, bool want_gradients = true);
  // Adds the gradient of every weight that keeps one, and forgets the step. Handles of activations
  // must not outlive the step.
  void backward();

  // The ops that training supports. Other ops throw UnsupportedError, and so does allocate_kv:
  // sequences are whole, so no cache is read or written.
  Activation embed(const Weight& table, EmbedBy by) override;
  Activation add(const Activation& a, const Activation& b) override;
  Activation scale(const Activation& x, float factor) override;
  Activation rms_norm(const Activation& x, const Weight& weight, float eps) override;
  Activation layer_norm(const Activation& x, const Weight& weight, const Weight& bias,
                        float eps) override;
  void linear(const Activation& x, std::span<Projection> projections) override;
  Activation rope(const Activation& x, const RopeTable& table, int64_t head_dim) override;
  Activation attention(const Activation& q, const Activation& k, const Activation& v, KvStorage& kv,
                       int64_t layer, const AttentionShape& shape) override;
  Activation swiglu(const Activation& gate, const Activation& up) override;
  Activation unary(UnaryKind kind, const Activation& x) override;
  Activation select_outputs(const Activation& x) override;

  // Passes a named value on to the observer, if one is set, and to the inner executor.
  using Observer = std::function<void(Place place, int64_t layer, const Activation& x)>;
  void set_observer(Observer observer) { observer_ = std::move(observer); }
  // Called in the backward pass at the place where the forward pass named a value. The ops after
  // that place are done, so the gradients of weights that only these ops used are complete.
  using BackwardObserver = std::function<void(Place place, int64_t layer)>;
  void set_backward_observer(BackwardObserver observer) { passed_ = std::move(observer); }
  void observe(Place place, int64_t layer, const Activation& x) override;
  // Not supported: a gradient could not flow through a value that was replaced.
  void intervene(Place /*place*/, int64_t /*layer*/, Activation& /*x*/) override {}
  // Both go through this executor's own ops, not to the one inside.
  Activation write(std::span<const float> values, int64_t rows, int64_t cols) override {
    return Executor::write(values, rows, cols);  // NOLINT(bugprone-parent-virtual-call)
  }
  void read(const Activation& x, std::span<float> out) override;
  void read_best(const Activation& x, int64_t k, std::span<int32_t> columns,
                 std::span<float> values) override {
    Executor::read_best(x, k, columns, values);  // NOLINT(bugprone-parent-virtual-call)
  }
  int64_t most_best() const override { return 0; }
  // A handle of the tape is not one of the inner executor.
  std::span<const float> view(const Activation& /*x*/) const override { return {}; }

 private:
  using Gradient = std::shared_ptr<const Activation>;
  // A value of the forward pass.
  struct Node {
    Activation value;                     // empty after its last use
    Activation narrow;                    // the value in 16 bits, in its place
    std::function<Activation()> compute;  // gives the value again; only with `recompute`
    Gradient gradient;                    // so far
    int64_t cols = 0;
    bool is_stream = false;         // part of the residual stream
    bool needs_gradient = false;    // something that it was computed from learns
    bool needed_backwards = false;  // a backward formula reads the value
  };
  // An output head whose product waits for the loss.
  struct Head {
    int32_t x = -1;
    int32_t y = -1;
    Weight weight;
  };

  void enter(std::string_view op) override;  // an op that is not above
  void release(int32_t id) noexcept override;
  // Adds the result of `compute` as a value of the tape. Inside of a block the value is rounded.
  Activation keep(bool is_stream, bool needs_gradient, std::function<Activation()> compute);
  Activation keep(Node node, int64_t rows);
  // Returns the value. Computes it again, or widens it from 16 bits, if necessary.
  const Activation& value(int32_t id);
  const Activation& value(const Activation& x) { return value(x.id()); }
  const Node& node(const Activation& x) const { return nodes_[static_cast<size_t>(x.id())]; }
  void store_narrow();                // what is in to_narrow_
  void encode(LoadedWeight& weight);  // renews `rounded`
  // Returns x rounded to the tape's dtype, which has 16 bits.
  Activation round(const Activation& x);
  // The same for any dtype of the tape: in f32, returns x itself.
  Activation rounded(Activation x);
  // Returns the dropout of the next place, if there is any.
  Dropout next_dropout();
  bool needs_gradient(const Activation& x) const { return node(x).needs_gradient; }
  bool learns(const Weight& weight) const { return gradients_->keeps_gradient(weight); }
  void add_gradient(int32_t id, Gradient gradient);
  void add_gradient(int32_t id, Activation gradient);
  // Records an op. `backward` gets the gradient of the result `y`, and reads these values.
  void record(const Activation& y, std::initializer_list<int32_t> reads,
              std::function<void(const Gradient& dy)> backward);
  Activation multiply_head(const Activation& x, const Projection& head);

  GradientOps* gradients_;
  TapeOptions options_;
  Dropout dropout_;
  std::vector<LoadedWeight> weights_;  // by id
  std::vector<Node> nodes_;
  std::vector<int32_t> to_narrow_;  // values that the forward pass has done with
  std::vector<std::function<void()>> record_;
  Head head_;
  Observer observer_;
  BackwardObserver passed_;
};

}  // namespace limpid
