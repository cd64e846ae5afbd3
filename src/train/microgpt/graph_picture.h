// Draws a graph of Values.
#pragma once

#include <string>
#include <vector>

#include "train/microgpt/value.h"

namespace limpid::microgpt {

// A value to draw, with its label and position.
struct NamedValue {
  Value value;
  std::string text;  // how it was computed
  double x, y;       // the centre of its box
};

// Returns an SVG of the values with their data and gradients, and with the derivatives on the lines
// between them, as they are in `graph` after backward(). Operands that are not in `values` are not
// drawn.
std::string to_svg(const Graph& graph, const std::vector<NamedValue>& values, double width,
                   double height);

// Returns the picture of log(a b + a^2) at a = 2, b = 3, which is docs/microgpt-graph.svg.
std::string example_graph_svg();

}  // namespace limpid::microgpt
