// Muon beside plain loops in f64, and the same bits for any threads and instruction set.
#include "train/muon.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "executor/executors.h"
#include "train/optimizer.h"

namespace limpid {
namespace {

using Matrix = std::vector<std::vector<double>>;

Matrix product(const Matrix& a, const Matrix& b) {
  Matrix y(a.size(), std::vector<double>(b[0].size(), 0.0));
  for (size_t i = 0; i < a.size(); ++i) {
    for (size_t k = 0; k < b.size(); ++k) {
      for (size_t j = 0; j < b[0].size(); ++j) y[i][j] += a[i][k] * b[k][j];
    }
  }
  return y;
}

Matrix transposed(const Matrix& a) {
  Matrix y(a[0].size(), std::vector<double>(a.size()));
  for (size_t i = 0; i < a.size(); ++i) {
    for (size_t j = 0; j < a[0].size(); ++j) y[j][i] = a[i][j];
  }
  return y;
}

Matrix orthogonalized(Matrix x) {
  double squares = 0;
  for (const auto& row : x) {
    for (const double value : row) squares += value * value;
  }
  for (auto& row : x) {
    for (double& value : row) value /= std::sqrt(squares);
  }
  for (int step = 0; step < 5; ++step) {
    const Matrix gram = product(x, transposed(x));
    const Matrix cubic = product(gram, x);
    const Matrix quintic = product(gram, cubic);
    for (size_t i = 0; i < x.size(); ++i) {
      for (size_t j = 0; j < x[0].size(); ++j)
        x[i][j] = 3.4445 * x[i][j] - 4.7750 * cubic[i][j] + 2.0315 * quintic[i][j];
    }
  }
  return x;
}

std::vector<float> random_values(int64_t n, uint32_t seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  std::vector<float> values(static_cast<size_t>(n));
  for (float& value : values) value = normal(random);
  return values;
}

struct Trained {
  std::vector<float> w;
  std::vector<float> m;
  bool operator==(const Trained&) const = default;
};

// Two steps with the gradients of seeds 2 and 3.
Trained train(int64_t rows, int64_t cols, const char* isa, int n_threads) {
  Trained trained{random_values(rows * cols, 1), std::vector<float>(rows * cols, 0.0F)};
  Muon muon(isa);
  ThreadPool pool(n_threads);
  for (const uint32_t seed : {2U, 3U}) {
    const std::vector<float> g = random_values(rows * cols, seed);
    muon.step({trained.w.data(), g.data(), trained.m.data(), rows, cols}, {0.5F, 0.02F, 0.99F},
              pool);
  }
  return trained;
}

class MuonShapes : public ::testing::TestWithParam<std::pair<int64_t, int64_t>> {};

TEST_P(MuonShapes, AgreeWithPlainLoops) {
  const auto [rows, cols] = GetParam();
  const Trained actual = train(rows, cols, "", 2);
  const std::vector<float> start = random_values(rows * cols, 1);
  std::vector<double> w(start.begin(), start.end());
  std::vector<double> m(w.size(), 0.0);
  const double rate = 0.02 * 0.2 * std::sqrt(static_cast<double>(std::max(rows, cols)));
  for (const uint32_t seed : {2U, 3U}) {
    const std::vector<float> g = random_values(rows * cols, seed);
    Matrix update(static_cast<size_t>(rows), std::vector<double>(static_cast<size_t>(cols)));
    for (size_t i = 0; i < w.size(); ++i) {
      m[i] = 0.95 * m[i] + 0.05 * 0.5 * g[i];
      update[i / cols][i % cols] = 0.95 * m[i] + 0.05 * 0.5 * g[i];
    }
    update = orthogonalized(update);
    for (size_t i = 0; i < w.size(); ++i) w[i] = 0.99 * w[i] - rate * update[i / cols][i % cols];
  }
  for (size_t i = 0; i < w.size(); ++i) {
    EXPECT_NEAR(actual.m[i], m[i], 1e-6) << i;
    EXPECT_NEAR(actual.w[i], w[i], 1e-5) << i;
  }
}

TEST_P(MuonShapes, GiveTheSameBitsForAnyThreadsAndInstructionSet) {
  const auto [rows, cols] = GetParam();
  const Trained expected = train(rows, cols, "scalar", 1);
  for (const std::string_view isa : available_isas()) {
    for (const int n_threads : {1, 3})
      EXPECT_TRUE(expected == train(rows, cols, std::string(isa).c_str(), n_threads)) << isa;
  }
}

INSTANTIATE_TEST_SUITE_P(Shapes, MuonShapes,
                         ::testing::Values(std::pair{5, 5}, std::pair{70, 33}, std::pair{33, 70},
                                           std::pair{1, 9}));

TEST(Muon, OfAGradientOfZeroDecaysOnly) {
  std::vector<float> w = {1, 2, 3, 4, 5, 6};
  const std::vector<float> g(6, 0.0F);
  std::vector<float> m(6, 0.0F);
  ThreadPool pool(1);
  Muon().step({w.data(), g.data(), m.data(), 2, 3}, {1, 0.1F, 0.5F}, pool);
  EXPECT_EQ(w, (std::vector<float>{0.5F, 1, 1.5F, 2, 2.5F, 3}));
}

Parameter parameter_of(const std::vector<float>& values, const std::vector<float>& gradient,
                       int64_t rows, std::vector<Parameter::Rows> projections) {
  const Shape shape{rows, std::ssize(values) / rows};
  return {"p", std::make_shared<Tensor>(Tensor::of(shape, values)), Tensor::of(shape, gradient),
          true, std::move(projections)};
}

std::vector<float> optimized(Parameter parameter) {
  OptimizerOptions options;
  options.kind = OptimizerKind::kMuon;
  options.clip = 0;
  Optimizer optimizer(options, {&parameter, 1});
  ThreadPool pool(2);
  optimizer.step(0.1, 0, pool);
  return {parameter.value->f32().begin(), parameter.value->f32().end()};
}

TEST(Muon, TakesThePartsOfAFusedMatrixOneByOne) {
  const std::vector<float> values = random_values(9 * 4, 1);
  const std::vector<float> gradient = random_values(9 * 4, 2);
  const std::vector<float> fused =
      optimized(parameter_of(values, gradient, 9, {{0, 3}, {3, 3}, {6, 3}}));
  for (size_t part = 0; part < 3; ++part) {
    const auto slice = [&](const std::vector<float>& all) {
      return std::vector<float>(all.begin() + part * 12, all.begin() + (part + 1) * 12);
    };
    EXPECT_EQ(optimized(parameter_of(slice(values), slice(gradient), 3, {{0, 3}})), slice(fused));
  }
}

// AdamW's first step moves every element by the learning rate, whatever its gradient.
TEST(Muon, LeavesEmbeddingsToAdamW) {
  const std::vector<float> values(6, 0.0F);
  for (const float w : optimized(parameter_of(values, random_values(6, 2), 2, {})))
    EXPECT_NEAR(std::abs(w), 0.1, 1e-5);
}

}  // namespace
}  // namespace limpid
