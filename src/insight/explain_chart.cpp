#include "insight/explain_chart.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/check.h"
#include "base/svg_plot.h"
#include "insight/contrast.h"

namespace limpid {
namespace {

constexpr SvgInk kGreenInk{"green", "#00795c", 2, "2 3"};
constexpr SvgInk kDashedOrangeInk{"orange", "#d55e00", 2, "7 4"};
constexpr SvgInk kOrangeHeatInk{"orange-heat", "#d55e00"};
constexpr double kMostEntropy = 12;  // bits; paler cells hesitate more

// SvgPlot fills a heat map column by column, each column from the low end of the y axis: the
// embedding is the lowest row of the lens, and the last token the lowest row of a head.
//
// The ends of an axis for values that include `low` and `high`, which may be equal.
SvgAxis axis_of(double low, double high) {
  return SvgAxis::linear(low, high > low ? high : low + 1, 5, true);
}

// A bar for each token; the first has none, since the model did not predict it.
std::string surprise_chart(const Explanation& explanation) {
  std::vector<double> heights;
  for (const double bits : explanation.surprise) heights.push_back(std::isnan(bits) ? 0 : bits);
  Svg svg(720, 300, "Surprise of each token");
  SvgPlot plot(svg, {.top = 16}, SvgAxis::linear(0, static_cast<double>(heights.size()), 8),
               axis_of(0, *std::ranges::max_element(heights)));
  plot.axes("token", "surprise in bits");
  plot.histogram(heights, kHeatInk);
  return svg.str();
}

// Entropy is inverted: a cell is dark where a layer is sure, as on the page.
std::string lens_chart(const Explanation& explanation) {
  const size_t n_rows = explanation.lens.size();
  std::vector<std::vector<double>> columns(explanation.token_ids.size(),
                                           std::vector<double>(n_rows));
  for (size_t row = 0; row < n_rows; ++row) {
    for (size_t t = 0; t < columns.size(); ++t) {
      const double entropy = explanation.lens[row].predictions[t].entropy;
      columns[t][row] = 1 - std::min(1.0, entropy / kMostEntropy);
    }
  }
  Svg svg(720, 420, "Logit lens: entropy after each layer, 0 bits dark, 12 bits pale");
  SvgPlot plot(svg, {.top = 16}, SvgAxis::linear(0, static_cast<double>(columns.size()), 8),
               SvgAxis::linear(0, static_cast<double>(n_rows), 6));
  plot.axes("token", "row of the lens, the embedding first");
  plot.heat_map(columns, kHeatInk);
  return svg.str();
}

// Two curves over the layers: bars would need signs.
std::string parts_chart(const Explanation& explanation) {
  LIMPID_CHECK(ArgumentError, !explanation.parts.empty(), "no logit was attributed");
  const Attribution& last = explanation.parts.back();
  std::vector<SvgPoint> attention;
  std::vector<SvgPoint> mlps;
  double low = 0;
  double high = 0;
  for (int64_t layer = 0; layer < explanation.n_layers; ++layer) {
    const auto heads = std::span(last.heads)
                           .subspan(static_cast<size_t>(layer * explanation.n_heads),
                                    static_cast<size_t>(explanation.n_heads));
    const double rest = last.attention_rest[static_cast<size_t>(layer)];
    const double attended = std::accumulate(heads.begin(), heads.end(), rest);
    const double fed = last.mlps[static_cast<size_t>(layer)];
    attention.push_back({static_cast<double>(layer), attended});
    mlps.push_back({static_cast<double>(layer), fed});
    low = std::min({low, attended, fed});
    high = std::max({high, attended, fed});
  }
  Svg svg(720, 360, fmt::format("Parts of the logit {:.2f}", last.logit));
  SvgPlot plot(svg, {}, SvgAxis::linear(0, std::max<double>(1, explanation.n_layers - 1), 8),
               axis_of(low, high));
  plot.legend(0, "attention", kBlueInk);
  plot.legend(1, "MLP", kDashedOrangeInk);
  plot.axes("layer", "part of the logit");
  plot.curve(attention, kBlueInk);
  plot.curve(mlps, kDashedOrangeInk);
  plot.marks(attention, kBlueInk);
  plot.marks(mlps, kOrangeInk);
  return svg.str();
}

// One ink for each sign; the strongest part is the darkest.
std::string part_heads_chart(const Explanation& explanation) {
  LIMPID_CHECK(ArgumentError, !explanation.parts.empty(), "no logit was attributed");
  const Attribution& last = explanation.parts.back();
  double most = 0;
  for (const float part : last.heads) most = std::max(most, std::abs(static_cast<double>(part)));
  const auto shades = [&](double sign) {
    std::vector<std::vector<double>> columns(
        static_cast<size_t>(explanation.n_heads),
        std::vector<double>(static_cast<size_t>(explanation.n_layers)));
    for (size_t i = 0; i < last.heads.size(); ++i) {
      const auto n_heads = static_cast<size_t>(explanation.n_heads);
      if (most > 0) columns[i % n_heads][i / n_heads] = sign * last.heads[i] / most;
    }
    return columns;
  };
  Svg svg(520, 520, fmt::format("Parts of the heads in the logit {:.2f}", last.logit));
  SvgPlot plot(svg, {.top = 72}, SvgAxis::linear(0, static_cast<double>(explanation.n_heads), 6),
               SvgAxis::linear(0, static_cast<double>(explanation.n_layers), 6));
  plot.legend(0, fmt::format("for the token, up to {:.2f}", most), kBlueInk);
  plot.legend(1, "against it", kDashedOrangeInk);
  plot.axes("head", "layer");
  plot.heat_map(shades(1), kHeatInk);
  plot.heat_map(shades(-1), kOrangeHeatInk);
  return svg.str();
}

// The small pictures of all heads side by side. Weights below a tenth are left out, so that the
// picture of a thousand heads stays small.
std::string heads_chart(const Explanation& explanation) {
  constexpr float kLeast = 0.1F;
  const int64_t n = explanation.attention.front().n_tiles();
  std::vector<std::vector<double>> columns(
      static_cast<size_t>(explanation.n_heads * n),
      std::vector<double>(static_cast<size_t>(explanation.n_layers * n)));
  for (int64_t i = 0; i < std::ssize(explanation.attention); ++i) {
    const auto tiles = explanation.attention[static_cast<size_t>(i)].tiles();
    const int64_t first_column = i % explanation.n_heads * n;
    const int64_t first_row = i / explanation.n_heads * n;
    for (int64_t tile = 0; tile < n * n; ++tile) {
      const float weight = tiles[static_cast<size_t>(tile)];
      const int64_t row = first_row + n - 1 - tile / n;  // the y axis goes up
      if (weight >= kLeast)
        columns[static_cast<size_t>(first_column + tile % n)][static_cast<size_t>(row)] = weight;
    }
  }
  Svg svg(720, 720, "Attention of all heads");
  SvgPlot plot(svg, {.top = 16}, SvgAxis::linear(0, static_cast<double>(explanation.n_heads), 6),
               SvgAxis::linear(0, static_cast<double>(explanation.n_layers), 6));
  plot.axes("head", "layer");
  plot.heat_map(columns, kHeatInk);
  return svg.str();
}

// A curve for each second run, at most two: a change, and another model.
std::string contrast_chart(std::span<const ShownContrast> contrasts, std::string_view title,
                           std::string_view x_name, std::string_view y_name, double first_x,
                           std::vector<double> Contrast::*values) {
  constexpr SvgInk kInks[] = {kBlueInk, kDashedOrangeInk};
  std::vector<std::vector<SvgPoint>> curves;
  double high = 0;
  double last_x = first_x + 1;
  for (const ShownContrast& shown : contrasts) {
    std::vector<SvgPoint>& curve = curves.emplace_back();
    for (const double value : shown.contrast.*values) {
      curve.push_back({first_x + static_cast<double>(curve.size()), value});
      high = std::max(high, value);
    }
    if (!curve.empty()) last_x = std::max(last_x, curve.back().x);
  }
  LIMPID_CHECK(ArgumentError,
               std::ranges::any_of(curves, [](const auto& curve) { return !curve.empty(); }),
               "there is no {}: it needs a second run, of a model of the same shape", title);
  Svg svg(720, 360, title);
  SvgPlot plot(svg, {.top = 72}, SvgAxis::linear(first_x, last_x, 8), axis_of(0, high));
  plot.axes(x_name, y_name);
  for (size_t i = 0; i < curves.size(); ++i) {
    const SvgInk& ink = kInks[std::min(i, std::size(kInks) - 1)];
    plot.legend(static_cast<int>(i), contrasts[i].title, ink);
    plot.curve(curves[i], ink);
  }
  return svg.str();
}

// Norms grow by a factor of a hundred and more from the first layer to the last, so the axis is
// logarithmic.
std::string sizes_chart(const Explanation& explanation) {
  const auto mean = [](const std::vector<float>& norms) {
    return std::accumulate(norms.begin(), norms.end(), 0.0) / static_cast<double>(norms.size());
  };
  std::vector<SvgPoint> curves[3];
  double low = INFINITY;
  double high = 0;
  for (const LayerNorms& norms : explanation.norms) {
    const std::vector<float>* of_curve[] = {&norms.stream, &norms.attention, &norms.mlp};
    for (size_t i = 0; i < 3; ++i) {
      const double size = of_curve[i]->empty() ? 0 : mean(*of_curve[i]);
      if (!(size > 0) || !std::isfinite(size)) continue;
      curves[i].push_back({static_cast<double>(norms.layer), size});
      low = std::min(low, size);
      high = std::max(high, size);
    }
  }
  Svg svg(720, 360, "Mean norms layer by layer");
  SvgPlot plot(svg, {.top = 72},
               SvgAxis::linear(-1, std::max<double>(0, explanation.n_layers - 1), 8),
               SvgAxis::powers_of_ten(high > 0 ? low : 1, high > 0 ? high : 1));
  const std::pair<const char*, SvgInk> inks[] = {
      {"residual stream", kBlueInk}, {"attention adds", kDashedOrangeInk}, {"MLP adds", kGreenInk}};
  plot.axes("layer (-1: the embedding)", "norm");
  for (int i = 0; i < 3; ++i) {
    plot.legend(i, inks[i].first, inks[i].second);
    plot.curve(curves[i], inks[i].second);
  }
  return svg.str();
}

// What was not kept of a row is drawn as 0.
std::string head_chart(const Explanation& explanation, const ModelPart& head) {
  const AttentionMap& map =
      explanation.attention[static_cast<size_t>(head.layer * explanation.n_heads + head.head)];
  const size_t n = map.first().size();
  std::vector<std::vector<double>> columns(n, std::vector<double>(n));
  for (size_t t = 0; t < n; ++t) {
    const size_t row = n - 1 - t;  // the y axis goes up
    columns[0][row] = map.first()[t];
    for (const AttentionMap::Kept& kept : map.row(static_cast<int64_t>(t))) {
      if (kept.column >= 0) columns[static_cast<size_t>(kept.column)][row] = kept.weight;
    }
  }
  const auto end = static_cast<double>(n);
  Svg svg(520, 520, fmt::format("Attention of {}", head.name()));
  SvgPlot plot(svg, {.top = 16}, SvgAxis::linear(0, end, 6), SvgAxis::linear(0, end, 6));
  plot.axes("token that is read", "tokens from the end of the text");
  plot.heat_map(columns, kHeatInk);
  return svg.str();
}

}  // namespace

std::string explain_chart(const Explanation& explanation, std::string_view what,
                          const DecoderSpec& spec, std::span<const ShownContrast> contrasts) {
  if (what == "surprise") return surprise_chart(explanation);
  if (what == "lens") return lens_chart(explanation);
  if (what == "parts") return parts_chart(explanation);
  if (what == "part-heads") return part_heads_chart(explanation);
  if (what == "sizes") return sizes_chart(explanation);
  if (what == "heads") return heads_chart(explanation);
  if (what == "distance") {
    return contrast_chart(contrasts, "distance of the residual streams",
                          "layer (-1: the embedding)", "distance, as a share of the length", -1,
                          &Contrast::distance);
  }
  if (what == "divergence") {
    return contrast_chart(contrasts, "divergence of the predictions", "token", "bits", 0,
                          &Contrast::divergence);
  }
  LIMPID_CHECK(ArgumentError, what.starts_with('L'),
               "no picture '{}'; there are surprise, lens, parts, part-heads, sizes, heads, "
               "distance, divergence, and a head as L3.H5",
               what);
  const ModelPart head = model_part(what, spec);
  LIMPID_CHECK(ArgumentError, head.kind == ModelPart::Kind::kHead,
               "no picture of {}: name a head, as L3.H5", what);
  return head_chart(explanation, head);
}

}  // namespace limpid
