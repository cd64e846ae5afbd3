#include "insight/rope_chart.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "base/check.h"
#include "base/svg_plot.h"
#include "layouts/rope_scaling.h"

namespace limpid {
namespace {

constexpr SvgInk kBefore{"before", "#7a869a", 2, "5 4"};
constexpr SvgInk kAfter{"after", "#0072b2", 2};
constexpr SvgInk kContext{"context", "#b3541e", 1, "2 3"};

// One point for each pair. A pair with frequency f turns by f radians per token, so a full turn
// takes 2 pi / f tokens.
std::vector<SvgPoint> wavelengths_of(const std::vector<double>& frequencies) {
  std::vector<SvgPoint> points;
  points.reserve(frequencies.size());
  for (const double frequency : frequencies)
    points.push_back({static_cast<double>(points.size()), 2 * std::numbers::pi / frequency});
  return points;
}

}  // namespace

// The curve before scaling is drawn last and dashed, so that both are visible where they coincide.
std::string rope_chart(const DecoderSpec& spec) {
  const RopeSpec& rope = spec.rope;
  LIMPID_CHECK(UnsupportedError,
               spec.position == PositionKind::kRope && !rope.inverse_frequencies.empty(),
               "a {} model has no rotary positions to draw", spec.architecture);
  const std::vector<SvgPoint> before = wavelengths_of(rope_frequencies(rope.base, rope.n_rot));
  const std::vector<SvgPoint> after = wavelengths_of(rope.inverse_frequencies);
  const auto n_ctx = static_cast<double>(spec.n_ctx_train);
  double longest = n_ctx;
  double shortest = n_ctx;
  for (const auto* points : {&before, &after}) {
    for (const SvgPoint& point : *points) {
      if (!std::isfinite(point.y)) continue;  // a pair with frequency 0 never turns
      longest = std::max(longest, point.y);
      shortest = std::min(shortest, point.y);
    }
  }
  Svg svg(720, 420,
          fmt::format("Rotary positions: {} of {} elements of a head, base {:g}, scaling {}",
                      rope.n_rot, spec.head_dim, rope.base, rope.scaling));
  const double last_pair = std::max<double>(1, static_cast<double>(before.size()) - 1);
  SvgPlot plot(svg, {}, SvgAxis::linear(0, last_pair, 8),
               SvgAxis::powers_of_ten(shortest, longest));
  plot.legend(0, fmt::format("before scaling, base {:g}", rope.base), kBefore);
  plot.legend(1,
              rope.scaling == "none" ? "as used: the same, without scaling"
                                     : fmt::format("as used, scaling {}", rope.scaling),
              kAfter);
  plot.axes("pair of elements of a head", "tokens in one turn");
  plot.level(n_ctx, fmt::format("the context, {} tokens", n_ctx), kContext);
  plot.curve(after, kAfter, "after");
  plot.curve(before, kBefore, "before");
  return svg.str();
}

}  // namespace limpid
