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

constexpr double kLine = Svg::kFontSize + 1;  // height of a label
constexpr double kLongestLabel = 90;
constexpr int kShades = 10;

double widest(const std::vector<std::string>& labels) {
  double width = 0;
  for (const std::string& label : labels) width = std::max(width, text_width(label));
  return std::min(width, kLongestLabel);
}

// Every how many labels one has room.
size_t stride_of(double room_of_label, double room_of_cell) {
  return static_cast<size_t>(std::max(1.0, std::ceil(room_of_label / room_of_cell)));
}

// The labels below an x axis, upwards or across, whichever shows more of them.
struct LabelLayout {
  bool upward = false;
  size_t stride = 1;
};

LabelLayout layout_of(const std::vector<std::string>& labels, double width) {
  const double cell = width / static_cast<double>(labels.size());
  const size_t across = stride_of(widest(labels) + 6, cell);
  const size_t upward = stride_of(kLine, cell);
  return {upward < across, std::min(upward, across)};
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

SvgAxis SvgAxis::cells(std::vector<std::string> labels) {
  SvgAxis axis;
  axis.high = std::max<double>(1, static_cast<double>(labels.size()));
  axis.labels = std::move(labels);
  return axis;
}

SvgAxis SvgAxis::reversed() const {
  SvgAxis axis = *this;
  std::swap(axis.low, axis.high);
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
    : svg_(svg), margins_(margins), x_(std::move(x)), y_(std::move(y)) {
  if (!y_.labels.empty()) margins_.left = std::max(margins_.left, 44 + widest(y_.labels));
  if (!x_.labels.empty() && layout_of(x_.labels, area_width()).upward)
    margins_.bottom = std::max(margins_.bottom, 40 + widest(x_.labels));
}

double SvgPlot::x_of(double x) const { return left() + x_.share(x) * area_width(); }

double SvgPlot::y_of(double y) const { return bottom() - y_.share(y) * area_height(); }

void SvgPlot::heading(std::string_view text) {
  constexpr double kLeft = 16;
  svg_.text({kLeft, 20}, text, SvgAnchor::kStart, svg_.width() - 2 * kLeft);
}

void SvgPlot::x_labels() {
  if (x_.labels.empty()) return;
  const LabelLayout layout = layout_of(x_.labels, area_width());
  for (size_t i = 0; i < x_.labels.size(); i += layout.stride) {
    const double x = x_of(static_cast<double>(i) + 0.5);
    if (layout.upward) {
      svg_.upward_text({x + 4, bottom() + 8}, x_.labels[i], SvgAnchor::kEnd, kLongestLabel);
    } else {
      svg_.text({x, bottom() + 18}, x_.labels[i], SvgAnchor::kMiddle, kLongestLabel);
    }
  }
}

void SvgPlot::y_labels() {
  if (y_.labels.empty()) return;
  const SvgPoint frame[] = {{left(), bottom()},
                            {left(), margins_.top},
                            {right(), margins_.top},
                            {right(), bottom()},
                            {left(), bottom()}};
  svg_.polyline(frame, Svg::kGridInk);
  const auto n = static_cast<double>(y_.labels.size());
  const size_t stride = stride_of(kLine, area_height() / n);
  for (size_t i = 0; i < y_.labels.size(); i += stride)
    svg_.text({left() - 8, y_of(static_cast<double>(i) + 0.5) + 4}, y_.labels[i], SvgAnchor::kEnd,
              kLongestLabel);
}

void SvgPlot::axes(std::string_view x_name, std::string_view y_name) {
  x_labels();
  y_labels();
  for (const double tick : y_.ticks) {
    const double y = y_of(tick);
    svg_.line({left(), y}, {right(), y}, Svg::kGridInk);
    svg_.text({left() - 8, y + 4}, tick_text(tick), SvgAnchor::kEnd, left() - 8);
  }
  for (const double tick : x_.ticks)
    svg_.text({x_of(tick), bottom() + 18}, tick_text(tick), SvgAnchor::kMiddle);
  svg_.text({left() + area_width() / 2, svg_.height() - 12}, x_name, SvgAnchor::kMiddle,
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
  svg_.line({left(), y_of(y)}, {right(), y_of(y)}, ink);
  svg_.text({left() + 6, y_of(y) - 5}, label, SvgAnchor::kStart, area_width() - 6,
            {ink.name, ink.color});
}

void SvgPlot::legend(int row, std::string_view label, const SvgInk& ink) {
  constexpr double kSample = 28;
  const double y = 20 + 16 * row;
  svg_.line({left(), y}, {left() + kSample, y}, ink);
  svg_.text({left() + kSample + 8, y + 4}, label, SvgAnchor::kStart, area_width() - kSample - 8);
}

// Of a cell of a heat map.
SvgPoint SvgPlot::corner(size_t column, size_t row, size_t n_rows, double width,
                         double height) const {
  const bool from_top = y_.high < y_.low;
  const size_t up = from_top ? n_rows - row : row + 1;
  return {left() + static_cast<double>(column) * width,
          bottom() - static_cast<double>(up) * height};
}

// Shades in steps, so that the cells of one step are one element.
void SvgPlot::heat_map(const std::vector<std::vector<double>>& columns, const SvgInk& ink,
                       const SvgInk* below) {
  if (columns.empty() || columns.front().empty()) return;
  const double width = area_width() / static_cast<double>(columns.size());
  const double height = area_height() / static_cast<double>(columns.front().size());
  std::array<std::vector<SvgPoint>, 2 * kShades + 1> corners;
  for (size_t c = 0; c < columns.size(); ++c) {
    for (size_t r = 0; r < columns[c].size(); ++r) {
      const double value = columns[c][r];
      const double shade = std::isnan(value) ? 0 : std::clamp(value, below ? -1.0 : 0.0, 1.0);
      const double step = std::copysign(std::ceil(std::abs(shade) * kShades), shade);
      corners[static_cast<size_t>(kShades + step)].push_back(
          corner(c, r, columns[c].size(), width, height));
    }
  }
  for (size_t step = 1; step <= kShades; ++step) {
    const double opacity = static_cast<double>(step) / kShades;
    svg_.cells(corners[kShades + step], width, height, ink, opacity);
    if (below) svg_.cells(corners[kShades - step], width, height, *below, opacity);
  }
}

void SvgPlot::cell_texts(const std::vector<std::vector<std::string>>& texts,
                         const std::vector<std::vector<double>>& shades) {
  constexpr double kDark = 0.8;  // a shade
  constexpr SvgInk kPaleText{"pale-text", "#ffffff"};
  if (texts.empty() || texts.front().empty()) return;
  const double width = area_width() / static_cast<double>(texts.size());
  const double height = area_height() / static_cast<double>(texts.front().size());
  if (width - 4 < text_width("abc") || height < kLine) return;
  for (size_t c = 0; c < texts.size(); ++c) {
    for (size_t r = 0; r < texts[c].size(); ++r) {
      const SvgPoint at = corner(c, r, texts[c].size(), width, height);
      svg_.text({at.x + width / 2, at.y + height / 2 + 4}, texts[c][r], SvgAnchor::kMiddle,
                width - 4, shades[c][r] > kDark ? kPaleText : Svg::kTextInk);
    }
  }
}

void SvgPlot::color_bar(const SvgAxis& values, std::string_view name, const SvgInk& ink,
                        const SvgInk* below) {
  constexpr double kWidth = 12;
  const double left = right() + 14;
  std::vector<double> shades;
  for (int step = below ? -kShades : 0; step < kShades; ++step)
    shades.push_back((step + (step < 0 ? 0.0 : 1.0)) / kShades);
  const Margins margins{left, svg_.width() - left - kWidth, margins_.top, margins_.bottom};
  SvgPlot bar(svg_, margins, {}, {});
  bar.heat_map({shades}, ink, below);
  for (const double tick : values.ticks)
    svg_.text({left + kWidth + 5, bar.y_of(values.share(tick)) + 4}, tick_text(tick));
  svg_.upward_text({left + kColorBar - 20, margins_.top + area_height() / 2}, name);
}

void SvgPlot::histogram(const std::vector<double>& heights, const SvgInk& ink) {
  if (heights.empty()) return;
  const double width = area_width() / static_cast<double>(heights.size());
  for (size_t i = 0; i < heights.size(); ++i) {
    const SvgPoint corner{left() + static_cast<double>(i) * width, y_of(heights[i])};
    if (heights[i] > 0) svg_.cells({&corner, 1}, width, bottom() - corner.y, ink, 1);
  }
}

}  // namespace limpid
