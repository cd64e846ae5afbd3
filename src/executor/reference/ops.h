// The definition of every op: plain loops, f32 in and out, sums in f64. What cpu/ and later
// executors are tested against. Rows are contiguous; a `Rows` is [rows, cols].
#pragma once

#include <cstdint>
#include <span>

#include "base/thread_pool.h"
#include "executor/executor.h"

namespace limpid::reference {

struct Rows {
  float* data;
  int64_t n_rows;
  int64_t n_cols;
  std::span<float> operator[](int64_t i) const {
    return {data + i * n_cols, static_cast<size_t>(n_cols)};
  }
};
struct ConstRows {
  const float* data;
  int64_t n_rows;
  int64_t n_cols;
  std::span<const float> operator[](int64_t i) const {
    return {data + i * n_cols, static_cast<size_t>(n_cols)};
  }
};

// y = x / sqrt(mean(x^2) + eps) * weight, for one group (Zhang & Sennrich 2019, eq. 4). All [n].
void rms_norm(std::span<const float> x, std::span<const float> weight, float eps,
              std::span<float> y);

// y = (x - mean) / sqrt(var + eps) * weight + bias, biased variance (Ba et al. 2016). All [n].
void layer_norm(std::span<const float> x, std::span<const float> weight,
                std::span<const float> bias, float eps, std::span<float> y);

// y[t, r] = x[t] . W[row r] + bias[r], r the canonical output row of W's stored row (see RowOrder).
//   x [n_tokens, k] · weight [n, k], any dtype · bias [n] or empty · y [n_tokens, n]
void linear(ConstRows x, const WeightSource& weight, std::span<const float> bias, Rows y,
            ThreadPool& pool);

// Rotates the leading n_rot elements of one head (Su et al. 2021), half-split pairs. cos, sin
// [n_rot / 2] in f64.
void rotate(std::span<const float> x, std::span<const double> cos, std::span<const double> sin,
            std::span<float> y);

// softmax(scale * q . K) V over positions [0, n) of one head. `key(j)` and `value(j)` give
// [head_dim] spans.
//   scores: scratch [n] f64 · sums: scratch [head_dim] f64 · q, out [head_dim]
template <typename Key, typename Value>
void attend(std::span<const float> q, int64_t n, float scale, Key&& key, Value&& value,
            std::span<double> scores, std::span<double> sums, std::span<float> out);

// silu(x) = x / (1 + e^-x), gelu(x) = x Phi(x) or its tanh approximation (Hendrycks & Gimpel 2016),
// relu(x) = max(x, 0).
float unary(UnaryKind kind, float x);

}  // namespace limpid::reference

#include "executor/reference/attention-inl.h"
