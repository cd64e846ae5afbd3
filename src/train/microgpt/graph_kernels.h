// The loops of a Graph that are worth compiling once per instruction set.
#pragma once

#include <cstddef>
#include <cstdint>

#include "train/microgpt/adam_step.h"

namespace limpid::microgpt {

using NodeId = uint32_t;

// How a node was made. A dot keeps no slopes: d (a . b) / d a[i] is b[i], which is still there.
enum class Operation : uint8_t {
  kLeaf,
  kUnary,         // slope_left = d this / d left
  kBinary,        // and slope_right = d this / d right
  kSum,           // of the n_terms nodes from left on
  kDot,           // of the n_terms nodes from left on and as many from right on
  kScatteredDot,  // of the n_terms nodes from left on and those listed from right on in the terms
};

struct Node {
  Operation operation;
  uint32_t n_terms;
  NodeId left;
  NodeId right;
  double slope_left;
  double slope_right;
};

// A graph as plain arrays, all indexed by NodeId but `terms`.
struct GraphArrays {
  const Node* nodes;
  const NodeId* terms;
  const double* data;
  double* grad;
};

struct GraphKernels {
  // y[r] = sum over i of rows[r * n + i] * x[i], in lanes.
  void (*dots)(const double* rows, size_t n_rows, const double* x, size_t n, double* y);
  // The chain rule, from node `loss` down to node `first`: grad[child] += grad[node] * d node / d
  // child. Every node lies above those it was made of. A gradient of 0 is not passed on.
  void (*backward)(const GraphArrays& graph, size_t first, size_t loss);
  // Adam on n parameters.
  void (*update)(double* data, const double* grad, double* first_moment, double* second_moment,
                 size_t n, const AdamStep& step);
};

// The best that this CPU has.
const GraphKernels& graph_kernels();

}  // namespace limpid::microgpt
