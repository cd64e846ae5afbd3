// An executor that computes nothing. It counts the bytes of activations that a step holds at the
// same time, and the operations of its matrix products. So the memory plan of training runs the
// forward pass and the tape with this executor, and needs no second description of them as a
// formula.
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
  // For steps of `n_tokens` tokens, each with a target. learns(name) tells whether a weight learns.
  // Only the shapes of weights are used: their data may be null.
  CountingExecutor(int64_t n_tokens, std::function<bool(std::string_view name)> learns);

  // Returns the most bytes of activations at one time since the executor was made.
  uint64_t most_bytes() const { return most_bytes_; }
  // Returns the operations of matrix products so far; a multiplication and an addition count as
  // two. Products within attention are not counted.
  double operations() const { return operations_; }

  std::string_view name() const override { return "counting"; }
  uint64_t weight_bytes(const WeightSource& /*source*/) const override { return 0; }
  Weight load_weight(const WeightSource& source) override;
  RopeTable load_rope(std::span<const double> inverse_frequencies, int64_t n_positions) override;
  std::unique_ptr<KvStorage> allocate_kv(const KvLayout& layout) override;
  void reserve(int64_t /*max_tokens*/, int64_t /*max_outputs*/) override {}
  StepInputs& inputs() override { return inputs_; }
  void begin_step() override {}
  void end_step() override {}
#define LIMPID_OP(result, name, parameters, arguments) result name parameters override;
#include "executor/op_list.h"
  GradientOps* gradient_ops() override { return gradients_.get(); }
  // Throws UnsupportedError, because activations have no values.
  void read(const Activation& x, std::span<float> out) override;

 private:
  friend class CountingGradients;

  void release(int32_t id) noexcept override;
  // Throws ResourceError for more than 2^64 bytes.
  Activation allocate(int64_t rows, int64_t cols);
  // Returns an activation of the shape of the first one among the operands of an op. That of a
  // table has a row for each token.
  Activation like(const Weight& table, EmbedBy /*by*/) { return allocate(n_tokens_, table.cols); }
  template <class... Others>
  Activation like(const Activation& x, const Others&... /*others*/) {
    return allocate(x.rows(), x.cols());
  }
  template <class First, class... Others>
  Activation like(const First& /*first*/, const Others&... others) {
    return like(others...);
  }
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
