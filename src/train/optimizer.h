// Optimizers: how gradients change the weights.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/thread_pool.h"
#include "train/muon.h"
#include "train/optimizer_kernels.h"
#include "train/parameters.h"

namespace limpid {

enum class OptimizerKind : uint8_t {
  kAdamw,
  kSgd,
  kMuon,  // of the matrices of linear layers; AdamW of all others (muon.h)
};

struct OptimizerOptions {
  OptimizerKind kind = OptimizerKind::kAdamw;
  double beta1 = 0.9;  // SGD: the momentum
  double beta2 = 0.95;
  double epsilon = 1e-8;
  double weight_decay = 0.1;  // of matrices; norms and biases do not decay
  double clip = 1.0;          // largest norm of all gradients together; 0: no limit
};

// A tensor of the optimizer's state, for checkpoints.
struct StateTensor {
  std::string name;  // "first.blk.0.attn_q.weight"
  Tensor* tensor;
};

// Keeps its state (running means) beside the parameters that learn, in their order. Results have
// the same bits for any number of threads.
class Optimizer {
 public:
  // The parameters must outlive the optimizer.
  Optimizer(const OptimizerOptions& options, std::span<Parameter> parameters);

  // Returns the norm of all gradients together, in f64: the square root of their sum of squares
  // (sum_of_squares).
  double gradient_norm(ThreadPool& pool) const;
  // Changes every parameter that learns. The gradients are `gradient_factor` times what memory
  // holds; `norm` is their norm, for clipping.
  void step(double learning_rate, double norm, ThreadPool& pool, double gradient_factor = 1);
  // Counts a step without changing the parameters.
  void skip_step();

  int64_t n_steps() const { return n_steps_; }
  int64_t n_skipped() const { return n_skipped_; }
  void set_n_steps(int64_t n, int64_t n_skipped) {  // of a run that goes on
    n_steps_ = n;
    n_skipped_ = n_skipped;
  }
  std::vector<StateTensor> state();

 private:
  struct Slot {
    Parameter* parameter;
    Tensor first;   // running mean of gradients
    Tensor second;  // of their squares; AdamW only
    OptimizerKind kind;
  };
  float decay_of(const Slot& slot, double learning_rate) const;
  void update_matrices(Slot& slot, double learning_rate, float gradient_scale, ThreadPool& pool);
  void update(Slot& slot, double learning_rate, float gradient_scale, int64_t begin, int64_t end);

  OptimizerOptions options_;
  const OptimizerKernels& kernels_;
  std::vector<Slot> slots_;
  Muon muon_;
  int64_t n_steps_ = 0;  // those skipped included
  int64_t n_skipped_ = 0;
};

}  // namespace limpid
