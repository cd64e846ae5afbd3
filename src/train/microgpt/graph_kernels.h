// The loops of a Graph that are compiled once per instruction set.
#pragma once

#include <cstddef>
#include <cstdint>

#include "train/microgpt/adam_step.h"

namespace limpid::microgpt {

using NodeId = uint32_t;

// The operation that computed a node. A dot stores no derivatives: d (a . b) / d a[i] is b[i],
// which is a node of the graph.
enum class Operation : uint8_t {
  kLeaf,
  kUnary,         // slope_left = d this / d left
  kBinary,        // like kUnary, and slope_right = d this / d right
  kSum,           // sum of the n_terms nodes from `left` on
  kDot,           // dot of the n_terms nodes from `left` on and from `right` on
  kScatteredDot,  // the second operand is listed in `terms` from `right` on
};

// A node of the graph: its operation and its operands.
struct Node {
  Operation operation;
  uint32_t n_terms;
  NodeId left;
  NodeId right;
  double slope_left;
  double slope_right;
};

// A graph as plain arrays. All except `terms` are indexed by NodeId.
struct GraphArrays {
  const Node* nodes;
  const NodeId* terms;
  const double* data;
  double* grad;
};

// Pointers to the loops, compiled for one instruction set.
struct GraphKernels {
  // y[r] = sum over i of rows[r * n + i] * x[i], added in lanes.
  void (*dots)(const double* rows, size_t n_rows, const double* x, size_t n, double* y);
  // Applies the chain rule from node `loss` down to node `first`: grad[child] += grad[node] * d
  // node / d child. Every node has a higher index than its operands. A gradient of 0 is not
  // propagated.
  void (*backward)(const GraphArrays& graph, size_t first, size_t loss);
  // Applies Adam to n parameters.
  void (*update)(double* data, const double* grad, double* first_moment, double* second_moment,
                 size_t n, const AdamStep& step);
};

// Returns the best kernels for this CPU.
const GraphKernels& graph_kernels();

}  // namespace limpid::microgpt
