// The backward ops that define all others: plain loops, f32 in and out, sums in f64. A backward op
// has the file gradient_NAME.cpp beside its forward op.
#pragma once

#include <map>
#include <span>
#include <vector>

#include "executor/gradient_ops.h"
#include "executor/reference/reference_executor.h"

namespace limpid {

class ReferenceGradients final : public GradientOps {
 public:
  explicit ReferenceGradients(ReferenceExecutor& executor) : ex_(executor) {}

  void keep_gradient(const Weight& weight, std::span<float> gradient) override;
  bool keeps_gradient(const Weight& weight) const override {
    return gradients_.contains(weight.id);
  }
  void begin_gradients() override;
  void finish_gradients() override {}
  void refresh(const Weight& weight) override;

#define LIMPID_GRADIENT_OP(result, name, parameters, arguments) result name parameters override;
#include "executor/gradient_op_list.h"

 private:
  // f64 sums of one weight's gradient, added to its f32 memory when the op is done.
  class Sums;
  // The matrix, [rows, cols].
  std::vector<float> matrix(const Weight& weight) const;
  // The row of position 0 of the sequence of row t. Throws ShapeError when it is not in this step.
  int64_t first_row(int64_t t) const;
  // softmax(scale * q . k) of row t over the keys that it sees.
  std::vector<double> probabilities(const Activation& q, const Activation& k,
                                    const AttentionShape& shape, int64_t t, int64_t head) const;

  ReferenceExecutor& ex_;
  std::map<int32_t, std::span<float>> gradients_;  // by the weight's id; others are constants
};

// Adds up in f64; its end adds the sums to the gradient. Does nothing for a weight that is a
// constant or is not there.
class ReferenceGradients::Sums {
 public:
  Sums(ReferenceGradients& owner, const Weight& weight);
  ~Sums();
  Sums(const Sums&) = delete;
  Sums& operator=(const Sums&) = delete;

  explicit operator bool() const { return !sums_.empty(); }
  double* row(int64_t i) { return sums_.data() + i * cols_; }

 private:
  std::vector<double> sums_;
  std::span<float> gradient_;
  int64_t cols_ = 0;
};

}  // namespace limpid
