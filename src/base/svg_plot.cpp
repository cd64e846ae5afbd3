#include "base/svg_plot.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

namespace limpid {
namespace {

// The least of 1, 2, 5, 10 times a power of ten that is at least `step`.
double round_step(double step) {
  const double power = std::pow(10.0, std::floor(std::log10(step)));
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (factor * power >= step * (1 - 1e-9)) return factor * power;
  }
  return 10 * power;
}

}  // namespace

SvgAxis SvgAxis::linear(double low, double high, int n_ticks, bool rounded) {
  // Values that are equal, or nearly: multiples of a step far below them would be rounded away.
  const double least = 1e-6 * std::max(std::abs(low), std::abs(high));
  if (!(high - low > least)) high = low + (low == 0 ? 1 : std::abs(low) / 10);
  SvgAxis axis;
  const double step = round_step((high - low) / n_ticks);
  axis.low = rounded ? std::floor(low / step) * step : low;
  axis.high = rounded ? std::ceil(high / step) * step : high;
  const double first = std::ceil(axis.low / step - 1e-9);
  for (double i = first; i * step <= axis.high + 1e-9 * step; ++i) axis.ticks.push_back(i * step);
  return axis;
}

SvgAxis SvgAxis::powers_of_ten(double low, double high) {
  SvgAxis axis;
  axis.logarithmic = true;
  axis.low = std::floor(std::log10(low));
  axis.high = std::max(axis.low + 1, std::ceil(std::log10(high)));
  for (double power = axis.low; power <= axis.high; ++power)
    axis.ticks.push_back(std::pow(10.0, power));
  return axis;
}

double SvgAxis::share(double value) const {
  const double v = logarithmic ? std::log10(value) : value;
  return (v - low) / (high - low);
}

std::string tick_text(double value) {
  const double size = std::abs(value);
  if (value == 0) return "0";
  if (size >= 1e7 || size < 1e-3) return fmt::format("{:.2g}", value);
  if (size >= 1000 && value == std::floor(value))
    return fmt::format("{}", fmt::group_digits(static_cast<int64_t>(value)));
  return fmt::format("{:.4g}", value);
}

SvgPlot::SvgPlot(Svg& svg, const Margins& margins, SvgAxis x, SvgAxis y)
    : svg_(svg), margins_(margins), x_(std::move(x)), y_(std::move(y)) {}

double SvgPlot::x_of(double x) const { return margins_.left + x_.share(x) * area_width(); }

double SvgPlot::y_of(double y) const {
  return svg_.height() - margins_.bottom - y_.share(y) * area_height();
}

void SvgPlot::axes(std::string_view x_name, std::string_view y_name) {
  const double left = margins_.left;
  const double right = svg_.width() - margins_.right;
  const double bottom = svg_.height() - margins_.bottom;
  for (const double tick : y_.ticks) {
    const double y = y_of(tick);
    svg_.line({left, y}, {right, y}, Svg::kGridInk);
    svg_.text({left - 8, y + 4}, tick_text(tick), SvgAnchor::kEnd, left - 8);
  }
  for (const double tick : x_.ticks)
    svg_.text({x_of(tick), bottom + 18}, tick_text(tick), SvgAnchor::kMiddle);
  svg_.text({left + area_width() / 2, svg_.height() - 12}, x_name, SvgAnchor::kMiddle,
            area_width());
  svg_.upward_text({18, margins_.top + area_height() / 2}, y_name);
}

void SvgPlot::curve(const std::vector<SvgPoint>& values, const SvgInk& ink, std::string_view id) {
  std::vector<SvgPoint> points;
  points.reserve(values.size());
  for (const SvgPoint& value : values)
    if (std::isfinite(value.y)) points.push_back(at(value.x, value.y));
  svg_.polyline(points, ink, id);
}

void SvgPlot::marks(const std::vector<SvgPoint>& values, const SvgInk& ink) {
  constexpr double kRadius = 3;
  for (const SvgPoint& value : values)
    if (std::isfinite(value.y)) svg_.circle(at(value.x, value.y), kRadius, ink);
}

void SvgPlot::level(double y, std::string_view label, const SvgInk& ink) {
  svg_.line({margins_.left, y_of(y)}, {svg_.width() - margins_.right, y_of(y)}, ink);
  svg_.text({margins_.left + 6, y_of(y) - 5}, label, SvgAnchor::kStart, area_width() - 6,
            {ink.name, ink.color});
}

void SvgPlot::legend(int row, std::string_view label, const SvgInk& ink) {
  constexpr double kSample = 28;
  const double y = 20 + 16 * row;
  svg_.line({margins_.left, y}, {margins_.left + kSample, y}, ink);
  svg_.text({margins_.left + kSample + 8, y + 4}, label, SvgAnchor::kStart,
            area_width() - kSample - 8);
}

// Shades in steps, so that the cells of one step are one element.
void SvgPlot::heat_map(const std::vector<std::vector<double>>& columns, const SvgInk& ink) {
  constexpr size_t kShades = 10;
  if (columns.empty() || columns.front().empty()) return;
  const double width = area_width() / static_cast<double>(columns.size());
  const double height = area_height() / static_cast<double>(columns.front().size());
  std::array<std::vector<SvgPoint>, kShades + 1> corners;
  for (size_t c = 0; c < columns.size(); ++c) {
    for (size_t r = 0; r < columns[c].size(); ++r) {
      const double shade = columns[c][r] > 0 ? std::min(columns[c][r], 1.0) : 0;
      corners[static_cast<size_t>(std::ceil(shade * kShades))].push_back(
          {margins_.left + static_cast<double>(c) * width,
           svg_.height() - margins_.bottom - static_cast<double>(r + 1) * height});
    }
  }
  for (size_t shade = 1; shade <= kShades; ++shade)
    svg_.cells(corners[shade], width, height, ink, static_cast<double>(shade) / kShades);
}

void SvgPlot::histogram(const std::vector<double>& heights, const SvgInk& ink) {
  if (heights.empty()) return;
  const double width = area_width() / static_cast<double>(heights.size());
  const double bottom = svg_.height() - margins_.bottom;
  for (size_t i = 0; i < heights.size(); ++i) {
    const SvgPoint corner{margins_.left + static_cast<double>(i) * width, y_of(heights[i])};
    if (heights[i] > 0) svg_.cells({&corner, 1}, width, bottom - corner.y, ink, 1);
  }
}

}  // namespace limpid
