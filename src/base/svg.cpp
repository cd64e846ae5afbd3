#include "base/svg.h"

#include <fmt/format.h>

#include <cstdint>

#include "base/utf8.h"

namespace limpid {
namespace {

// The width of the character that begins with this byte; 0 for a byte inside a character, so a sum
// over bytes is the width of a text. 0xE3 begins U+3000, from which on characters are mostly
// square.
double width_from(char lead) {
  if (!unicode::begins_character(lead)) return 0;
  return (static_cast<uint8_t>(lead) >= 0xE3 ? 1 : 0.55) * Svg::kFontSize;
}

// XML forbids U+FFFE, U+FFFF and most control characters. DEL, which it allows, is refused too.
constexpr bool is_allowed(char32_t c) {
  return c == '\n' || c == '\t' ||
         (c >= 0x20 && c < unicode::kInvalidByte && c != 0x7F && c != 0xFFFE && c != 0xFFFF);
}

constexpr const char* anchor_name(SvgAnchor anchor) {
  return anchor == SvgAnchor::kStart ? "start" : anchor == SvgAnchor::kMiddle ? "middle" : "end";
}

std::string stroke(const SvgInk& ink) {
  std::string attributes =
      fmt::format("class='{}' stroke='{}' stroke-width='{}'", ink.name, ink.color, ink.width);
  if (*ink.dashes != 0) attributes += fmt::format(" stroke-dasharray='{}'", ink.dashes);
  return attributes;
}

}  // namespace

std::string escape_markup(std::string_view text) {
  constexpr std::string_view kCharacters = "&<>\"'";
  constexpr std::string_view kEntities[] = {"&amp;", "&lt;", "&gt;", "&quot;", "&#39;"};
  std::string escaped;
  escaped.reserve(text.size());
  unicode::for_each_character(text, [&](std::string_view character) {
    const size_t entity = kCharacters.find(character);
    if (entity != std::string_view::npos) {
      escaped += kEntities[entity];
    } else {
      escaped += is_allowed(unicode::decode(character).value) ? character : "\xEF\xBF\xBD";
    }
  });
  return escaped;
}

double text_width(std::string_view text) {
  double width = 0;
  for (const char c : text) width += width_from(c);
  return width;
}

std::string fit_text(std::string_view text, double most_width) {
  constexpr std::string_view kEllipsis = "…";
  if (text_width(text) <= most_width) return std::string(text);
  double room = most_width - text_width(kEllipsis);
  size_t end = 0;
  for (; end < text.size() && width_from(text[end]) <= room; ++end) room -= width_from(text[end]);
  return std::string(text.substr(0, end)).append(kEllipsis);
}

Svg::Svg(double width, double height, std::string_view title)
    : width_(width), height_(height), title_(escape_markup(title)) {}

void Svg::line(SvgPoint from, SvgPoint to, const SvgInk& ink) {
  body_ += fmt::format("<line x1='{:.1f}' y1='{:.1f}' x2='{:.1f}' y2='{:.1f}' {}/>\n", from.x,
                       from.y, to.x, to.y, stroke(ink));
}

void Svg::polyline(std::span<const SvgPoint> points, const SvgInk& ink, std::string_view id) {
  body_ += "<polyline ";
  if (!id.empty()) body_ += fmt::format("id='{}' ", escape_markup(id));
  body_ += "points='";
  for (size_t i = 0; i < points.size(); ++i)
    body_ += fmt::format("{}{:.2f},{:.2f}", i == 0 ? "" : " ", points[i].x, points[i].y);
  body_ += fmt::format("' fill='none' {}/>\n", stroke(ink));
}

void Svg::circle(SvgPoint center, double radius, const SvgInk& ink) {
  body_ += fmt::format("<circle cx='{:.1f}' cy='{:.1f}' r='{}' fill='none' {}/>\n", center.x,
                       center.y, radius, stroke(ink));
}

void Svg::box(SvgPoint center, double width, double height, const SvgInk& border,
              const char* fill) {
  body_ += fmt::format(
      "<rect x='{:.1f}' y='{:.1f}' width='{:.1f}' height='{:.1f}' rx='6' fill='{}' {}/>\n",
      center.x - width / 2, center.y - height / 2, width, height, fill, stroke(border));
}

void Svg::cells(std::span<const SvgPoint> corners, double width, double height, const SvgInk& ink,
                double opacity) {
  if (corners.empty()) return;
  body_ += fmt::format("<path class='{}' fill='{}' fill-opacity='{:.2f}' d='", ink.name, ink.color,
                       opacity);
  for (const SvgPoint& corner : corners) {
    body_ += fmt::format("M{:.1f} {:.1f}h{:.1f}v{:.1f}h{:.1f}z", corner.x, corner.y, width, height,
                         -width);
  }
  body_ += "'/>\n";
}

void Svg::text(SvgPoint at, std::string_view text, SvgAnchor anchor, double most_width,
               const SvgInk& ink) {
  body_ +=
      fmt::format("<text class='{}' x='{:.1f}' y='{:.1f}' text-anchor='{}' fill='{}'>{}</text>\n",
                  ink.name, at.x, at.y, anchor_name(anchor), ink.color,
                  escape_markup(most_width > 0 ? fit_text(text, most_width) : std::string(text)));
}

void Svg::upward_text(SvgPoint at, std::string_view text, SvgAnchor anchor, double most_width) {
  body_ += fmt::format(
      "<text class='text' transform='translate({:.1f} {:.1f}) rotate(-90)' text-anchor='{}' "
      "fill='{}'>{}</text>\n",
      at.x, at.y, anchor_name(anchor), kTextInk.color,
      escape_markup(most_width > 0 ? fit_text(text, most_width) : std::string(text)));
}

std::string Svg::str() const {
  return fmt::format(
      "<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 {0} {1}' width='{0}' height='{1}' "
      "role='img' font-family='sans-serif' font-size='{2}'>\n<title>{3}</title>\n"
      "<rect class='background' width='100%' height='100%' fill='#ffffff'/>\n{4}</svg>\n",
      width_, height_, kFontSize, title_, body_);
}

}  // namespace limpid
