// Plots: values on two axes, drawn into a picture as curves, levels, heat maps or histograms.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/svg.h"

namespace limpid {

// Colours that colour-blind people can tell apart (Okabe & Ito 2008, "Color universal design").
// Lines differ in dashes or marks as well.
inline constexpr SvgInk kBlueInk{"blue", "#0072b2", 2};
inline constexpr SvgInk kOrangeInk{"orange", "#d55e00", 2};
inline constexpr SvgInk kHeatInk{"heat", "#0072b2"};

// From values to coordinates, with round numbers to write beside the axis.
struct SvgAxis {
  double low = 0;  // values at the ends; decimal logarithms where `logarithmic`
  double high = 1;
  bool logarithmic = false;
  std::vector<double> ticks;             // values
  std::vector<std::string> labels = {};  // of the cells 0 to 1, 1 to 2, …, instead of ticks

  // About `n_ticks` ticks at multiples of 1, 2 or 5 times a power of ten. With `rounded`, the ends
  // are such multiples too.
  static SvgAxis linear(double low, double high, int n_ticks, bool rounded = false);
  // Whole powers of ten at both ends; `low` > 0.
  static SvgAxis powers_of_ten(double low, double high);
  // Cells of width 1, each with a label: tokens, layers.
  static SvgAxis cells(std::vector<std::string> labels);

  // From the high end to the low one: on a y axis the first cell is on top.
  SvgAxis reversed() const;

  // Where a value lies between the ends: 0 to 1.
  double share(double value) const;
};

// "0.002", "2,000", "1e-05".
std::string tick_text(double value);

// The area of a picture in which values are drawn; those that are not finite are left out.
class SvgPlot {
 public:
  struct Margins {
    double left = 80;
    double right = 24;
    double top = 56;
    double bottom = 52;
  };
  static constexpr double kColorBar = 88;  // the right margin that a color_bar needs

  // The left and the lower margin grow as the labels of cells need it.
  SvgPlot(Svg& svg, const Margins& margins, SvgAxis x, SvgAxis y);

  SvgPoint at(double x, double y) const { return {x_of(x), y_of(y)}; }

  // What the picture shows, in a line above the area.
  void heading(std::string_view text);
  // Grid lines, ticks and the names of the axes. Where the labels of cells have no room, only every
  // second, third, … is written.
  void axes(std::string_view x_name, std::string_view y_name);
  void curve(const std::vector<SvgPoint>& values, const SvgInk& ink, std::string_view id = {});
  // A small circle at each value.
  void marks(const std::vector<SvgPoint>& values, const SvgInk& ink);
  // A horizontal line with a label.
  void level(double y, std::string_view label, const SvgInk& ink);
  // Line `row` of the legend, above the area; a heading takes line 0.
  void legend(int row, std::string_view label, const SvgInk& ink);
  // Shades [n_columns][n_rows] up to 1: columns fill the x axis, and rows the y axis from its least
  // value on. What is not above 0 is not drawn, or in the ink `below`, down to -1.
  void heat_map(const std::vector<std::vector<double>>& columns, const SvgInk& ink,
                const SvgInk* below = nullptr);
  // Texts in the cells of a heat map with these shades, as far as there is room.
  void cell_texts(const std::vector<std::vector<std::string>>& texts,
                  const std::vector<std::vector<double>>& shades);
  // The shades of a heat map to the right of the area, with the values that they stand for:
  // `values` goes from shade 0, or with `below` from -1, to shade 1.
  void color_bar(const SvgAxis& values, std::string_view name, const SvgInk& ink,
                 const SvgInk* below = nullptr);
  // Bars from the x axis: heights in values of y, side by side over the x axis.
  void histogram(const std::vector<double>& heights, const SvgInk& ink);

 private:
  SvgPoint corner(size_t column, size_t row, size_t n_rows, double width, double height) const;
  void x_labels();
  void y_labels();
  double x_of(double x) const;
  double y_of(double y) const;
  double left() const { return margins_.left; }
  double right() const { return svg_.width() - margins_.right; }
  double bottom() const { return svg_.height() - margins_.bottom; }
  double area_width() const { return svg_.width() - margins_.left - margins_.right; }
  double area_height() const { return svg_.height() - margins_.top - margins_.bottom; }

  Svg& svg_;
  Margins margins_;
  SvgAxis x_;
  SvgAxis y_;
};

}  // namespace limpid
