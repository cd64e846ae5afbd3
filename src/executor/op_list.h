// The ops of an executor, between begin_step and end_step: one LIMPID_OP(result, name, parameters,
// arguments) for each. A file that includes this one defines LIMPID_OP first: executor.h declares
// the pure virtual methods with it, reference/ and cpu/ declare their overrides, and
// delegating_executor.h makes the methods that pass a call on (`arguments` is for that). So the
// list has no include guard, and a new op is declared here once, for every executor.
//
// LIMPID_SPECIAL_OP is for the ops on matrices and the KV cache, and LIMPID_TABLE_OP for those on
// tables. Unless the file defines them, LIMPID_SPECIAL_OP is the same as LIMPID_OP, and
// LIMPID_TABLE_OP the same as LIMPID_SPECIAL_OP. layered_executor.cpp and counting_executor.cpp
// make the methods of all ops but the special ones from this list. The GPU has one kernel for each
// LIMPID_OP, of the op's name.
//
// A row is a token unless said otherwise.
#ifndef LIMPID_SPECIAL_OP
#define LIMPID_SPECIAL_OP LIMPID_OP
#endif
#ifndef LIMPID_TABLE_OP
#define LIMPID_TABLE_OP LIMPID_SPECIAL_OP
#endif

// y[t] = table[row of t], by the token's id or by its position (GPT-2's learned positions):
// [n_tokens, table.cols]. begin_step's caller has checked the ids against the table.
LIMPID_TABLE_OP(Activation, embed, (const Weight& table, EmbedBy by), (table, by))

// a + b, element by element.
LIMPID_OP(Activation, add, (const Activation& a, const Activation& b), (a, b))

// x * factor, element by element.
LIMPID_OP(Activation, scale, (const Activation& x, float factor), (x, factor))

// Zhang & Sennrich 2019, eq. 4. Works on groups of weight.cols elements: x.cols is a multiple of it
// (a whole row in the usual case, one head for the QK norm of Qwen3).
//   y[g] = x[g] / sqrt(mean(x[g]^2) + eps) * weight
LIMPID_OP(Activation, rms_norm, (const Activation& x, const Weight& weight, float eps),
          (x, weight, eps))

// Ba et al. 2016: y = (x - mean) / sqrt(var + eps) * weight + bias, biased variance. `bias` may be
// none.
LIMPID_OP(Activation, layer_norm,
          (const Activation& x, const Weight& weight, const Weight& bias, float eps),
          (x, weight, bias, eps))

// All projections of one input [rows, weight.cols] at once, so that x is prepared (quantised) once:
//   y[t] = x[t] * weight^T + bias
// The input of a head is the result of select_outputs.
LIMPID_SPECIAL_OP(void, linear, (const Activation& x, std::span<Projection> projections),
                  (x, projections))

// Su et al. 2021, half-split: for pair i of each head of head_dim elements, with c, s of the
// token's position,
//   y[i] = x[i]*c - x[i+n_rot/2]*s,  y[i+n_rot/2] = x[i]*s + x[i+n_rot/2]*c
// Elements from n_rot on pass through.
LIMPID_OP(Activation, rope, (const Activation& x, const RopeTable& table, int64_t head_dim),
          (x, table, head_dim))

// Appends k, v [n_tokens, n_kv_heads * head_dim] to the cache of `layer`, then attends causally:
//   out[t,h] = softmax(scale * q[t,h] . K[0..pos(t)]) V[0..pos(t)]
// with KV head h / (n_heads / n_kv_heads). q, out [n_tokens, n_heads * head_dim]. The partial (max,
// sum, accumulator) of each KV block are merged in order of position.
LIMPID_SPECIAL_OP(Activation, attention,
                  (const Activation& q, const Activation& k, const Activation& v, KvStorage& kv,
                   int64_t layer, const AttentionShape& shape),
                  (q, k, v, kv, layer, shape))

// silu(gate) * up, both [rows, d_ff]. Composite of unary() and a product (Shazeer 2020,
// arXiv:2002.05202).
LIMPID_OP(Activation, swiglu, (const Activation& gate, const Activation& up), (gate, up))

// The function of each element; unary_kind.h has the formulas.
LIMPID_OP(Activation, unary, (UnaryKind kind, const Activation& x), (kind, x))

// Rows output_rows of x: [n_outputs, x.cols].
LIMPID_OP(Activation, select_outputs, (const Activation& x), (x))

#undef LIMPID_OP
#undef LIMPID_SPECIAL_OP
#undef LIMPID_TABLE_OP
