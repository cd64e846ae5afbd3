#include "insight/explain_chart.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <ranges>

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
constexpr double kHeadingOnly = 40;  // a top margin
constexpr double kLegendLine = 16;   // what a line of a legend adds to it
constexpr SvgPlot::Margins kHeatMargins{.right = SvgPlot::kColorBar, .top = kHeadingOnly};

// What the pictures are made from.
struct Shown {
  const Explanation& explanation;
  std::span<const ShownContrast> contrasts;
  const Tokenizer* tokenizer;

  // A token as a label.
  std::string label(int32_t id) const { return visible(token_text(tokenizer, id)); }
};

// What a picture says around its plot.
struct Titles {
  std::string heading;
  std::string_view x;
  std::string_view y;
};

// A picture of one plot, whose heading and axes are drawn.
struct Picture {
  Svg svg;
  SvgPlot plot;

  Picture(double width, double height, const SvgPlot::Margins& margins, const Titles& titles,
          SvgAxis x, SvgAxis y)
      : svg(width, height, titles.heading), plot(svg, margins, std::move(x), std::move(y)) {
    plot.heading(titles.heading);
    plot.axes(titles.x, titles.y);
  }
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

// Layers from `first` to the last one, as numbers below curves.
SvgAxis layer_axis(int64_t first, const Explanation& explanation) {
  const int64_t last = std::max(first + 1, explanation.n_layers - 1);
  return SvgAxis::linear(static_cast<double>(first), static_cast<double>(last), 8);
}

// The room for `n` cells of a heat map.
double room_of(int64_t n, double cell, double least, double most) {
  return std::clamp(cell * static_cast<double>(n), least, most);
}

// The ends of an axis for values that include `low` and `high`, which may be equal.
SvgAxis axis_of(double low, double high) {
  return SvgAxis::linear(low, high > low ? high : low + 1, 5, true);
}

struct Curve {
  std::string_view name;
  SvgInk ink;
  std::vector<SvgPoint> points = {};
};

// Curves below a legend that names each.
std::string curves_chart(const Titles& titles, SvgAxis x, SvgAxis y,
                         const std::vector<Curve>& curves, bool is_marked = false) {
  const double legend = kLegendLine * static_cast<double>(std::max<size_t>(2, curves.size()));
  Picture picture(720, 348 + legend, {.top = kHeadingOnly + legend}, titles, std::move(x),
                  std::move(y));
  int row = 0;
  for (const auto& [name, ink, points] : curves) {
    picture.plot.legend(++row, name, ink);
    picture.plot.curve(points, ink);
    if (is_marked) picture.plot.marks(points, {ink.name, ink.color, ink.width});
  }
  return picture.svg.str();
}

// A bar for each token; the first has none, since the model did not predict it.
std::string surprise_chart(const Shown& of) {
  std::vector<double> heights;
  for (const double bits : of.explanation.surprise) heights.push_back(std::isnan(bits) ? 0 : bits);
  Picture picture(
      720, 340, {.top = kHeadingOnly},
      {"Surprise of each token; the first one is not predicted", "token", "surprise in bits"},
      token_axis(of), axis_of(0, *std::ranges::max_element(heights)));
  picture.plot.histogram(heights, kHeatInk);
  return picture.svg.str();
}

// Entropy is inverted: a cell is dark where a layer is sure, as on the page. The embedding is the
// lowest row.
std::string lens_chart(const Shown& of) {
  const std::vector<LensLayer>& rows = of.explanation.lens;
  std::vector<std::vector<double>> columns(of.explanation.token_ids.size(),
                                           std::vector<double>(rows.size()));
  std::vector<std::vector<std::string>> words(columns.size(),
                                              std::vector<std::string>(rows.size()));
  std::vector<std::string> layers;
  for (size_t row = 0; row < rows.size(); ++row) {
    layers.push_back(rows[row].layer < 0 ? "embedding" : std::to_string(rows[row].layer));
    for (size_t t = 0; t < columns.size(); ++t) {
      const Prediction& next = rows[row].predictions[t];
      columns[t][row] = 1 - std::min(1.0, next.entropy / kMostEntropy);
      if (!next.likeliest.empty()) words[t][row] = of.label(next.likeliest.front().id);
    }
  }
  Picture picture(room_of(std::ssize(columns), 56, 560, 1120) + 200,
                  room_of(std::ssize(rows), 16, 240, 1300) + 150, kHeatMargins,
                  {"Logit lens: what each layer predicts after each token, dark where it is sure",
                   "token", "after layer"},
                  token_axis(of), SvgAxis::cells(layers));
  picture.plot.heat_map(columns, kHeatInk);
  picture.plot.cell_texts(words, columns);
  picture.plot.color_bar(SvgAxis::linear(0, kMostEntropy, 6).reversed(),
                         "entropy in bits, up to 12", kHeatInk);
  return picture.svg.str();
}

// 'Parts of the layers in the logit of "·Paris", 17.08, after token 4, "·is"'.
std::string title_of(const Shown& of, std::string_view what, const Attribution& parts) {
  const int32_t after = of.explanation.token_ids[size_of(parts.position)];
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
  Curve attention{"attention", kBlueInk};
  Curve mlp{"MLP", kDashedOrangeInk};
  double low = 0;
  double high = 0;
  for (int64_t layer = 0; layer < explanation.n_layers; ++layer) {
    const auto heads = row_of(last.heads, layer, explanation.n_heads);
    const double rest = last.attention_rest[size_of(layer)];
    const double attended = std::accumulate(heads.begin(), heads.end(), rest);
    const double fed = last.mlps[size_of(layer)];
    attention.points.push_back({static_cast<double>(layer), attended});
    mlp.points.push_back({static_cast<double>(layer), fed});
    low = std::min({low, attended, fed});
    high = std::max({high, attended, fed});
  }
  return curves_chart({title_of(of, "layers", last), "layer", "part of the logit"},
                      layer_axis(0, explanation), axis_of(low, high), {attention, mlp}, true);
}

// One ink for each sign; the strongest part is the darkest.
std::string part_heads_chart(const Shown& of) {
  const int64_t n_heads = of.explanation.n_heads;
  const int64_t n_layers = of.explanation.n_layers;
  const Attribution& last = last_parts(of.explanation);
  double most = 0;
  for (const float part : last.heads) most = std::max(most, std::abs(static_cast<double>(part)));
  if (!(most > 0)) most = 1;
  std::vector<std::vector<double>> columns(size_of(n_heads),
                                           std::vector<double>(size_of(n_layers)));
  for (size_t i = 0; i < last.heads.size(); ++i)
    columns[i % columns.size()][i / columns.size()] = last.heads[i] / most;
  Picture picture(room_of(n_heads, 32, 460, 960) + 160, room_of(n_layers, 16, 240, 1300) + 100,
                  kHeatMargins, {title_of(of, "heads", last), "head", "layer"},
                  number_axis(n_heads), number_axis(n_layers));
  picture.plot.heat_map(columns, kHeatInk, &kOrangeHeatInk);
  picture.plot.color_bar(SvgAxis::linear(-most, most, 6), "part of the logit", kHeatInk,
                         &kOrangeHeatInk);
  return picture.svg.str();
}

// The small pictures of all heads side by side. Weights below a tenth are left out, so that the
// picture of a thousand heads stays small.
std::string heads_chart(const Shown& of) {
  const int64_t n_heads = of.explanation.n_heads;
  const int64_t n_layers = of.explanation.n_layers;
  constexpr float kLeast = 0.1F;
  const int64_t n = of.explanation.attention.front().n_tiles();
  std::vector<std::vector<double>> columns(size_of(n_heads * n),
                                           std::vector<double>(size_of(n_layers * n)));
  for (int64_t i = 0; i < n_heads * n_layers; ++i) {
    const auto tiles = of.explanation.attention[size_of(i)].tiles();
    for (int64_t tile = 0; tile < n * n; ++tile) {
      const float weight = tiles[size_of(tile)];
      const int64_t column = i % n_heads * n + tile % n;
      const int64_t row = i / n_heads * n + n - 1 - tile / n;  // the y axis goes up
      if (weight >= kLeast) columns[size_of(column)][size_of(row)] = weight;
    }
  }
  Picture picture(room_of(n_heads, 32, 420, 960) + 160, room_of(n_layers, 32, 320, 1280) + 100,
                  kHeatMargins,
                  {"Attention of all heads: in each square, rows (the first on top) read columns",
                   "head", "layer"},
                  number_axis(n_heads), number_axis(n_layers));
  picture.plot.heat_map(columns, kHeatInk);
  const auto right = static_cast<double>(n_heads);
  const auto top = static_cast<double>(n_layers);
  for (double head = 1; head < right; ++head)
    picture.plot.curve({{head, 0}, {head, top}}, Svg::kGridInk);
  for (double layer = 1; layer < top; ++layer)
    picture.plot.curve({{0, layer}, {right, layer}}, Svg::kGridInk);
  picture.plot.color_bar(SvgAxis::linear(0, 1, 5), "attention weight, from 0.1 on", kHeatInk);
  return picture.svg.str();
}

// A curve for each second run, at most two: a change, and another model.
std::string contrast_chart(std::span<const ShownContrast> contrasts, const Titles& titles,
                           double first_x, const SvgAxis& x_axis,
                           std::vector<double> Contrast::*values) {
  constexpr SvgInk kInks[] = {kBlueInk, kDashedOrangeInk};
  std::vector<Curve> curves;
  double high = 0;
  bool is_empty = true;
  for (const ShownContrast& shown : contrasts) {
    Curve& curve =
        curves.emplace_back(Curve{shown.title, kInks[std::min<size_t>(curves.size(), 1)]});
    for (const double value : shown.contrast.*values) {
      curve.points.push_back({first_x + static_cast<double>(curve.points.size()), value});
      high = std::max(high, value);
      is_empty = false;
    }
  }
  LIMPID_CHECK(ArgumentError, !is_empty,
               "there is nothing to draw: the picture needs a second run, of a model of the same "
               "shape");
  return curves_chart(titles, x_axis, axis_of(0, high), curves);
}

// Norms grow by a factor of a hundred and more from the first layer to the last, so the axis is
// logarithmic.
std::string sizes_chart(const Shown& of) {
  std::vector<Curve> curves = {
      {"residual stream", kBlueInk}, {"attention adds", kDashedOrangeInk}, {"MLP adds", kGreenInk}};
  double low = INFINITY;
  double high = 0;
  for (const LayerNorms& norms : of.explanation.norms) {
    const std::vector<float>* of_curve[] = {&norms.stream, &norms.attention, &norms.mlp};
    for (size_t i = 0; i < curves.size(); ++i) {
      const std::vector<float>& sizes = *of_curve[i];  // none of the embedding but of the stream
      const double mean = std::accumulate(sizes.begin(), sizes.end(), 0.0) /
                          static_cast<double>(std::max<size_t>(1, sizes.size()));
      if (!(mean > 0) || !std::isfinite(mean)) continue;
      curves[i].points.push_back({static_cast<double>(norms.layer), mean});
      low = std::min(low, mean);
      high = std::max(high, mean);
    }
  }
  const size_t n_tokens = of.explanation.token_ids.size();
  return curves_chart({fmt::format("Norms layer by layer, means over {} token{}", n_tokens,
                                   n_tokens == 1 ? "" : "s"),
                       "layer (-1: the embedding)", "norm"},
                      layer_axis(-1, of.explanation),
                      SvgAxis::powers_of_ten(high > 0 ? low : 1, high > 0 ? high : 1), curves);
}

// What was not kept of a row is drawn as 0.
std::string head_chart(const Shown& of, std::string_view name, size_t head) {
  const AttentionMap& map = of.explanation.attention[head];
  const size_t n = map.first().size();
  std::vector<std::vector<double>> columns(n, std::vector<double>(n));
  for (size_t t = 0; t < n; ++t) {
    columns[0][t] = map.first()[t];
    for (const AttentionMap::Kept& kept : map.row(static_cast<int64_t>(t))) {
      if (kept.column >= 0) columns[size_of(kept.column)][t] = kept.weight;
    }
  }
  const double room = room_of(std::ssize(columns), 14, 420, 840);
  const SvgAxis tokens = token_axis(of);
  Picture picture(
      room + 200, room + 140, kHeatMargins,
      {fmt::format("Attention of {}: each token (row) reads earlier ones (columns)", name),
       "token that is read (key)", "token that reads (query)"},
      tokens, tokens.reversed());
  picture.plot.heat_map(columns, kHeatInk);
  picture.plot.color_bar(SvgAxis::linear(0, 1, 5), "attention weight", kHeatInk);
  return picture.svg.str();
}

std::string distance_chart(const Shown& of) {
  return contrast_chart(of.contrasts,
                        {"Distance of the residual streams, layer by layer",
                         "layer (-1: the embedding)", "distance, as a share of the length"},
                        -1, layer_axis(-1, of.explanation), &Contrast::distance);
}

std::string divergence_chart(const Shown& of) {
  return contrast_chart(
      of.contrasts,
      {"Divergence of the predictions after each token", "token", "KL divergence in bits"}, 0.5,
      token_axis(of), &Contrast::divergence);
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

// Its place among all heads.
size_t head_of(std::string_view what, const DecoderSpec& spec) {
  LIMPID_CHECK(ArgumentError, what.starts_with('L'),
               "no picture '{}'; there are {}, and a head as L3.H5", what,
               fmt::join(picture_names(), ", "));
  const ModelPart head = model_part(what, spec);
  LIMPID_CHECK(ArgumentError, head.place == Place::kAttnHeads,
               "no picture of {}: name a head, as L3.H5", what);
  return size_of(head.layer * spec.n_heads + head.first_column / spec.head_dim);
}

}  // namespace

std::vector<std::string> picture_names() {
  const auto names = std::views::keys(kPictures);
  return {names.begin(), names.end()};
}

void check_picture(std::string_view what, const DecoderSpec& spec) {
  if (find_picture(what) == nullptr) head_of(what, spec);
}

std::string explain_chart(const Explanation& explanation, std::string_view what,
                          const DecoderSpec& spec, std::span<const ShownContrast> contrasts,
                          const Tokenizer* tokenizer) {
  const Shown shown{explanation, contrasts, tokenizer};
  if (const auto* picture = find_picture(what)) return picture->second(shown);
  return head_chart(shown, what, head_of(what, spec));
}

}  // namespace limpid
