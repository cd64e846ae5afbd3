#include "train/microgpt/graph_picture.h"

#include <fmt/format.h>

#include "base/svg.h"

namespace limpid::microgpt {
namespace {

constexpr double kHalfWidth = 80;
constexpr double kHalfHeight = 18;
constexpr SvgInk kLineInk{"line", "#888888"};
constexpr SvgInk kSlopeInk{"slope", "#555555"};
constexpr SvgInk kBorderInk{"border", "#335566"};
constexpr SvgInk kGradientInk{"gradient", "#aa4400"};

// The slope is written a third of the way along the line.
void draw_line(Svg& svg, const NamedValue& from, const NamedValue& to, double slope) {
  const SvgPoint begin{from.x, from.y + kHalfHeight};
  const SvgPoint end{to.x, to.y - kHalfHeight};
  svg.line(begin, end, kLineInk);
  svg.text({(2 * begin.x + end.x) / 3 + 6, (2 * begin.y + end.y) / 3 + 4},
           fmt::format("{:.4g}", slope), SvgAnchor::kStart, 0, kSlopeInk);
}

void draw_box(Svg& svg, const NamedValue& of) {
  constexpr double kMostText = 2 * kHalfWidth;
  svg.box({of.x, of.y}, 2 * kHalfWidth, 2 * kHalfHeight, kBorderInk, "#eef4ff");
  svg.text({of.x, of.y - 2}, fmt::format("{} = {:.4g}", of.text, of.value.data()),
           SvgAnchor::kMiddle, kMostText);
  svg.text({of.x, of.y + 13}, fmt::format("grad {:.4g}", of.value.grad()), SvgAnchor::kMiddle,
           kMostText, kGradientInk);
}

}  // namespace

std::string to_svg(const Graph& graph, const std::vector<NamedValue>& values, double width,
                   double height) {
  Svg svg(width, height, "A graph of Values, with slopes on the lines and gradients in the boxes");
  for (const NamedValue& to : values) {
    const Node& node = graph.node(to.value);
    const auto draw_from = [&](NodeId operand, double slope) {
      for (const NamedValue& from : values) {
        if (from.value.id() == operand) draw_line(svg, from, to, slope);
      }
    };
    // The lines of a sum or a dot product of many operands would cover the picture.
    const bool is_binary = node.operation == Operation::kBinary;
    if (is_binary || node.operation == Operation::kUnary) draw_from(node.left, node.slope_left);
    if (is_binary) draw_from(node.right, node.slope_right);
  }
  for (const NamedValue& value : values) draw_box(svg, value);
  return svg.str();
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
