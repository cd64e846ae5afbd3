// The backward formulas of the ops in op_list.h. An executor that can train a model offers them
// (Executor::gradient_ops()); train/tape.h calls them in the reverse order of the forward pass.
//
// The loss is one number. `dy` is the gradient of the loss with respect to the result y of an op:
// it has the shape of y. A backward op returns the gradients with respect to the op's inputs, each
// with the shape of its input, and adds the gradients with respect to the op's weights to the
// memory that keep_gradient named. The contract is that of the forward ops (executor.h): no op
// works in place, and every element is summed in one order, which depends on shapes only. So a
// gradient has the same bits for any number of threads and on every instruction set.
//
// The inputs of the step (token ids, positions) are those of the forward pass: call the backward
// ops before the next step.
#pragma once

#include <cstdint>
#include <span>

#include "executor/executor.h"

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
  // From now on backward ops add d loss / d weight to `gradient`: [rows, cols] f32, rows in the
  // order in which the weight is stored. The caller owns the memory, and sets it to zero. A weight
  // without memory for its gradient is a constant. Throws ShapeError on a wrong size,
  // UnsupportedError for a matrix that is quantised.
  virtual void keep_gradient(const Weight& weight, std::span<float> gradient) = 0;
  virtual bool keeps_gradient(const Weight& weight) const = 0;
  // The values behind the weight's view have changed: renews every copy that the executor keeps.
  virtual void refresh(const Weight& weight) = 0;

  // -- backward ops --
  // dtable[token_ids[t]] += dy[t], in order of t.
  virtual void embed(const Weight& table, const Activation& dy) = 0;
  // dtable[positions[t]] += dy[t].
  virtual void embed_positions(const Weight& table, const Activation& dy) = 0;

  // With n = x / r, r = sqrt(mean(x^2) + eps), and g = dy * weight, for each group of weight.cols:
  //   dx = (g - n * mean(g * n)) / r      dweight += dy * n
  virtual Activation rms_norm(const Activation& x, const Weight& weight, float eps,
                              const Activation& dy) = 0;
  // With n = (x - mean) / r, r = sqrt(var + eps), and g = dy * weight:
  //   dx = (g - mean(g) - n * mean(g * n)) / r      dweight += dy * n      dbias += dy
  virtual Activation layer_norm(const Activation& x, const Weight& weight, const Weight& bias,
                                float eps, const Activation& dy) = 0;

  // dx = sum_i dy_i W_i, in order of the projections; dW_i += dy_i^T x; db_i += sum_t dy_i[t].
  // Without `want_dx` an empty activation.
  virtual Activation linear(const Activation& x, std::span<const ProjectionGradient> projections,
                            bool want_dx) = 0;

  // The rotation by the opposite angle.
  virtual Activation rope(const RopeTable& table, int64_t head_dim, const Activation& dy) = 0;

  // Of whole sequences, whose positions are 0, 1, … in this step: no KV cache is read. y is the
  // result of the forward op. With the probabilities p = softmax(scale * q . k) of one query,
  // computed again,
  //   dv_j += p_j dy      ds_j = p_j (dy . v_j - dy . y)      dq = scale * sum_j ds_j k_j
  //   dk_j += scale * ds_j q
  virtual AttentionGradients attention(const Activation& q, const Activation& k,
                                       const Activation& v, const Activation& y,
                                       const AttentionShape& shape, const Activation& dy) = 0;

  // With s the logistic function of gate:
  //   dgate = dy * up * (s + gate * s * (1 - s))      dup = dy * gate * s
  virtual SwigluGradients swiglu(const Activation& gate, const Activation& up,
                                 const Activation& dy) = 0;
  // dx = dy * f'(x).
  virtual Activation unary(UnaryKind kind, const Activation& x, const Activation& dy) = 0;
  // dx[output_rows[i]] = dy[i], other rows 0: [n_tokens, dy.cols].
  virtual Activation select_outputs(const Activation& dy) = 0;

  // The output head and the loss together, so that the logits of all rows [rows, vocab_size] are
  // never held at once (Llama 3 has 128,256 tokens: 8,192 rows would take 4.2 GB):
  //   z = x W^T      losses[t] = log(sum_v exp(z[t,v])) - z[t, token_id_t]      (nats)
  // Of the total sum_t factor_t * losses[t] it returns dx and adds dW. Without `want_gradients` it
  // computes the losses only and returns an empty activation.
  virtual Activation cross_entropy(const Activation& x, const Weight& head,
                                   std::span<const LossTarget> targets, std::span<double> losses,
                                   bool want_gradients) = 0;
};

}  // namespace limpid
