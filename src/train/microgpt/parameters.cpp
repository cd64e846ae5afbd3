#include "train/microgpt/parameters.h"

#include <fmt/format.h>

#include <cmath>
#include <numbers>

#include "base/check.h"

namespace limpid::microgpt {
namespace {

// Node ids of the scalar engine have 32 bits, and they also count the intermediate nodes of a step.
constexpr int64_t kMaxParams = int64_t{1} << 30;

double fsharp_gauss(PythonRandom& random, double deviation) {
  const double u1 = 1.0 - random.uniform();  // never 0, because log 0 is infinite
  const double u2 = 1.0 - random.uniform();
  return deviation * std::sqrt(-2.0 * std::log(u1)) * std::sin(2.0 * std::numbers::pi * u2);
}

}  // namespace

Matrices::Matrices(const Shape& shape) {
  validate(shape);
  const auto place = [this](std::string name, int64_t rows, int64_t cols) {
    const Matrix matrix{n_params, rows, cols};
    n_params += matrix.size();  // each size < 2^34, at most 2^10 layers of six: no overflow
    named.push_back({std::move(name), matrix});
    return matrix;
  };
  const int64_t n = shape.n_embd;
  wte = place("wte", shape.vocab_size, n);
  wpe = place("wpe", shape.block_size, n);
  lm_head = place("lm_head", shape.vocab_size, n);
  for (int64_t i = 0; i < shape.n_layer; ++i) {
    const auto add = [&](const char* name, int64_t rows, int64_t cols) {
      return place(fmt::format("layer{}.{}", i, name), rows, cols);
    };
    LayerMatrices& layer = layers.emplace_back();
    layer.attn_wq = add("attn_wq", n, n);
    layer.attn_wk = add("attn_wk", n, n);
    layer.attn_wv = add("attn_wv", n, n);
    layer.attn_wo = add("attn_wo", n, n);
    layer.mlp_fc1 = add("mlp_fc1", 4 * n, n);
    layer.mlp_fc2 = add("mlp_fc2", n, 4 * n);
  }
  LIMPID_CHECK(ArgumentError, n_params <= kMaxParams,
               "{} parameters are too many; lower n_embd or n_layer", n_params);
}

std::vector<double> initial_weights(const Matrices& matrices, double deviation, RandomStyle style,
                                    PythonRandom& random) {
  std::vector<double> weights(static_cast<size_t>(matrices.n_params));
  for (double& weight : weights) {
    weight = style == RandomStyle::kPython ? random.gauss(0.0, deviation)
                                           : fsharp_gauss(random, deviation);
  }
  return weights;
}

}  // namespace limpid::microgpt
