#include "train/microgpt/graph_picture.h"

#include <fmt/format.h>

namespace limpid::microgpt {
namespace {

constexpr double kHalfWidth = 80;
constexpr double kHalfHeight = 18;

struct Line {
  NodeId from;
  double slope;
};

std::vector<Line> lines_into(const Graph& graph, Value value) {
  const Node& node = graph.node(value);
  if (node.operation == Operation::kUnary) return {{node.left, node.slope_left}};
  if (node.operation == Operation::kBinary) {
    return {{node.left, node.slope_left}, {node.right, node.slope_right}};
  }
  return {};
}

std::string draw_line(const NamedValue& from, const NamedValue& to, double slope) {
  const double begin = from.y + kHalfHeight;
  const double end = to.y - kHalfHeight;
  return fmt::format("<line x1=\"{}\" y1=\"{}\" x2=\"{}\" y2=\"{}\" stroke=\"#888\"/>\n", from.x,
                     begin, to.x, end) +
         fmt::format("<text x=\"{:.0f}\" y=\"{:.0f}\" fill=\"#555\">{:.4g}</text>\n",
                     (2 * from.x + to.x) / 3 + 6, (2 * begin + end) / 3 + 4, slope);
}

std::string draw_box(const NamedValue& of) {
  return fmt::format(
             "<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" rx=\"6\" "
             "fill=\"#eef4ff\" stroke=\"#356\"/>\n",
             of.x - kHalfWidth, of.y - kHalfHeight, 2 * kHalfWidth, 2 * kHalfHeight) +
         fmt::format("<text x=\"{}\" y=\"{}\" text-anchor=\"middle\">{} = {:.4g}</text>\n", of.x,
                     of.y - 2, of.text, of.value.data()) +
         fmt::format(
             "<text x=\"{}\" y=\"{}\" text-anchor=\"middle\" fill=\"#a40\">grad "
             "{:.4g}</text>\n",
             of.x, of.y + 13, of.value.grad());
}

}  // namespace

std::string to_svg(const Graph& graph, const std::vector<NamedValue>& values, double width,
                   double height) {
  std::string svg = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {} {}\" font-family=\"sans-serif\" "
      "font-size=\"12\">\n<title>A graph of Values, with slopes on the lines and gradients in the "
      "boxes</title>\n",
      width, height);
  for (const NamedValue& to : values) {
    for (const Line& line : lines_into(graph, to.value)) {
      for (const NamedValue& from : values) {
        if (from.value.id() == line.from) svg += draw_line(from, to, line.slope);
      }
    }
  }
  for (const NamedValue& value : values) svg += draw_box(value);
  return svg + "</svg>\n";
}

std::string example_graph_svg() {
  Graph graph;
  const Value a = graph.leaf(2.0);
  const Value b = graph.leaf(3.0);
  const Value product = a * b;
  const Value square = a.pow(2.0);
  const Value sum = product + square;
  const Value loss = sum.log();
  graph.backward(loss);
  return to_svg(graph,
                {{a, "a", 90, 40},
                 {b, "b", 310, 40},
                 {product, "a * b", 310, 140},
                 {square, "a.pow(2)", 90, 140},
                 {sum, "a * b + a.pow(2)", 200, 220},
                 {loss, "loss = log(...)", 200, 295}},
                400, 330);
}

}  // namespace limpid::microgpt
