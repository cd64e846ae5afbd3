// What executors check before an op computes. All throw ShapeError, which names the op; and
// check_gradient UnsupportedError for a type of weights that has no gradient.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "executor/executor.h"

namespace limpid {

// A host's memory of so many elements is that of an activation [rows, cols].
void check_elements(std::string_view op, size_t n_elements, int64_t rows, int64_t cols);
void check_same_shape(std::string_view op, const Activation& a, const Activation& b);
// A vector of weights has an element for each column.
void check_vector(std::string_view op, const Weight& vector, int64_t cols);
// 0 <= index < n_rows.
void check_indices(std::string_view op, std::span<const int32_t> indices, int64_t n_rows);
// Rows of interleaved pairs are whole heads of even size.
void check_heads(const WeightSource& source);

// `n_elements` of memory for the gradient of a weight, which is whole and of plain numbers.
void check_gradient(const WeightSource& weight, size_t n_elements);

void check_rms_norm(const Activation& x, const Weight& weight);
void check_linear(std::string_view op, const Activation& x, const Projection& projection);
// `n_positions` of the table.
void check_rope(const StepInputs& inputs, const Activation& x, const RopeTable& table,
                int64_t head_dim, int64_t n_positions);
// q [n_tokens, n_heads * head_dim], k and v [n_tokens, n_kv_heads * head_dim] fit the step, the
// cache has the layer, and each token's position has a block.
void check_attention(const StepInputs& inputs, const Activation& q, const Activation& k,
                     const Activation& v, const KvLayout& layout, int64_t layer,
                     const AttentionShape& shape);
void check_best(const Activation& x, int64_t k, std::span<const int32_t> columns,
                std::span<const float> values);

}  // namespace limpid
