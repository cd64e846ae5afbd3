// The backward ops of the CPU executor. Threads share the rows or columns of a result, and one
// element is always summed by one thread in one order, so no result depends on how many threads
// there are. A backward op has the file gradient_NAME.cpp beside its forward op.
#pragma once

#include <algorithm>
#include <map>
#include <span>
#include <vector>

#include "executor/cpu/cpu_executor.h"
#include "executor/cpu/matrix_product.h"
#include "executor/gradient_ops.h"

namespace limpid {

class CpuGradients final : public GradientOps {
 public:
  explicit CpuGradients(CpuExecutor& executor)
      : ex_(executor),
        scratch_(static_cast<uint64_t>(multiply_scratch_floats(executor.pool_.size())) *
                 sizeof(float)) {}

  void keep_gradient(const Weight& weight, std::span<float> gradient) override;
  bool keeps_gradient(const Weight& weight) const override { return !gradient(weight).empty(); }
  void begin_gradients() override;
  void finish_gradients() override;
  void refresh(const Weight& weight) override;
  void round_weight(std::span<const float> values, DType dtype, std::byte* rounded) override;

#define LIMPID_GRADIENT_OP(result, name, parameters, arguments) result name parameters override;
#include "executor/gradient_op_list.h"

 private:
  using LoadedWeight = CpuExecutor::LoadedWeight;

  const LoadedWeight& loaded(const Weight& weight) const { return ex_.loaded(weight); }
  std::span<float> gradient(const Weight& weight) const;
  // Whether the gradient's memory is to be overwritten; from then on it is to be added to.
  bool take_stale(const Weight& weight);
  void fill_with_zeros(std::span<float> x);
  Activation like(const Activation& x) { return ex_.allocate(x.rows(), x.cols()); }
  float* data(const Activation& x) { return ex_.data(x); }
  // A task of all queries, keys and values. What else its kernel reads or writes is not set.
  AttentionGradientTask task_of(const Activation& q, const Activation& k, const Activation& v,
                                const AttentionShape& shape, const Dropout& dropout);
  // Calls kernel(task) for every KV head of every sequence: `all` with its pointers moved there.
  void for_kv_heads(const AttentionGradientTask& all, const AttentionShape& shape,
                    void (*kernel)(const AttentionGradientTask& task));
  void multiply(const LeftMatrix& left, std::span<const MatrixProduct> products);
  // The product x W^T + bias of a left operand x.
  MatrixProduct projection(const Weight& weight, const Weight& bias, float* y) const;
  // dx [n_rows, weight.cols] = (or +=) dy W.
  void add_dx(const Weight& weight, const float* dy, int64_t n_rows, float* dx, bool add);
  // dW += dy^T x.
  void add_dweight(const Weight& weight, const float* x, const float* dy, int64_t n_rows);
  // db += the sum of dy's rows.
  void add_dvector(const Weight& vector, const Activation& dy);
  // Calls body(gradient, begin, end) for ranges of the columns of a vector that learns.
  template <class Body>
  void for_vector(const Weight& vector, Body&& body);

  CpuExecutor& ex_;
  AlignedBuffer scratch_;            // of products
  AlignedBuffer attention_scratch_;  // [threads, attention_gradient_floats] of the longest sequence
  std::vector<MatrixProduct> products_;
  std::map<int32_t, std::span<float>> gradients_;  // by the weight's id; others are constants
  std::vector<float*> stale_;                      // gradients of a step that is over
};

template <class Body>
void CpuGradients::for_vector(const Weight& vector, Body&& body) {
  constexpr int64_t kColumns = 64;
  const std::span<float> sums = gradient(vector);
  if (sums.empty()) return;
  if (take_stale(vector)) std::ranges::fill(sums, 0.0F);
  ex_.pool_.for_ranges(std::ssize(sums), kColumns, [&](int64_t begin, int64_t end, int /*thread*/) {
    body(sums.data(), begin, end);
  });
}

}  // namespace limpid
