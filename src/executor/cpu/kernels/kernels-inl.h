// Declarations of one instruction set's kernels; kernel_table.cpp collects them. What each does
// stands in executor/cpu/kernels.h.
#pragma once

#include "executor/cpu/kernels.h"

namespace limpid::LIMPID_ISA {

void linear_f32(const FloatLinearTask& task);
void linear_f16(const FloatLinearTask& task);
void linear_bf16(const FloatLinearTask& task);
void pack_tokens(const float* x, int64_t n_tokens, int64_t cols, int64_t token_begin,
                 int64_t token_end, float* packed);

void attend_block(const AttentionTile& tile, int64_t block, const KvBlockView& kv,
                  const AttentionState& partial);
void merge_partial(const AttentionState& state, const AttentionState& partial, int64_t begin,
                   int64_t end, int64_t head_dim);
void finish_attention(const float* accumulator, float sum, int64_t head_dim, float* out);
void append_kv(const float* k, const float* v, int64_t slot, int64_t head_dim, bool k_is_f16,
               bool v_is_f16, std::byte* k_block, std::byte* v_block);

void rms_norm(const float* x, const float* weight, int64_t n_rows, int64_t cols, float eps,
              float* y);
void layer_norm(const float* x, const float* weight, const float* bias, int64_t n_rows,
                int64_t cols, float eps, float* y);
void rope(const float* x, const float* cos, const float* sin, int64_t n_heads, int64_t head_dim,
          int64_t n_rot, float* y);

void add_elements(const float* a, const float* b, int64_t n, float* y);
void scale_elements(const float* x, float factor, int64_t n, float* y);
void unary_silu(const float* x, int64_t n, float* y);
void unary_gelu_tanh(const float* x, int64_t n, float* y);
void unary_gelu_erf(const float* x, int64_t n, float* y);
void unary_relu(const float* x, int64_t n, float* y);
void unary_exp(const float* x, int64_t n, float* y);
void swiglu(const float* gate, const float* up, int64_t n, float* y);
void narrow_to_f16(const float* x, int64_t n, uint16_t* y);
void widen_f16(const uint16_t* x, int64_t n, float* y);
void widen_bf16(const uint16_t* x, int64_t n, float* y);

void lanes_probe(const float* a, const float* b, const float* c, float* out);

}  // namespace limpid::LIMPID_ISA
