#include "train/run_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>
#include <vector>

#include "base/atomic_file.h"
#include "base/divide_up.h"
#include "base/svg_plot.h"
#include "jinja/page.h"
#include "train/run_folder.h"
#include "train/run_log.h"
#include "train/run_settings.h"

namespace limpid {

namespace training {
// run_report.html and run_report_live.js, embedded
std::string_view report_text();
std::string_view report_live_text();
}  // namespace training

namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr size_t kMostPoints = 800;  // of a curve
constexpr size_t kMostColumns = 60;  // of a heat map
constexpr size_t kMostRows = 24;     // of the table
constexpr size_t kMostSamples = 60;
constexpr SvgInk kMeasured = kBlueInk;
constexpr SvgInk kHeldOut{"orange", "#d55e00", 2, "6 3"};

// Returns at most `most` of `items`, evenly spread; the first and the last are among them.
template <typename Item>
std::vector<Item> spread(const std::vector<Item>& items, size_t most) {
  if (items.size() <= most) return items;
  std::vector<Item> chosen;
  for (size_t i = 0; i < most; ++i) chosen.push_back(items[i * (items.size() - 1) / (most - 1)]);
  return chosen;
}

// Replaces neighbours by their mean, so that at most kMostPoints remain.
std::vector<SvgPoint> thinned(const std::vector<SvgPoint>& points) {
  const size_t n = divide_up(points.size(), kMostPoints);
  if (n <= 1) return points;
  std::vector<SvgPoint> means;
  for (size_t first = 0; first < points.size(); first += n) {
    const size_t end = std::min(points.size(), first + n);
    SvgPoint sum;
    for (size_t i = first; i < end; ++i) {
      sum.x += points[i].x;
      sum.y += points[i].y;
    }
    const auto count = static_cast<double>(end - first);
    means.push_back({sum.x / count, sum.y / count});
  }
  return means;
}

// ---- curves -------------------------------------------------------------------------------------

struct Curve {
  std::string title;
  std::string y_name;
  std::vector<SvgPoint> points;
  std::vector<SvgPoint> marked = {};  // a second curve, with a circle at each point
  bool logarithmic = false;
};

SvgAxis y_axis(const Curve& curve) {
  double low = INFINITY;
  double high = -INFINITY;
  for (const auto* points : {&curve.points, &curve.marked}) {
    for (const SvgPoint& point : *points) {
      low = std::min(low, point.y);
      high = std::max(high, point.y);
    }
  }
  return curve.logarithmic && low > 0 ? SvgAxis::powers_of_ten(low, high)
                                      : SvgAxis::linear(low, high, 5, true);
}

std::string draw(Curve curve) {
  if (curve.points.empty()) return {};
  const double first = curve.points.front().x;
  const double last = curve.points.back().x;
  curve.points = thinned(curve.points);
  Svg svg(560, 270, curve.title);
  SvgPlot plot(svg, {.left = 80, .right = 24, .top = curve.marked.empty() ? 16.0 : 48.0},
               SvgAxis::linear(first, last, 6), y_axis(curve));
  plot.axes("step", curve.y_name);
  plot.curve(curve.points, kMeasured);
  if (!curve.marked.empty()) {
    plot.legend(0, "of the batches", kMeasured);
    plot.legend(1, "of held-out data", kHeldOut);
    plot.curve(curve.marked, kHeldOut);
    if (curve.marked.size() <= kMostColumns) plot.marks(curve.marked, kOrangeInk);
  }
  return svg.str();
}

void add_curves(const std::vector<LogEntry>& log, std::map<std::string, std::string>& markup) {
  const auto points_of = [&](auto member) {
    std::vector<SvgPoint> points;
    for (const LogEntry& entry : log) {
      if (std::isfinite(entry.*member))
        points.push_back({static_cast<double>(entry.step), entry.*member});
    }
    return points;
  };
  std::vector<SvgPoint> held_out;
  for (const LogEntry& entry : log) {
    if (entry.val_loss) held_out.push_back({static_cast<double>(entry.step), *entry.val_loss});
  }
  markup["loss"] = draw({"Loss", "nats a token", points_of(&LogEntry::loss), held_out});
  markup["lr"] = draw({"Learning rate", "learning rate", points_of(&LogEntry::lr)});
  markup["norm"] = draw({.title = "Norm of the gradient",
                         .y_name = "norm before clipping",
                         .points = points_of(&LogEntry::grad_norm),
                         .logarithmic = true});
  markup["speed"] = draw({"Speed", "tokens a second", points_of(&LogEntry::tokens_per_second)});
}

// ---- histograms ---------------------------------------------------------------------------------

// "attn_q.weight" for "blk.3.attn_q.weight": a kind of tensor, whose layers are counted together.
std::string kind_of(const std::string& name) {
  if (!name.starts_with("blk.")) return name;
  const size_t dot = name.find('.', 4);
  return dot == name.npos ? name : name.substr(dot + 1);
}

// Returns the share of a histogram's numbers in each power of two from `lowest` to `highest`.
// Smaller numbers, and zeros, are in the first row.
std::vector<double> shares_of(const ValueHistogram& histogram, int lowest, int highest) {
  const auto& counts = histogram.counts;
  const auto total = std::accumulate(counts.begin(), counts.end(), int64_t{0});
  std::vector<double> shares(static_cast<size_t>(highest - lowest) + 1, 0);
  for (size_t i = 0; i < counts.size() && total > 0; ++i) {
    const int power = ValueHistogram::kLowest + static_cast<int>(i);
    const auto row = static_cast<size_t>(std::clamp(power, lowest, highest) - lowest);
    shares[row] += static_cast<double>(counts[i]) / static_cast<double>(total);
  }
  return shares;
}

// Returns the least and the largest power of two that hold at least a thousandth of the numbers of
// some step. Zeros do not count; they would stretch the map.
std::pair<int, int> range_of(const std::vector<ValueHistogram>& histograms) {
  constexpr double kFewest = 1e-3;
  int lowest = ValueHistogram::kHighest;
  int highest = ValueHistogram::kLowest + 1;
  for (const ValueHistogram& histogram : histograms) {
    const std::vector<double> shares =
        shares_of(histogram, ValueHistogram::kLowest, ValueHistogram::kHighest);
    for (size_t i = 1; i < shares.size(); ++i) {
      if (shares[i] < kFewest) continue;
      lowest = std::min(lowest, ValueHistogram::kLowest + static_cast<int>(i));
      highest = std::max(highest, ValueHistogram::kLowest + static_cast<int>(i));
    }
  }
  return {std::min(lowest, highest), highest};
}

// A column for each step, a row for each power of two. A shade is the square root of the share,
// so that rare sizes are seen, relative to the fullest cell.
std::string draw_map(const std::string& title, const std::vector<double>& steps,
                     const std::vector<ValueHistogram>& histograms) {
  const auto [lowest, highest] = range_of(histograms);
  std::vector<std::vector<double>> columns;
  double largest = 0;
  for (const ValueHistogram& histogram : histograms) {
    columns.push_back(shares_of(histogram, lowest, highest));
    largest = std::max(largest, std::ranges::max(columns.back()));
  }
  for (std::vector<double>& column : columns) {
    for (double& share : column) share = largest > 0 ? std::sqrt(share / largest) : 0;
  }
  Svg svg(360, 200, title);
  const int n_rows = highest - lowest + 1;
  SvgPlot plot(svg, {.left = 56, .right = 12, .top = 12, .bottom = 46},
               SvgAxis::linear(steps.front(), steps.back(), 4),
               SvgAxis::linear(lowest, highest + 1, std::min(6, n_rows)));
  plot.axes("step", "log2 of the size");
  plot.heat_map(columns, kHeatInk);
  return svg.str();
}

// Gives the template {name, weights, gradients}: a kind of tensor and the names of its two maps.
Json add_maps(const std::vector<HistogramLine>& lines, std::map<std::string, std::string>& markup) {
  std::vector<double> steps;
  std::map<std::string, std::vector<ValueHistogram>> maps[2];  // weights, gradients
  for (size_t i = 0; i < lines.size(); ++i) {
    steps.push_back(static_cast<double>(lines[i].step));
    for (const size_t part : {0, 1}) {
      for (const auto& [name, histogram] : part == 0 ? lines[i].weights : lines[i].gradients) {
        auto& columns = maps[part][kind_of(name)];
        columns.resize(lines.size());
        add_histogram(columns[i], histogram);
      }
    }
  }
  Json kinds = Json::array();
  for (const auto& [kind, columns] : maps[0]) {
    Json entry{{"name", kind}, {"weights", "weights of " + kind}, {"gradients", nullptr}};
    markup["weights of " + kind] = draw_map("Weights of " + kind, steps, columns);
    if (const auto found = maps[1].find(kind); found != maps[1].end()) {
      entry["gradients"] = "gradients of " + kind;
      markup["gradients of " + kind] = draw_map("Gradients of " + kind, steps, found->second);
    }
    kinds.push_back(std::move(entry));
  }
  return kinds;
}

// ---- the page -----------------------------------------------------------------------------------

std::string number(double value) { return fmt::format("{:.4f}", value); }

Json rows_of(const std::vector<LogEntry>& log) {
  std::vector<LogEntry> measured;
  for (const LogEntry& entry : log) {
    if (entry.val_loss || &entry == &log.back()) measured.push_back(entry);
  }
  Json rows = Json::array();
  for (const LogEntry& entry : spread(measured, kMostRows)) {
    rows.push_back({{"step", entry.step},
                    {"loss", number(entry.loss)},
                    {"val_loss", entry.val_loss ? number(*entry.val_loss) : ""},
                    {"lr", fmt::format("{:.2e}", entry.lr)},
                    {"norm", std::isfinite(entry.grad_norm) ? fmt::format("{:.3g}", entry.grad_norm)
                                                            : "skipped"},
                    {"speed", fmt::format("{:.0f}", entry.tokens_per_second)}});
  }
  return rows;
}

Json settings_of(const RunSettings& settings) {
  Json list = Json::array();
  RunSettings::for_each(
      settings, [&](const char* name, const auto& value, const char*, const char* help, auto...) {
        const Json json = value;
        list.push_back({{"name", name},
                        {"value", json.is_string() ? json.get<std::string>() : json.dump()},
                        {"help", help}});
      });
  return list;
}

}  // namespace

