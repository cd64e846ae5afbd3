// Pictures: text that is safe and fits, axes with round numbers, what plots put where.
#include "base/svg.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/printable.h"
#include "base/svg_plot.h"

namespace limpid {
namespace {

size_t count(const std::string& text, const std::string& part) {
  size_t n = 0;
  for (size_t i = text.find(part); i != std::string::npos; i = text.find(part, i + 1)) ++n;
  return n;
}

TEST(EscapeMarkup, LeavesNoWayOut) {
  EXPECT_EQ(escape_markup("</script><img src=x onerror='a(\"b\")'>&"),
            "&lt;/script&gt;&lt;img src=x onerror=&#39;a(&quot;b&quot;)&#39;&gt;&amp;");
  EXPECT_EQ(escape_markup(std::string("a\0\x1b\x7f\n\té", 8)),
            "a\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\n\té");
}

TEST(EscapeMarkup, LeavesNothingThatXmlRefuses) {
  EXPECT_EQ(escape_markup("a\xFF\xC3<"), "a\xEF\xBF\xBD\xEF\xBF\xBD&lt;");
  EXPECT_EQ(escape_markup("\uFFFE\uFFFF日😀"), "\xEF\xBF\xBD\xEF\xBF\xBD日😀");
}

TEST(FitText, CutsWholeCharacters) {
  EXPECT_EQ(fit_text("short", 200), "short");
  const std::string cut = fit_text("ééééééééééééééééééééé", 70);  // 10 characters
  EXPECT_EQ(cut, "ééééééééé…");
  EXPECT_EQ(fit_text("abc", 0), "…");
  // Characters of East Asia are wider.
  EXPECT_EQ(fit_text("日本語日本語", 60), "日本語日…");
}

TEST(Visible, HasASignForWhatCannotBeSeen) {
  EXPECT_EQ(visible(" a\n\t\r"), "·a⏎⇥␍");
  EXPECT_EQ(visible("\x1b[2J\xff\u202e\u009b\uffff"), "�[2J����");
  EXPECT_EQ(visible("é日😀"), "é日😀");
  EXPECT_EQ(visible(""), "∅");
}

TEST(Printable, EscapesControlsAndWhatIsNotUtf8) {
  EXPECT_EQ(printable("é\n\x7f\xff日"), "é\\x0a\\x7f\\xff日");
  std::string cut(99, 'a');
  const std::string shown = cut + "\\xc3...";
  cut += "é";
  EXPECT_EQ(printable(cut), shown);
}

TEST(Svg, EscapesWhatItIsGiven) {
  Svg svg(100, 50, "<title>");
  svg.text({1, 2}, "<b>", SvgAnchor::kEnd);
  svg.polyline({}, kBlueInk, "a'b");
  const std::string text = svg.str();
  EXPECT_EQ(text.find("<b>"), std::string::npos);
  EXPECT_NE(text.find("<title>&lt;title&gt;</title>"), std::string::npos);
  EXPECT_NE(text.find("id='a&#39;b'"), std::string::npos);
  EXPECT_NE(text.find("text-anchor='end'"), std::string::npos);
  EXPECT_TRUE(text.ends_with("</svg>\n"));
}

TEST(Axis, HasRoundTicks) {
  const SvgAxis axis = SvgAxis::linear(0, 2000, 5);
  EXPECT_EQ(axis.ticks, (std::vector<double>{0, 500, 1000, 1500, 2000}));
  const SvgAxis rounded = SvgAxis::linear(1.43, 4.21, 5, true);
  EXPECT_EQ(rounded.ticks, (std::vector<double>{1, 2, 3, 4, 5}));
  EXPECT_DOUBLE_EQ(rounded.share(1), 0);
  EXPECT_DOUBLE_EQ(rounded.share(5), 1);
  const SvgAxis powers = SvgAxis::powers_of_ten(0.02, 300);
  EXPECT_EQ(powers.ticks.size(), 6U);
  EXPECT_NEAR(powers.share(1), 0.4, 1e-12);
  for (const double high : {3.0, std::nextafter(3.0, 4.0), 3.0 + 1e-9}) {  // one value, nearly
    const size_t n_ticks = SvgAxis::linear(3, high, 5, true).ticks.size();
    EXPECT_GT(n_ticks, 1U);
    EXPECT_LT(n_ticks, 12U);
  }
}

TEST(TickText, IsShort) {
  EXPECT_EQ(tick_text(0), "0");
  EXPECT_EQ(tick_text(0.30000000000000004), "0.3");
  EXPECT_EQ(tick_text(2000), "2,000");
  EXPECT_EQ(tick_text(1e-5), "1e-05");
  EXPECT_EQ(tick_text(1e9), "1e+09");
}

TEST(Plot, PutsValuesWhereTheAxesSay) {
  Svg svg(200, 100, "plot");
  SvgPlot plot(svg, {20, 20, 10, 10}, SvgAxis::linear(0, 10, 5), SvgAxis::linear(0, 4, 4));
  EXPECT_DOUBLE_EQ(plot.at(0, 0).x, 20);
  EXPECT_DOUBLE_EQ(plot.at(0, 0).y, 90);
  EXPECT_DOUBLE_EQ(plot.at(10, 4).x, 180);
  EXPECT_DOUBLE_EQ(plot.at(10, 4).y, 10);
  plot.axes("x", "y");
  plot.curve({{0, 0}, {10, 4}}, kBlueInk);
  plot.marks({{5, 2}, {6, 3}}, kOrangeInk);
  const std::string text = svg.str();
  EXPECT_NE(text.find("points='20.00,90.00 180.00,10.00'"), std::string::npos) << text;
  EXPECT_EQ(count(text, "<circle"), 2U);
}

TEST(Plot, ShadesAHeatMap) {
  Svg svg(200, 100, "map");
  SvgPlot plot(svg, {0, 0, 0, 0}, SvgAxis::linear(0, 2, 2), SvgAxis::linear(0, 2, 2));
  plot.heat_map({{1, 0}, {0.5, 1}}, kHeatInk);
  const std::string text = svg.str();
  EXPECT_EQ(count(text, "<path"), 2U);  // a shade each; 0 is not drawn
  EXPECT_NE(text.find("fill-opacity='1.00' d='M0.0 50.0h100.0v50.0h-100.0zM100.0 0.0h"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("fill-opacity='0.50' d='M100.0 50.0h"), std::string::npos);
}

// An axis of cells begins at the top when it is reversed, and negative shades have an ink of their
// own.
TEST(Plot, ShadesDownwardsAndBelowZero) {
  Svg svg(200, 100, "map");
  SvgPlot plot(svg, {0, 0, 0, 0}, SvgAxis::linear(0, 1, 2), SvgAxis::linear(0, 2, 2).reversed());
  plot.heat_map({{0.5, -0.25}}, kHeatInk, &kOrangeInk);
  const std::string text = svg.str();
  EXPECT_NE(text.find("fill='#0072b2' fill-opacity='0.50' d='M0.0 0.0h"), std::string::npos)
      << text;
  EXPECT_NE(text.find("fill='#d55e00' fill-opacity='0.30' d='M0.0 50.0h"), std::string::npos);
}

TEST(Plot, LabelsCellsAsFarAsThereIsRoom) {
  const auto labelled = [](size_t n, const std::string& label) {
    Svg svg(400, 300, "labels");
    SvgPlot plot(svg, {.right = 20}, SvgAxis::cells(std::vector<std::string>(n, label)),
                 SvgAxis::linear(0, 1, 1));
    plot.axes("x", "y");
    return svg.str();
  };
  EXPECT_EQ(count(labelled(10, "<a>"), "rotate(-90)"), 1U);  // only the name of the y axis
  EXPECT_EQ(count(labelled(10, "<a>"), "&lt;a&gt;"), 10U);
  EXPECT_EQ(count(labelled(10, "a longer label"), "rotate(-90)"), 11U);
  EXPECT_EQ(count(labelled(100, "label"), ">label<"), 20U);  // 13 pixels each, of 300
  EXPECT_EQ(count(labelled(2, std::string(99, 'w')), "w…<"), 2U);
}

TEST(Plot, WritesIntoCellsAsFarAsThereIsRoom) {
  const auto written = [](size_t n) {
    Svg svg(200, 100, "words");
    SvgPlot plot(svg, {0, 0, 0, 0}, {}, {});
    std::vector<std::vector<double>> shades(n, {0.2, 1});
    plot.cell_texts(std::vector<std::vector<std::string>>(n, {"<pale>", "dark"}), shades);
    return svg.str();
  };
  const std::string four = written(4);
  EXPECT_EQ(count(four, ">&lt;pale&gt;<"), 4U) << four;
  EXPECT_EQ(count(four, "fill='#ffffff'>dark<"), 4U) << four;
  EXPECT_EQ(count(written(7), "da…<"), 7U);
  EXPECT_EQ(count(written(20), "<text"), 0U);
}

TEST(Plot, AColorBarHasTheValuesOfTheShades) {
  Svg svg(200, 100, "bar");
  SvgPlot plot(svg, {0, SvgPlot::kColorBar, 0, 0}, {}, {});
  plot.color_bar(SvgAxis::linear(0, 12, 2).reversed(), "bits", kHeatInk);
  const std::string text = svg.str();
  EXPECT_EQ(count(text, "<path"), 10U);
  EXPECT_NE(text.find("fill-opacity='1.00' d='M126.0 0.0h12.0v10.0"), std::string::npos) << text;
  EXPECT_NE(text.find("y='4.0' text-anchor='start' fill='#1f2933'>0<"), std::string::npos);
}

TEST(Plot, BarsStandOnTheAxis) {
  Svg svg(200, 100, "bars");
  SvgPlot plot(svg, {0, 0, 0, 0}, SvgAxis::linear(0, 3, 3), SvgAxis::linear(0, 4, 4));
  plot.histogram({1, 0, 4}, kBlueInk);
  const std::string text = svg.str();
  EXPECT_EQ(count(text, "<path"), 2U);
  EXPECT_NE(text.find("M0.0 75.0h66.7v25.0h"), std::string::npos) << text;
  EXPECT_NE(text.find("M133.3 0.0h66.7v100.0h"), std::string::npos) << text;
}

}  // namespace
}  // namespace limpid
