// The dots, the backward pass and Adam of the scalar engine.
#include "train/microgpt/graph_kernels.h"

#include "train/microgpt/kernels/adam.h"
#include "train/microgpt/kernels/vectors.h"

namespace limpid::LIMPID_ISA {
namespace {

using microgpt::AdamStep;
using microgpt::GraphArrays;
using microgpt::GraphKernels;
using microgpt::Node;
using microgpt::NodeId;
using microgpt::Operation;

constexpr size_t kStep = kLanes<double>;

void dots(const double* rows, size_t n_rows, const double* x, size_t n, double* y) {
  for (size_t r = 0; r < n_rows; ++r) {
    const double* row = rows + r * n;
    Vector<double> products = {};
    size_t i = 0;
    for (; i + kStep <= n; i += kStep) products += load(row + i) * load(x + i);
    double total = sum_of_lanes<double>(products);
    for (; i < n; ++i) total += row[i] * x[i];
    y[r] = total;
  }
}

// y += x * scale. Not __restrict: y and x overlap in the gradient of x . x.
inline void add_scaled(double* y, const double* x, double scale, size_t n) {
  size_t i = 0;
  for (; i + kStep <= n; i += kStep) store(y + i, load(y + i) + load(x + i) * scale);
  for (; i < n; ++i) y[i] += x[i] * scale;
}

// Adds gradient * d node / d operand to the gradient of each operand.
inline void pass_on(const GraphArrays& graph, const Node& node, double gradient) {
  double* grad = graph.grad;
  const double* data = graph.data;
  switch (node.operation) {
    case Operation::kLeaf:
      break;
    case Operation::kUnary:
      grad[node.left] += node.slope_left * gradient;
      break;
    case Operation::kBinary:
      grad[node.left] += node.slope_left * gradient;
      grad[node.right] += node.slope_right * gradient;
      break;
    case Operation::kSum:
      for (uint32_t i = 0; i < node.n_terms; ++i) grad[node.left + i] += gradient;
      break;
    case Operation::kDot:
      add_scaled(grad + node.left, data + node.right, gradient, node.n_terms);
      add_scaled(grad + node.right, data + node.left, gradient, node.n_terms);
      break;
    case Operation::kScatteredDot:
      for (uint32_t i = 0; i < node.n_terms; ++i) {
        const NodeId right = graph.terms[node.right + i];
        grad[node.left + i] += data[right] * gradient;
        grad[right] += data[node.left + i] * gradient;
      }
      break;
  }
}

// One pass downwards over the nodes. Operands are always below their node, so a node's gradient is
// complete when the pass reaches it.
void backward(const GraphArrays& graph, size_t first, size_t loss) {
  for (size_t i = loss + 1; i-- > first;) {
    const double gradient = graph.grad[i];
    if (gradient != 0.0) pass_on(graph, graph.nodes[i], gradient);
  }
}

void update(double* data, const double* grad, double* first_moment, double* second_moment, size_t n,
            const AdamStep& step) {
  const AdamFactors<double> factors(step);
  const size_t whole = n / kStep * kStep;
  const AdamState<double> state{data, first_moment, second_moment};
  for (size_t i = 0; i < whole; i += kStep) {
    adam(state, static_cast<int64_t>(i), load(grad + i), factors);
  }
  if (whole == n) return;
  double rest[4][kStep] = {};
  for (size_t i = whole; i < n; ++i) {
    rest[0][i - whole] = data[i];
    rest[1][i - whole] = first_moment[i];
    rest[2][i - whole] = second_moment[i];
    rest[3][i - whole] = grad[i];
  }
  adam({rest[0], rest[1], rest[2]}, 0, load(rest[3]), factors);
  for (size_t i = whole; i < n; ++i) {
    data[i] = rest[0][i - whole];
    first_moment[i] = rest[1][i - whole];
    second_moment[i] = rest[2][i - whole];
  }
}

}  // namespace

extern const GraphKernels kGraphKernels;
const GraphKernels kGraphKernels{dots, backward, update};

}  // namespace limpid::LIMPID_ISA
