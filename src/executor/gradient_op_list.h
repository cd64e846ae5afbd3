// The backward ops: one LIMPID_GRADIENT_OP(result, name, parameters, arguments) for each, used as
// op_list.h is. So the list has no include guard.
//
// LIMPID_SPECIAL_GRADIENT_OP(result, name, parameters) is for the ops on tables and matrices, and
// for those whose result is not one activation of the shape of the first one. It is the same as
// LIMPID_GRADIENT_OP, unless the file defines it. counting_executor.cpp makes the methods of all
// other ops from this list; `arguments` is for that.
#ifndef LIMPID_SPECIAL_GRADIENT_OP
#define LIMPID_SPECIAL_GRADIENT_OP(result, name, parameters) \
  LIMPID_GRADIENT_OP(result, name, parameters, ())
#endif

// dtable[row of t] += dy[t], in order of t.
LIMPID_SPECIAL_GRADIENT_OP(void, embed, (const Weight& table, EmbedBy by, const Activation& dy))

// Of rms_norm, and of layer_norm (`centred`), for each group of weight.cols. Both divide numbers c,
// x itself or x - mean(x), by r. With n = c / r, r = sqrt(mean(c^2) + eps), and g = dy * weight:
//   dx = (g - mean(g) - n * mean(g * n)) / r      dweight += dy * n      dbias += dy
// without mean(g) unless centred.
LIMPID_GRADIENT_OP(Activation, norm,
                   (const Activation& x, const Weight& weight, const Weight& bias, float eps,
                    bool centred, const Activation& dy),
                   (x, weight, bias, eps, centred, dy))

// dx = sum_i dy_i W_i, in order of the projections; dW_i += dy_i^T x; db_i += sum_t dy_i[t].
// Without `want_dx` an empty activation. x is empty when no weight keeps its gradient.
LIMPID_SPECIAL_GRADIENT_OP(Activation, linear,
                           (const Activation& x, std::span<const ProjectionGradient> projections,
                            bool want_dx))

// The rotation by the opposite angle.
LIMPID_GRADIENT_OP(Activation, rope,
                   (const RopeTable& table, int64_t head_dim, const Activation& dy),
                   (table, head_dim, dy))

// Of whole sequences, whose positions are 0, 1, … in this step: no KV cache is read. y is the
// result of the forward op. With the probabilities p = softmax(scale * q . k) of one query,
// computed again, and the factors m of the dropout (1 without),
//   dv_j += p_j m_j dy      ds_j = p_j (m_j dy . v_j - dy . y)      dq = scale * sum_j ds_j k_j
//   dk_j += scale * ds_j q
LIMPID_SPECIAL_GRADIENT_OP(AttentionGradients, attention,
                           (const Activation& q, const Activation& k, const Activation& v,
                            const Activation& y, const AttentionShape& shape,
                            const Dropout& dropout, const Activation& dy))

// With s the logistic function of gate:
//   dgate = dy * up * (s + gate * s * (1 - s))      dup = dy * gate * s
LIMPID_SPECIAL_GRADIENT_OP(SwigluGradients, swiglu,
                           (const Activation& gate, const Activation& up, const Activation& dy))
// dx = dy * f'(x).
LIMPID_GRADIENT_OP(Activation, unary, (UnaryKind kind, const Activation& x, const Activation& dy),
                   (kind, x, dy))
// dx[output_rows[i]] = dy[i], other rows 0: [n_tokens, dy.cols].
LIMPID_GRADIENT_OP(Activation, select_outputs, (const Activation& dy), (dy))

// The output head and the loss together, so that the logits of all rows [rows, vocab_size] are
// never in memory at once (Llama 3 has 128,256 tokens: 8,192 rows would take 4.2 GB):
//   z = x W^T      losses[t] = log(sum_v exp(z[t,v])) - z[t, token_id_t]      (nats)
// Of the total sum_t factor_t * losses[t] it returns dx and adds dW. Without `want_gradients` it
// computes the losses only and returns an empty activation.
LIMPID_SPECIAL_GRADIENT_OP(Activation, cross_entropy,
                           (const Activation& x, const Weight& head,
                            std::span<const LossTarget> targets, std::span<double> losses,
                            bool want_gradients))

// -- forward ops of training only --

// The op `linear` of many rows: fills in the results of all projections. It adds in the order of
// the backward products, so its results differ from those of `linear` by rounding.
LIMPID_SPECIAL_GRADIENT_OP(void, project, (const Activation& x, std::span<Projection> projections))

// x times the factors of the dropout, element by element. Its backward is itself.
LIMPID_GRADIENT_OP(Activation, dropout, (const Activation& x, const Dropout& dropout), (x, dropout))

// The op `attention` of whole sequences, without a cache, with the factors m of the dropout of the
// probabilities (1 without):
//   y = sum_j p_j m_j v_j
// The probability of token t, head h and the key at position j is element (t * n_heads + h, j) of
// the mask. It adds in another order than `attention`, so its results differ by rounding.
LIMPID_GRADIENT_OP(Activation, attend_whole,
                   (const Activation& q, const Activation& k, const Activation& v,
                    const AttentionShape& shape, const Dropout& dropout),
                   (q, k, v, shape, dropout))

// x in 16 bits, rounded to nearest even, in half the memory; and back to [rows, cols] f32. `dtype`
// is kF16 or kBF16. No op but `widen` reads a narrow activation.
LIMPID_SPECIAL_GRADIENT_OP(Activation, narrow, (const Activation& x, DType dtype))
LIMPID_SPECIAL_GRADIENT_OP(Activation, widen, (const Activation& narrow, int64_t cols, DType dtype))

#undef LIMPID_GRADIENT_OP
#undef LIMPID_SPECIAL_GRADIENT_OP
