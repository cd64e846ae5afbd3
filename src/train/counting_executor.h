// An executor that computes nothing. It counts what a step would take: bytes of activations that
// are alive at once, and operations of matrix products. So the memory plan of training walks the
// one forward pass, through the tape, instead of repeating both in a formula.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>
#include <vector>

#include "executor/executor.h"
#include "executor/gradient_ops.h"

namespace limpid {

class CountingExecutor final : public Executor {
 public:
  // For steps of `n_tokens`, each with a target. `learns` says by name which weights learn. Weights
  // have shapes only: their data may be null.
  CountingExecutor(int64_t n_tokens, std::function<bool(std::string_view name)> learns);
  ~CountingExecutor() override;

  // The most bytes of activations at one time since the executor was made.
  uint64_t most_bytes() const { return most_bytes_; }
  // Of matrix products so far; a multiplication and an addition count as two. Products within
  // attention are left out.
  double operations() const { return operations_; }

  std::string_view name() const override { return "counting"; }
  uint64_t weight_bytes(const WeightSource& /*source*/) const override { return 0; }
  Weight load_weight(const WeightSource& source) override;
  RopeTable load_rope(std::span<const double> inverse_frequencies, int64_t n_positions,
                      double magnitude) override;
  std::unique_ptr<KvStorage> allocate_kv(const KvLayout& layout) override;
  void reserve(int64_t /*max_tokens*/, int64_t /*max_outputs*/) override {}
  StepInputs& inputs() override { return inputs_; }
  void begin_step() override {}
  void end_step() override {}
#define LIMPID_OP(result, name, parameters, arguments) result name parameters override;
#include "executor/op_list.h"
  GradientOps* gradient_ops() override { return gradients_.get(); }
  // There are no values: throws UnsupportedError.
  void read(const Activation& x, std::span<float> out) override;

 private:
  friend class CountingGradients;

  void release(int32_t id) noexcept override;
  // Throws ResourceError for more than 2^64 bytes.
  Activation allocate(int64_t rows, int64_t cols);
  Activation like(const Activation& x) { return allocate(x.rows(), x.cols()); }
  void count_product(const Activation& x, const Weight& weight);

  int64_t n_tokens_;
  std::function<bool(std::string_view name)> learns_;
  StepInputs inputs_;
  std::vector<uint8_t> weight_learns_;  // by id
  std::vector<uint64_t> bytes_;         // by id of an activation
  uint64_t alive_bytes_ = 0;
  uint64_t most_bytes_ = 0;
  double operations_ = 0;
  std::unique_ptr<GradientOps> gradients_;
};

}  // namespace limpid
