// A graph of Values as a picture.
#pragma once

#include <string>
#include <vector>

#include "train/microgpt/value.h"

namespace limpid::microgpt {

struct NamedValue {
  Value value;
  std::string text;  // how it was made
  double x, y;       // the middle of its box
};

// SVG of the values with their data and gradients, and their slopes on the lines between them: all
// as `graph` has them behind backward(). Values made of others than these lack those lines.
std::string to_svg(const Graph& graph, const std::vector<NamedValue>& values, double width,
                   double height);

// log(a b + a^2) at a = 2, b = 3: docs/microgpt-graph.svg.
std::string example_graph_svg();

}  // namespace limpid::microgpt
