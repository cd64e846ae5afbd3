#include "insight/explain_chart.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/check.h"
#include "base/printable.h"
#include "base/svg_plot.h"
#include "insight/contrast.h"
#include "insight/explanation_json.h"

namespace limpid {
namespace {

constexpr SvgInk kGreenInk{"green", "#00795c", 2, "2 3"};
constexpr SvgInk kDashedOrangeInk{"orange", "#d55e00", 2, "7 4"};
constexpr SvgInk kOrangeHeatInk{"orange-heat", "#d55e00"};
constexpr double kMostEntropy = 12;  // bits; paler cells hesitate more
constexpr double kHeadingOnly = 40;  // a top margin; with two lines of a legend:
constexpr double kHeadingAndLegend = 72;

// What the pictures are made from.
struct Shown {
  const Explanation& explanation;
  std::span<const ShownContrast> contrasts;
  const Tokenizer* tokenizer;

  // A token as a label.
  std::string label(int32_t id) const { return visible(token_text(tokenizer, id)); }
};

SvgAxis token_axis(const Shown& of) {
  std::vector<std::string> labels;
  for (const int32_t id : of.explanation.token_ids) labels.push_back(of.label(id));
  return SvgAxis::cells(std::move(labels));
}

// Heads or layers, from 0 on.
SvgAxis number_axis(int64_t n) {
  std::vector<std::string> labels;
  for (int64_t i = 0; i < n; ++i) labels.push_back(std::to_string(i));
  return SvgAxis::cells(std::move(labels));
}

// The room for `n` cells of a heat map.
double room_of(size_t n, double cell, double least, double most) {
  return std::clamp(cell * static_cast<double>(n), least, most);
}

// The ends of an axis for values that include `low` and `high`, which may be equal.
SvgAxis axis_of(double low, double high) {
  return SvgAxis::linear(low, high > low ? high : low + 1, 5, true);
}

// A bar for each token; the first has none, since the model did not predict it.
std::string surprise_chart(const Shown& of) {
  const Explanation& explanation = of.explanation;
  constexpr std::string_view kTitle = "Surprise of each token; the first one is not predicted";
  std::vector<double> heights;
  for (const double bits : explanation.surprise) heights.push_back(std::isnan(bits) ? 0 : bits);
  Svg svg(720, 340, kTitle);
  SvgPlot plot(svg, {.top = kHeadingOnly}, token_axis(of),
               axis_of(0, *std::ranges::max_element(heights)));
  plot.heading(kTitle);
  plot.axes("token", "surprise in bits");
  plot.histogram(heights, kHeatInk);
  return svg.str();
}

// Entropy is inverted: a cell is dark where a layer is sure, as on the page. The embedding is the
// lowest row.
std::string lens_chart(const Shown& of) {
  const Explanation& explanation = of.explanation;
  constexpr std::string_view kTitle =
      "Logit lens: what each layer predicts after each token, dark where it is sure";
  const size_t n_rows = explanation.lens.size();
  std::vector<std::vector<double>> columns(explanation.token_ids.size(),
                                           std::vector<double>(n_rows));
  std::vector<std::vector<std::string>> words(columns.size(), std::vector<std::string>(n_rows));
  std::vector<std::string> layers;
  for (size_t row = 0; row < n_rows; ++row) {
    const LensLayer& lens = explanation.lens[row];
    layers.push_back(lens.layer < 0 ? "embedding" : std::to_string(lens.layer));
    for (size_t t = 0; t < columns.size(); ++t) {
      const Prediction& next = lens.predictions[t];
      columns[t][row] = 1 - std::min(1.0, next.entropy / kMostEntropy);
      if (!next.likeliest.empty()) words[t][row] = of.label(next.likeliest.front().id);
    }
  }
  Svg svg(room_of(columns.size(), 56, 560, 1120) + 200, room_of(n_rows, 16, 240, 1300) + 150,
          kTitle);
  SvgPlot plot(svg, {.right = SvgPlot::kColorBar, .top = kHeadingOnly}, token_axis(of),
               SvgAxis::cells(layers));
  plot.heading(kTitle);
  plot.axes("token", "after layer");
  plot.heat_map(columns, kHeatInk);
  plot.cell_texts(words, columns);
  plot.color_bar(SvgAxis::linear(0, kMostEntropy, 6).reversed(), "entropy in bits, up to 12",
                 kHeatInk);
  return svg.str();
}

// 'Parts of the layers in the logit of "·Paris", 17.08, after token 4, "·is"'.
std::string title_of(const Shown& of, std::string_view what, const Attribution& parts) {
  const int32_t after = of.explanation.token_ids[static_cast<size_t>(parts.position)];
  return fmt::format("Parts of the {} in the logit of \"{}\", {:.2f}, after token {}, \"{}\"", what,
                     of.label(parts.token), parts.logit, parts.position, of.label(after));
}

const Attribution& last_parts(const Explanation& explanation) {
  LIMPID_CHECK(ArgumentError, !explanation.parts.empty(), "no logit was attributed");
  return explanation.parts.back();
}

// Two curves over the layers: bars would need signs.
std::string parts_chart(const Shown& of) {
  const Explanation& explanation = of.explanation;
  const Attribution& last = last_parts(explanation);
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
  const std::string title = title_of(of, "layers", last);
  Svg svg(720, 380, title);
  SvgPlot plot(svg, {.top = kHeadingAndLegend},
               SvgAxis::linear(0, std::max<double>(1, explanation.n_layers - 1), 8),
               axis_of(low, high));
  plot.heading(title);
  plot.legend(1, "attention", kBlueInk);
  plot.legend(2, "MLP", kDashedOrangeInk);
  plot.axes("layer", "part of the logit");
  plot.curve(attention, kBlueInk);
  plot.curve(mlps, kDashedOrangeInk);
  plot.marks(attention, kBlueInk);
  plot.marks(mlps, kOrangeInk);
  return svg.str();
}

// One ink for each sign; the strongest part is the darkest.
std::string part_heads_chart(const Shown& of) {
  const Explanation& explanation = of.explanation;
  const Attribution& last = last_parts(explanation);
  double most = 0;
  for (const float part : last.heads) most = std::max(most, std::abs(static_cast<double>(part)));
  if (!(most > 0)) most = 1;
  const auto n_heads = static_cast<size_t>(explanation.n_heads);
  const auto n_layers = static_cast<size_t>(explanation.n_layers);
  std::vector<std::vector<double>> columns(n_heads, std::vector<double>(n_layers));
  for (size_t i = 0; i < last.heads.size(); ++i)
    columns[i % n_heads][i / n_heads] = last.heads[i] / most;
  const std::string title = title_of(of, "heads", last);
  Svg svg(room_of(n_heads, 32, 460, 960) + 160, room_of(n_layers, 16, 240, 1300) + 100, title);
  SvgPlot plot(svg, {.right = SvgPlot::kColorBar, .top = kHeadingOnly},
               number_axis(explanation.n_heads), number_axis(explanation.n_layers));
  plot.heading(title);
  plot.axes("head", "layer");
  plot.heat_map(columns, kHeatInk, &kOrangeHeatInk);
  plot.color_bar(SvgAxis::linear(-most, most, 6), "part of the logit", kHeatInk, &kOrangeHeatInk);
  return svg.str();
}

// The small pictures of all heads side by side. Weights below a tenth are left out, so that the
// picture of a thousand heads stays small.
std::string heads_chart(const Shown& of) {
  const Explanation& explanation = of.explanation;
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
  constexpr std::string_view kTitle =
      "Attention of all heads: in each square, rows (the first on top) read columns";
  Svg svg(room_of(static_cast<size_t>(explanation.n_heads), 32, 420, 960) + 160,
          room_of(static_cast<size_t>(explanation.n_layers), 32, 320, 1280) + 100, kTitle);
  SvgPlot plot(svg, {.right = SvgPlot::kColorBar, .top = kHeadingOnly},
               number_axis(explanation.n_heads), number_axis(explanation.n_layers));
  plot.heading(kTitle);
  plot.axes("head", "layer");
  plot.heat_map(columns, kHeatInk);
  const auto right = static_cast<double>(explanation.n_heads);
  const auto top = static_cast<double>(explanation.n_layers);
  for (double head = 1; head < right; ++head) plot.curve({{head, 0}, {head, top}}, Svg::kGridInk);
  for (double layer = 1; layer < top; ++layer)
    plot.curve({{0, layer}, {right, layer}}, Svg::kGridInk);
  plot.color_bar(SvgAxis::linear(0, 1, 5), "attention weight, from 0.1 on", kHeatInk);
  return svg.str();
}

// A curve for each second run, at most two: a change, and another model.
std::string contrast_chart(std::span<const ShownContrast> contrasts, std::string_view title,
                           std::string_view x_name, std::string_view y_name, double first_x,
                           const SvgAxis& x_axis, std::vector<double> Contrast::*values) {
  constexpr SvgInk kInks[] = {kBlueInk, kDashedOrangeInk};
  std::vector<std::vector<SvgPoint>> curves;
  double high = 0;
  for (const ShownContrast& shown : contrasts) {
    std::vector<SvgPoint>& curve = curves.emplace_back();
    for (const double value : shown.contrast.*values) {
      curve.push_back({first_x + static_cast<double>(curve.size()), value});
      high = std::max(high, value);
    }
  }
  LIMPID_CHECK(ArgumentError,
               std::ranges::any_of(curves, [](const auto& curve) { return !curve.empty(); }),
               "there is nothing to draw: the picture needs a second run, of a model of the same "
               "shape");
  Svg svg(720, 380, title);
  SvgPlot plot(svg, {.top = kHeadingAndLegend}, x_axis, axis_of(0, high));
  plot.heading(title);
  plot.axes(x_name, y_name);
  for (size_t i = 0; i < curves.size(); ++i) {
    const SvgInk& ink = kInks[std::min(i, std::size(kInks) - 1)];
    plot.legend(static_cast<int>(i) + 1, contrasts[i].title, ink);
    plot.curve(curves[i], ink);
  }
  return svg.str();
}

// Norms grow by a factor of a hundred and more from the first layer to the last, so the axis is
// logarithmic.
std::string sizes_chart(const Shown& of) {
  const Explanation& explanation = of.explanation;
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
  const size_t n_tokens = explanation.token_ids.size();
  const std::string title = fmt::format("Norms layer by layer, means over {} token{}", n_tokens,
                                        n_tokens == 1 ? "" : "s");
  Svg svg(720, 400, title);
  SvgPlot plot(svg, {.top = kHeadingAndLegend + 16},
               SvgAxis::linear(-1, std::max<double>(0, explanation.n_layers - 1), 8),
               SvgAxis::powers_of_ten(high > 0 ? low : 1, high > 0 ? high : 1));
  const std::pair<const char*, SvgInk> inks[] = {
      {"residual stream", kBlueInk}, {"attention adds", kDashedOrangeInk}, {"MLP adds", kGreenInk}};
  plot.heading(title);
  plot.axes("layer (-1: the embedding)", "norm");
  for (int i = 0; i < 3; ++i) {
    plot.legend(i + 1, inks[i].first, inks[i].second);
    plot.curve(curves[i], inks[i].second);
  }
  return svg.str();
}

// What was not kept of a row is drawn as 0.
std::string head_chart(const Shown& of, const ModelPart& head) {
  const Explanation& explanation = of.explanation;
  const AttentionMap& map =
      explanation.attention[static_cast<size_t>(head.layer * explanation.n_heads + head.head)];
  const size_t n = map.first().size();
  std::vector<std::vector<double>> columns(n, std::vector<double>(n));
  for (size_t t = 0; t < n; ++t) {
    columns[0][t] = map.first()[t];
    for (const AttentionMap::Kept& kept : map.row(static_cast<int64_t>(t))) {
      if (kept.column >= 0) columns[static_cast<size_t>(kept.column)][t] = kept.weight;
    }
  }
  const std::string title =
      fmt::format("Attention of {}: each token (row) reads earlier ones (columns)", head.name());
  const double room = room_of(n, 14, 420, 840);
  Svg svg(room + 200, room + 140, title);
  const SvgAxis tokens = token_axis(of);
  SvgPlot plot(svg, {.right = SvgPlot::kColorBar, .top = kHeadingOnly}, tokens, tokens.reversed());
  plot.heading(title);
  plot.axes("token that is read (key)", "token that reads (query)");
  plot.heat_map(columns, kHeatInk);
  plot.color_bar(SvgAxis::linear(0, 1, 5), "attention weight", kHeatInk);
  return svg.str();
}

std::string distance_chart(const Shown& of) {
  return contrast_chart(of.contrasts, "Distance of the residual streams, layer by layer",
                        "layer (-1: the embedding)", "distance, as a share of the length", -1,
                        SvgAxis::linear(-1, static_cast<double>(of.explanation.n_layers - 1), 8),
                        &Contrast::distance);
}

std::string divergence_chart(const Shown& of) {
  return contrast_chart(of.contrasts, "Divergence of the predictions after each token", "token",
                        "KL divergence in bits", 0.5, token_axis(of), &Contrast::divergence);
}

constexpr std::pair<std::string_view, std::string (*)(const Shown&)> kPictures[] = {
    {"surprise", surprise_chart}, {"lens", lens_chart},
    {"parts", parts_chart},       {"part-heads", part_heads_chart},
    {"sizes", sizes_chart},       {"heads", heads_chart},
    {"distance", distance_chart}, {"divergence", divergence_chart}};

const auto* find_picture(std::string_view what) {
  const auto* found =
      std::ranges::find(kPictures, what, &std::decay_t<decltype(*kPictures)>::first);
  return found == std::end(kPictures) ? nullptr : found;
}

ModelPart head_of(std::string_view what, const DecoderSpec& spec) {
  LIMPID_CHECK(ArgumentError, what.starts_with('L'),
               "no picture '{}'; there are {}, and a head as L3.H5", what,
               fmt::join(picture_names(), ", "));
  const ModelPart head = model_part(what, spec);
  LIMPID_CHECK(ArgumentError, head.kind == ModelPart::Kind::kHead,
               "no picture of {}: name a head, as L3.H5", what);
  return head;
}

}  // namespace

std::vector<std::string> picture_names() {
  std::vector<std::string> names;
  for (const auto& [name, draw] : kPictures) names.emplace_back(name);
  return names;
}

void check_picture(std::string_view what, const DecoderSpec& spec) {
  if (find_picture(what) == nullptr) head_of(what, spec);
}

std::string explain_chart(const Explanation& explanation, std::string_view what,
                          const DecoderSpec& spec, std::span<const ShownContrast> contrasts,
                          const Tokenizer* tokenizer) {
  const Shown shown{explanation, contrasts, tokenizer};
  if (const auto* picture = find_picture(what)) return picture->second(shown);
  return head_chart(shown, head_of(what, spec));
}

}  // namespace limpid
