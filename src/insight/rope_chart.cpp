#include "insight/rope_chart.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "base/check.h"
#include "layouts/rope_scaling.h"

namespace limpid {
namespace {

constexpr double kWidth = 720;  // of the page, in SVG units; the margins follow
constexpr double kHeight = 420;
constexpr double kLeft = 80;
constexpr double kRight = 24;
constexpr double kTop = 56;
constexpr double kBottom = 52;
constexpr const char* kBefore = "#7a869a";
constexpr const char* kAfter = "#0b6bcb";
constexpr const char* kContext = "#b3541e";

// Maps pairs and wavelengths to coordinates on the page, and draws what depends on them. The
// vertical axis has whole powers of ten at both ends.
class Chart {
 public:
  Chart(size_t n_pairs, double shortest, double longest)
      : n_pairs_(n_pairs),
        low_(std::floor(std::log10(shortest))),
        high_(std::max(low_ + 1, std::ceil(std::log10(longest)))) {}

  double x(double pair) const {
    const double last = std::max<double>(1, static_cast<double>(n_pairs_) - 1);
    return kLeft + pair / last * (kWidth - kLeft - kRight);
  }
  double y(double wavelength) const {
    const double part = (std::log10(wavelength) - low_) / (high_ - low_);
    return kHeight - kBottom - part * (kHeight - kTop - kBottom);
  }

  // A grid line and a label for each power of ten, some labels for pairs, and the names of the
  // axes.
  std::string axes() const {
    std::string svg;
    for (double power = low_; power <= high_; ++power) {
      const double at = y(std::pow(10.0, power));
      svg += fmt::format(
          "<line x1='{0}' y1='{1:.1f}' x2='{2}' y2='{1:.1f}' stroke='#e3e6ea'/>\n"
          "<text x='{3}' y='{4:.1f}' text-anchor='end'>{5}</text>\n",
          kLeft, at, kWidth - kRight, kLeft - 8, at + 4,
          power < 0 || power > 6 ? fmt::format("1e{}", power)
                                 : fmt::format("{}", std::pow(10.0, power)));
    }
    const size_t step = std::max<size_t>(1, (n_pairs_ + 7) / 8);
    for (size_t pair = 0; pair < n_pairs_; pair += step) {
      svg += fmt::format("<text x='{:.1f}' y='{}' text-anchor='middle'>{}</text>\n",
                         x(static_cast<double>(pair)), kHeight - kBottom + 18, pair);
    }
    return svg + fmt::format(
                     "<text x='{}' y='{}' text-anchor='middle'>pair of elements of a head</text>\n"
                     "<text transform='translate(18 {}) rotate(-90)' text-anchor='middle'>"
                     "tokens in one turn</text>\n",
                     kLeft + (kWidth - kLeft - kRight) / 2, kHeight - 12,
                     kTop + (kHeight - kTop - kBottom) / 2);
  }

  // A curve: one point for each pair.
  std::string line(const std::vector<double>& wavelengths, const char* id, const char* color,
                   const char* dashes) const {
    std::string points;
    for (size_t i = 0; i < wavelengths.size(); ++i) {
      points += fmt::format("{}{:.2f},{:.2f}", i == 0 ? "" : " ", x(static_cast<double>(i)),
                            y(wavelengths[i]));
    }
    return fmt::format(
        "<polyline id='{}' points='{}' fill='none' stroke='{}' stroke-width='2' "
        "stroke-dasharray='{}'/>\n",
        id, points, color, dashes);
  }

  // A horizontal line with a label.
  std::string level(double tokens, const std::string& label) const {
    return fmt::format(
        "<line x1='{0}' y1='{1:.1f}' x2='{2}' y2='{1:.1f}' stroke='{3}' stroke-dasharray='2 3'/>\n"
        "<text x='{4}' y='{5:.1f}' fill='{3}'>{6}</text>\n",
        kLeft, y(tokens), kWidth - kRight, kContext, kLeft + 6, y(tokens) - 5, label);
  }

 private:
  size_t n_pairs_;
  double low_;  // the axis goes from 10^low_ to 10^high_
  double high_;
};

// A pair with frequency f turns by f radians per token, so a full turn takes 2 pi / f tokens.
std::vector<double> wavelengths_of(const std::vector<double>& frequencies) {
  std::vector<double> wavelengths;
  wavelengths.reserve(frequencies.size());
  for (const double frequency : frequencies)
    wavelengths.push_back(2 * std::numbers::pi / frequency);
  return wavelengths;
}

// A line of the legend.
std::string legend(double row, const char* color, const char* dashes, const std::string& text) {
  const double y = 20 + row * 16;
  return fmt::format(
      "<line x1='{0}' y1='{1}' x2='{2}' y2='{1}' stroke='{3}' stroke-width='2' "
      "stroke-dasharray='{4}'/>\n<text x='{5}' y='{6}'>{7}</text>\n",
      kLeft, y, kLeft + 28, color, dashes, kLeft + 36, y + 4, text);
}

}  // namespace

// The curve before scaling is drawn last and dashed, so that both are visible where they coincide.
std::string rope_chart(const DecoderSpec& spec) {
  const RopeSpec& rope = spec.rope;
  LIMPID_CHECK(UnsupportedError,
               spec.position == PositionKind::kRope && !rope.inverse_frequencies.empty(),
               "a {} model has no rotary positions to draw", spec.architecture);
  const std::vector<double> before = wavelengths_of(rope_frequencies(rope.base, rope.n_rot));
  const std::vector<double> after = wavelengths_of(rope.inverse_frequencies);
  const auto n_ctx = static_cast<double>(spec.n_ctx_train);
  const double longest =
      std::max({*std::ranges::max_element(before), *std::ranges::max_element(after), n_ctx});
  const double shortest =
      std::min(*std::ranges::min_element(before), *std::ranges::min_element(after));
  const Chart chart(before.size(), shortest, longest);
  return fmt::format(
             "<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 {0} {1}' width='{0}' "
             "height='{1}' font-family='sans-serif' font-size='12' fill='#1f2933'>\n"
             "<title>Rotary positions: {2} of {3} elements of a head, base {4:g}, scaling {5}"
             "</title>\n<rect width='100%' height='100%' fill='#ffffff'/>\n",
             kWidth, kHeight, rope.n_rot, spec.head_dim, rope.base, rope.scaling) +
         legend(0, kBefore, "5 4", fmt::format("before scaling, base {:g}", rope.base)) +
         legend(1, kAfter, "none",
                rope.scaling == "none" ? "as used: the same, there is no scaling"
                                       : fmt::format("as used, scaling {}", rope.scaling)) +
         chart.axes() + chart.level(n_ctx, fmt::format("the context, {} tokens", n_ctx)) +
         chart.line(after, "after", kAfter, "none") + chart.line(before, "before", kBefore, "5 4") +
         "</svg>\n";
}

}  // namespace limpid
