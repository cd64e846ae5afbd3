// A picture of all tensors of a checkpoint: a line for each, with the distribution of its weights
// (heights are square roots, so that tails show) and its largest singular values (logarithmic).
#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/svg_plot.h"
#include "cli/inspect.h"
#include "cli/json_format.h"

namespace limpid::cli {
namespace {

constexpr double kWidth = 900;
constexpr double kTop = 44;
constexpr double kRow = 76;    // height of a tensor's line
constexpr double kName = 250;  // width of its text
constexpr double kGap = 60;    // between the plots
constexpr double kEnds = 64;   // for the largest and the least singular value, on the right
constexpr double kPlot = (kWidth - kName - kGap - kEnds) / 2;
constexpr SvgInk kBeside{"orange", "#d55e00", 2, "5 3"};

// The place of the `i`-th plot (0, 1) of line `row`.
SvgPlot::Margins place_of(size_t row, size_t i, double height) {
  const double left = kName + static_cast<double>(i) * (kPlot + kGap);
  const double top = kTop + static_cast<double>(row) * kRow + 6;
  return {left, kWidth - left - kPlot, top, height - top - kRow + 20};
}

std::vector<double> roots_of(const Json& histogram) {
  auto heights = histogram.get<std::vector<double>>();
  const double sum = std::max(1.0, std::accumulate(heights.begin(), heights.end(), 0.0));
  for (double& height : heights) height = std::sqrt(height / sum);
  return heights;
}

void draw_histogram(Svg& svg, const SvgPlot::Margins& margins, const Json& one, const Json& other) {
  const std::vector<double> heights = roots_of(one["histogram"]);
  double most = *std::ranges::max_element(heights);
  std::vector<SvgPoint> outline;
  if (other.contains("histogram")) {
    for (const double height : roots_of(other["histogram"])) {
      outline.push_back({static_cast<double>(outline.size()) + 0.5, height});
      most = std::max(most, height);
    }
  }
  SvgPlot plot(svg, margins, {0, static_cast<double>(heights.size()), false, {}},
               {0, std::max(most, 1e-9), false, {}});
  plot.histogram(heights, kHeatInk);
  if (!outline.empty()) plot.curve(outline, kBeside);
}

// None of no tensor.
std::vector<SvgPoint> spectrum_of(const Json& tensor) {
  std::vector<SvgPoint> points;
  for (const double value : tensor.value("singular_values", std::vector<double>())) {
    if (value <= 0) break;
    points.push_back({static_cast<double>(points.size() + 1), value});
  }
  return points;
}

void draw_spectrum(Svg& svg, const SvgPlot::Margins& margins, const Json& one, const Json& other) {
  const std::vector<SvgPoint> points = spectrum_of(one);
  if (points.empty()) return;
  const std::vector<SvgPoint> others = spectrum_of(other);
  const double low = std::min(points.back().y, others.empty() ? INFINITY : others.back().y);
  const double high = std::max(points.front().y, others.empty() ? 0 : others.front().y);
  // The ends are decimal logarithms, with room for a flat spectrum.
  SvgPlot plot(svg, margins, {1, std::max<double>(2, std::ssize(points)), false, {}},
               {std::log10(low) - 0.05, std::log10(high) + 0.05, true, {}});
  plot.curve(points, kBlueInk);
  plot.marks(points, kBlueInk);
  if (!others.empty()) plot.curve(others, kBeside);
  const double right = kWidth - margins.right + 6;
  svg.text({right, margins.top + 10}, fmt::format("{:.3g}", points.front().y));
  svg.text({right, margins.top + kRow - 26}, fmt::format("{:.3g}", points.back().y));
}

}  // namespace

std::string weights_chart(const Json& report) {
  const Json& tensors = report["tensors"];
  const double height = kTop + kRow * static_cast<double>(tensors.size()) + 8;
  Svg svg(kWidth, height, "Distribution and largest singular values of each tensor");
  svg.text({kName, 18}, "weights from -4 to 4 root mean squares");
  svg.text({kName + kPlot + kGap, 18}, "largest singular values, logarithmic");
  if (!report["beside"].is_null())
    svg.text({16, 18}, "dashes: the other checkpoint", SvgAnchor::kStart, kName - 24,
             {kBeside.name, kBeside.color});
  for (size_t row = 0; row < tensors.size(); ++row) {
    const Json& one = tensors[row];
    const Json other = one.value("other", Json::object());
    const double y = kTop + static_cast<double>(row) * kRow;
    svg.line({16, y}, {kWidth - 16, y}, Svg::kGridInk);
    svg.text({16, y + 24}, one["name"].get<std::string>(), SvgAnchor::kStart, kName - 32);
    svg.text({16, y + 42}, fmt::format("{} {}, rms {:.3g}", one["type"], one["shape"], one["rms"]),
             SvgAnchor::kStart, kName - 32);
    if (one.contains("difference") && one["difference"].is_number())
      svg.text({16, y + 60}, fmt::format("difference {:.3g}", one["difference"]));
    draw_histogram(svg, place_of(row, 0, height), one, other);
    draw_spectrum(svg, place_of(row, 1, height), one, other);
  }
  return svg.str();
}

}  // namespace limpid::cli
