// Every node kind's gradient against finite differences, and the order of the backward pass.
#include "train/microgpt/value.h"

#include <gtest/gtest.h>

#include <functional>

namespace limpid::microgpt {
namespace {

// Compares every leaf's gradient with the central difference of the whole function.
void expect_gradients(const std::vector<double>& at,
                      const std::function<Value(Graph&, const Row&)>& f) {
  const auto evaluate = [&](const std::vector<double>& leaves) {
    Graph graph;
    for (const double leaf : leaves) graph.leaf(leaf);
    graph.keep();
    return f(graph, graph.row(0, leaves.size())).data();
  };
  Graph graph;
  for (const double leaf : at) graph.leaf(leaf);
  graph.keep();
  graph.backward(f(graph, graph.row(0, at.size())));
  constexpr double kStep = 1e-6;
  for (size_t i = 0; i < at.size(); ++i) {
    std::vector<double> above = at;
    std::vector<double> below = at;
    above[i] += kStep;
    below[i] -= kStep;
    const double difference = (evaluate(above) - evaluate(below)) / (2 * kStep);
    EXPECT_NEAR(graph.kept_grad()[i], difference, 1e-7 * std::max(1.0, std::abs(difference)))
        << "leaf " << i;
  }
}

TEST(Value, Sum) {
  expect_gradients({2, -3}, [](Graph&, const Row& x) { return x[0] + x[1]; });
  expect_gradients({2}, [](Graph&, const Row& x) { return x[0] + 7.0; });
}

TEST(Value, Difference) {
  expect_gradients({2, -3}, [](Graph&, const Row& x) { return x[0] - x[1]; });
  expect_gradients({2}, [](Graph&, const Row& x) { return -(x[0] - 7.0); });
}

TEST(Value, Product) {
  expect_gradients({2, -3}, [](Graph&, const Row& x) { return x[0] * x[1]; });
  expect_gradients({2}, [](Graph&, const Row& x) { return x[0] * -0.3; });
}

TEST(Value, Quotient) {
  expect_gradients({2, -3}, [](Graph&, const Row& x) { return x[0] / x[1]; });
  expect_gradients({2}, [](Graph&, const Row& x) { return x[0] / 0.3; });
}

TEST(Value, PowerLogarithmExponential) {
  expect_gradients({1.7}, [](Graph&, const Row& x) { return x[0].pow(-0.5); });
  expect_gradients({1.7}, [](Graph&, const Row& x) { return x[0].pow(3.0); });
  expect_gradients({1.7}, [](Graph&, const Row& x) { return x[0].log(); });
  expect_gradients({1.7}, [](Graph&, const Row& x) { return x[0].exp(); });
}

TEST(Value, ReluOnBothSides) {
  expect_gradients({1.7}, [](Graph&, const Row& x) { return x[0].relu(); });
  expect_gradients({-1.7}, [](Graph&, const Row& x) { return x[0].relu(); });
  Graph graph;
  const Value zero = graph.leaf(0);
  graph.backward(zero.relu());
  EXPECT_EQ(zero.grad(), 0);  // as the originals have it
}

TEST(Value, SumOfARow) {
  expect_gradients({1, -2, 3, 0.5, 7}, [](Graph& graph, const Row& x) { return graph.sum(x); });
}

TEST(Value, DotOfRows) {
  for (const size_t n : {1U, 3U, 4U, 11U}) {
    std::vector<double> leaves;
    for (size_t i = 0; i < 2 * n; ++i) leaves.push_back(0.3 * static_cast<double>(i) - 1.1);
    expect_gradients(leaves, [n](Graph& graph, const Row& x) {
      return graph.dot(x.slice(0, n), x.slice(n, n));
    });
  }
}

TEST(Value, DotOfARowWithItself) {
  expect_gradients({1, -2, 3, 0.5, 7}, [](Graph& graph, const Row& x) { return graph.dot(x, x); });
}

TEST(Value, DotWithScatteredValues) {
  expect_gradients({1, -2, 3, 0.5, 7}, [](Graph& graph, const Row& x) {
    const std::vector<Value> scattered{x[4], x[0], x[4]};  // one of them twice
    return graph.dot(x.slice(1, 3), scattered);
  });
}

// A row whose nodes depend on each other and are shared by several dots: each passes its gradient
// on once, when it is complete.
TEST(Value, SharedNodesPassOnOnce) {
  expect_gradients({0.4, -0.7, 1.2, 0.9}, [](Graph& graph, const Row& x) {
    const size_t begin = graph.size();
    Value y = x[0];
    for (size_t i = 0; i < 4; ++i) y = y * x[i] + x[3 - i];
    const Row chain = graph.since(begin);
    const Value a = graph.dot(chain.slice(0, 4), x);
    const Value b = graph.dot(chain.slice(2, 4), chain.slice(0, 4));
    return (a * b + graph.sum(chain) + graph.dot(chain, chain)).exp().log() * y;
  });
}

TEST(Value, ALongChainNeedsNoStack) {
  Graph graph;
  const Value x = graph.leaf(1.0);
  graph.keep();
  Value y = x;
  for (int i = 0; i < 1'000'000; ++i) y = y + 1e-9;
  graph.backward(y * y);
  EXPECT_NEAR(x.grad(), 2 * y.data(), 1e-12);
}

TEST(Value, NodesThatTheLossDoesNotUseGetNoGradient) {
  Graph graph;
  const Value x = graph.leaf(2.0);
  graph.keep();
  const Value used = x * x;
  const Value unused = used * 5.0;
  graph.backward(used);
  EXPECT_EQ(x.grad(), 4.0);
  EXPECT_EQ(unused.grad(), 0.0);
}

// A dead ReLU passes nothing on, and the nodes below it keep their other gradients.
TEST(Value, ZeroGradientsEndWithTheirNode) {
  Graph graph;
  for (const double leaf : {0.5, -2.0, 3.0}) graph.leaf(leaf);
  graph.keep();
  const Row x = graph.row(0, 3);
  graph.backward((x[0] * x[1]).relu() * x[2] + x[2] * x[0]);
  EXPECT_EQ(x[0].grad(), 3.0);
  EXPECT_EQ(x[1].grad(), 0.0);
  EXPECT_EQ(x[2].grad(), 0.5);
}

TEST(Value, PythonOrderAddsFromLeftToRight) {
  // From left to right the first 1 is lost beside 1e16; in lanes it is added to its like first.
  std::vector<double> terms(16, 0.0);
  terms[0] = 1e16;
  terms[1] = terms[9] = 1;
  terms[8] = -1e16;
  const auto total = [&](bool python_sum_order) {
    Graph graph(python_sum_order);
    for (const double term : terms) graph.leaf(term);
    for (size_t i = 0; i < terms.size(); ++i) graph.leaf(1.0);
    return graph.dot(graph.row(0, 16), graph.row(16, 16)).data();
  };
  double expected = 0;
  for (const double term : terms) expected += term;
  EXPECT_EQ(total(true), expected);
  EXPECT_EQ(total(false), 2.0);
}

}  // namespace
}  // namespace limpid::microgpt