std::string run_report(const std::string& folder, bool is_live) {
  const std::vector<LogEntry> log = read_log(folder);
  const RunSettings settings = read_settings(folder);
  std::map<std::string, std::string> markup;
  add_curves(log, markup);
  Json samples = Json::array();
  for (const LoggedSample& sample : spread(read_samples(folder), kMostSamples))
    samples.push_back({{"step", sample.step}, {"prompt", sample.prompt}, {"text", sample.text}});
  const fs::path path = fs::path(folder).lexically_normal();
  const LogEntry newest = log.empty() ? LogEntry() : log.back();
  const Json values{
      {"name", (path.has_filename() ? path.filename() : path.parent_path().filename()).string()},
      {"is_live", is_live},
      {"step", newest.step},
      {"steps", settings.steps},
      {"loss", number(newest.loss)},
      {"rows", rows_of(log)},
      {"kinds", add_maps(spread(read_histograms(folder), kMostColumns), markup)},
      {"samples", samples},
      {"settings", settings_of(settings)}};
  const std::string_view script = is_live ? training::report_live_text() : "";
  return render_page(training::report_text(), values, std::move(markup),
                     {.script = std::string(script), .asks_its_server = is_live});
}

void write_run_report(const std::string& folder) {
  if (read_log(folder).empty()) return;
  write_file((fs::path(folder) / "report.html").string(), run_report(folder, false));
}

}  // namespace limpid
