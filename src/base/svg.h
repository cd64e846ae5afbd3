// Pictures as SVG text (W3C, Scalable Vector Graphics 1.1): lines, areas, text that fits. Plots
// with axes are drawn with svg_plot.h.
//
// A picture is a file of its own, where the colours are those of its inks, or part of a page, whose
// style sheet may give other colours to the class names of the inks (a dark page, one for print).
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace limpid {

// `text` for the content or an attribute of an element of XML or HTML: &, <, >, " and ' are written
// as entities. Control characters other than newline and tab, and what else XML does not allow
// (U+FFFE, U+FFFF, bytes that are not UTF-8), become U+FFFD.
std::string escape_markup(std::string_view text);

struct SvgPoint {
  double x = 0;
  double y = 0;
};

// How a line, an area or a text is coloured. `name` is its class.
struct SvgInk {
  const char* name;
  const char* color;
  double width = 1;
  const char* dashes = "";  // lengths of strokes and gaps: "5 4"
};

enum class SvgAnchor : uint8_t { kStart, kMiddle, kEnd };

// A picture. Each call draws over what is there. x goes to the right and y downwards.
class Svg {
 public:
  static constexpr double kFontSize = 12;

  // `title` is what screen readers say.
  Svg(double width, double height, std::string_view title);

  double width() const { return width_; }
  double height() const { return height_; }

  void line(SvgPoint from, SvgPoint to, const SvgInk& ink);
  void polyline(std::span<const SvgPoint> points, const SvgInk& ink, std::string_view id = {});
  void circle(SvgPoint center, double radius, const SvgInk& ink);
  // A rectangle with round corners around a center.
  void box(SvgPoint center, double width, double height, const SvgInk& border, const char* fill);
  // Rectangles of one shade, as one element: their upper left corners. `opacity` in [0, 1].
  void cells(std::span<const SvgPoint> corners, double width, double height, const SvgInk& ink,
             double opacity);
  // At `at`, on the base line. A text wider than `most_width` is cut and ends with an ellipsis; 0:
  // any width.
  void text(SvgPoint at, std::string_view text, SvgAnchor anchor = SvgAnchor::kStart,
            double most_width = 0, const SvgInk& ink = kTextInk);
  // The same, turned upwards.
  void upward_text(SvgPoint at, std::string_view text, SvgAnchor anchor = SvgAnchor::kMiddle,
                   double most_width = 0);

  std::string str() const;

  static constexpr SvgInk kTextInk{"text", "#1f2933"};
  static constexpr SvgInk kGridInk{"grid", "#e3e6ea"};

 private:
  double width_;
  double height_;
  std::string title_;
  std::string body_;
};

// About how wide `text` is in the picture's font: 0.55 of the font size for a character, and all of
// it for one of East Asia or an emoji.
double text_width(std::string_view text);
// As much of `text` as is about `most_width` wide, with an ellipsis where it was cut.
std::string fit_text(std::string_view text, double most_width);

}  // namespace limpid
