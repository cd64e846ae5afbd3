// A number that records how it was computed, for automatic differentiation in reverse mode.
//
//   Graph graph;
//   Value a = graph.leaf(2.0), b = graph.leaf(3.0);
//   Value loss = (a * b + a.pow(2.0)).log();   // log(6 + 4) = 2.303
//   graph.backward(loss);
//   a.grad();  // d loss / d a = (b + 2 a) / 10 = 0.7
//   b.grad();  // d loss / d b = a / 10 = 0.2
//
// Every operation appends a node with its value and its derivatives by its operands ("slopes").
// backward() visits the nodes from the loss to the first one and adds gradient * slope to the
// gradient of each operand (the chain rule). In the example, the sum has the gradient 1 / 10; the
// product a * b passes 0.1 * b = 0.3 to a, the square passes 0.1 * 2 a = 0.4 to a, and together
// they are 0.7. One pass gives the derivatives by all parameters at about the cost of computing the
// loss.
#pragma once

#include <algorithm>
#include <cmath>
#include <span>
#include <vector>

#include "train/microgpt/graph_kernels.h"

namespace limpid::microgpt {

class Graph;

// A handle to a node: two words, cheap to copy. Valid until reset() removes its node or the graph
// is destroyed.
class Value {
 public:
  double data() const;
  double grad() const;  // d loss / d this, for the loss of the last Graph::backward
  NodeId id() const { return id_; }
  Graph& graph() const { return *graph_; }

  Value pow(double exponent) const;
  Value log() const;
  Value exp() const;
  Value relu() const;

 private:
  friend class Graph;
  friend class Row;
  Value(Graph* graph, NodeId id) : graph_(graph), id_(id) {}
  Graph* graph_;
  NodeId id_;
};

// Values whose nodes are consecutive, so that SIMD can load them. Example: a vector of 16 numbers
// is a row with one first id and a size, instead of 16 handles.
class Row {
 public:
  size_t size() const { return size_; }
  Value operator[](size_t i) const { return {graph_, first_ + static_cast<NodeId>(i)}; }
  Row slice(size_t begin, size_t count) const {
    return {graph_, first_ + static_cast<NodeId>(begin), count};
  }
  NodeId first() const { return first_; }
  Graph& graph() const { return *graph_; }
  std::span<const double> data() const;
  std::span<const double> grad() const;

 private:
  friend class Graph;
  Row(Graph* graph, NodeId first, size_t size) : graph_(graph), first_(first), size_(size) {}
  Graph* graph_;
  NodeId first_;
  size_t size_;
};

// Stores all nodes, as a stack on which every node is above its operands. Memory grows to the size
// that the largest step needs and is kept; after that a step allocates nothing.
class Graph {
 public:
  // In Python's order, a dot adds its products from left to right; otherwise in lanes.
  explicit Graph(bool python_sum_order = false)
      : kernels_(graph_kernels()), python_sum_order_(python_sum_order) {}
  // Not copyable: handles point to this object.
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;

  Value leaf(double data) { return push(data, {Operation::kLeaf, 0, 0, 0, 0, 0}); }
  // Declares all existing nodes to be parameters, which reset() keeps.
  void keep();
  // Removes all other nodes, but keeps the memory.
  void reset();

  // Returns the nodes after the first `begin` ones as a row.
  Row since(size_t begin) { return {this, static_cast<NodeId>(begin), size() - begin}; }
  // Returns the nodes that append(0), …, append(n - 1) add, one each, as a row. Example, for a row
  // x:
  //   graph.collect(x.size(), [&](size_t i) { x[i].relu(); })
  template <typename Append>
  Row collect(size_t n, const Append& append) {
    const size_t begin = size();
    for (size_t i = 0; i < n; ++i) append(i);
    return since(begin);
  }
  Row row(NodeId first, size_t count) { return {this, first, count}; }
  size_t size() const { return size_; }
  const Node& node(Value value) const { return nodes_[value.id()]; }

  // Computes d loss / d node for all nodes that `loss` depends on, and 0 for the others. Goes down
  // the stack from the loss to the parameters, without recursion; each node has its complete
  // gradient before it passes it on. A gradient of 0 is not passed on.
  void backward(Value loss);

  std::span<double> kept_data() { return {data_.data(), n_kept_}; }
  std::span<const double> kept_data() const { return {data_.data(), n_kept_}; }
  std::span<const double> kept_grad() const { return {grad_.data(), n_kept_}; }
  // Applies Adam to the parameters, with gradients that kept_grad() was.
  void update(std::span<const double> gradients, const AdamStep& step);

  Value unary(Value a, double data, double slope) {
    return push(data, {Operation::kUnary, 1, a.id(), 0, slope, 0});
  }
  Value binary(Value a, Value b, double data, double slope_a, double slope_b) {
    return push(data, {Operation::kBinary, 2, a.id(), b.id(), slope_a, slope_b});
  }
  // A dot is one node, not 2 n - 1: a row of 16 products needs one node and one pass instead of 31.
  Value dot(const Row& a, const Row& b);
  // One dot with x for each of n_rows consecutive rows that begin at node `first`.
  Row dots(NodeId first, size_t n_rows, const Row& x);
  Value dot(const Row& a, std::span<const Value> b);
  Value sum(const Row& a);

 private:
  friend class Value;
  friend class Row;

  Value push(double data, const Node& node) {
    if (size_ == data_.size()) grow();
    data_[size_] = data;
    nodes_[size_] = node;
    return {this, static_cast<NodeId>(size_++)};
  }
  void grow();

  std::vector<double> data_;
  std::vector<double> grad_;
  std::vector<Node> nodes_;
  std::vector<NodeId> terms_;                         // operands of scattered dots
  std::vector<double> first_moment_, second_moment_;  // of Adam
  size_t size_ = 0;
  size_t n_kept_ = 0;
  const GraphKernels& kernels_;
  bool python_sum_order_;
};

inline double Value::data() const { return graph_->data_[id_]; }
inline double Value::grad() const { return graph_->grad_[id_]; }
inline std::span<const double> Row::data() const { return {graph_->data_.data() + first_, size_}; }
inline std::span<const double> Row::grad() const { return {graph_->grad_.data() + first_, size_}; }

inline Value operator+(Value a, Value b) {
  return a.graph().binary(a, b, a.data() + b.data(), 1.0, 1.0);
}
inline Value operator+(Value a, double b) { return a.graph().unary(a, a.data() + b, 1.0); }
inline Value operator*(Value a, Value b) {
  return a.graph().binary(a, b, a.data() * b.data(), b.data(), a.data());
}
inline Value operator*(Value a, double b) { return a.graph().unary(a, a.data() * b, b); }
inline Value operator-(Value a) { return a * -1.0; }
inline Value operator-(Value a, double b) { return a + -b; }
inline Value operator-(Value a, Value b) { return a + -b; }
inline Value operator/(Value a, double b) { return a * std::pow(b, -1.0); }
inline Value operator/(Value a, Value b) { return a * b.pow(-1.0); }

inline Value Value::pow(double exponent) const {
  const double x = data();
  return graph_->unary(*this, std::pow(x, exponent), exponent * std::pow(x, exponent - 1.0));
}
inline Value Value::log() const { return graph_->unary(*this, std::log(data()), 1.0 / data()); }
inline Value Value::exp() const {
  const double e = std::exp(data());
  return graph_->unary(*this, e, e);
}
inline Value Value::relu() const {
  return graph_->unary(*this, std::max(0.0, data()), data() > 0 ? 1.0 : 0.0);
}

}  // namespace limpid::microgpt
