// The backward formulas of the ops in op_list.h. An executor that can train a model offers them
// (Executor::gradient_ops()); train/tape.h calls them in the reverse order of the forward pass.
//
// The loss is one number. `dy` is the gradient of the loss with respect to the result y of an op:
// it has the shape of y. A backward op returns the gradients with respect to the op's inputs, each
// with the shape of its input, and adds the gradients with respect to the op's weights to the
// memory that keep_gradient named. The contract is that of the forward ops (executor.h): no op
// works in place, and every element is summed in one order, which depends on shapes only. So a
// gradient has the same bits for any number of threads and on every instruction set.
// gradient_op_list.h has the ops. The rows of every matrix are half-split (tensor/row_order.h).
//
// The inputs of the step (token ids, positions) are those of the forward pass: call the backward
// ops before the next step.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "executor/dropout.h"
#include "executor/executor.h"
#include "tensor/codec.h"

namespace limpid {

// One projection of a backward `linear`: dy is the gradient of y = x * weight^T + bias.
struct ProjectionGradient {
  Weight weight;
  Weight bias;  // or none
  const Activation* dy = nullptr;
};

struct AttentionGradients {
  Activation dq;  // [n_tokens, n_heads * head_dim]
  Activation dk;  // [n_tokens, n_kv_heads * head_dim]
  Activation dv;
};

struct SwigluGradients {
  Activation dgate;
  Activation dup;
};

// What the loss needs of one row: the token that follows, and the factor of its loss in the total.
struct LossTarget {
  int32_t token_id = 0;
  float factor = 1;  // usually 1 / (number of targets); 0: the row does not count
};

class GradientOps {
 public:
  virtual ~GradientOps() = default;

  // -- weights --
  // From now on backward ops add d loss / d weight to `gradient`: [rows, cols] f32. The caller owns
  // the memory, which is zero at first. A weight without memory for its gradient is a constant.
  // Throws ShapeError on a wrong size, UnsupportedError for a matrix that is quantised. The
  // gradient of a weight in 16 bits is f32, too.
  virtual void keep_gradient(const Weight& weight, std::span<float> gradient) = 0;
  virtual bool keeps_gradient(const Weight& weight) const = 0;
  // Sums of gradients begin anew: of each weight, the first op that computes a gradient overwrites
  // the memory. Setting it to zero and adding would write and read it once more.
  virtual void begin_gradients() = 0;
  // Sets the gradients to zero that no op has computed since then.
  virtual void finish_gradients() = 0;
  // Call after the values of the weight's view have changed: renews every copy that the executor
  // keeps.
  virtual void refresh(const Weight& weight) = 0;
  // Rounds the values of a weight to nearest even: to f16 or bf16, as encode_row does.
  virtual void round_weight(std::span<const float> values, DType dtype, std::byte* rounded) {
    encode_row(dtype, values, rounded);
  }

  // -- backward ops --
  // gradient_op_list.h declares and describes them.
#define LIMPID_GRADIENT_OP(result, name, parameters, arguments) virtual result name parameters = 0;
#include "executor/gradient_op_list.h"
};

}  // namespace limpid
