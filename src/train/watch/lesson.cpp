#include "train/watch/lesson.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <numbers>

#include "base/base64.h"
#include "base/check.h"
#include "train/microgpt/engine.h"

namespace limpid {

using microgpt::Row;
using microgpt::Value;

namespace {

constexpr size_t kPoints = 240;
constexpr size_t kBatch = 32;

// log(1 + exp(m)), without the overflow of exp: max(m, 0) + log(1 + exp(-|m|)). It is the loss of a
// choice between two kinds: with the probability p = 1 / (1 + exp(-z)) of the right kind,
// -log p = log(1 + exp(-z)).
Value softplus(Value m) {
  const Value positive = m.relu();
  const Value size = positive + (-m).relu();
  return positive + ((-size).exp() + 1.0).log();
}

}  // namespace

Lesson::Lesson(std::string_view task, const microgpt::Config& config)
    : config_(config), random_(config.seed) {
  LIMPID_CHECK(ArgumentError, task == "circle" || task == "xor" || task == "spiral",
               "unknown task '{}'; the tasks are circle, xor and spiral", task);
  LIMPID_CHECK(ArgumentError, config.num_steps >= 1, "{} steps: must be at least 1",
               config.num_steps);
  LIMPID_CHECK(ArgumentError, std::isfinite(config.learning_rate) && config.learning_rate > 0,
               "learning rate {}: must be above 0", config.learning_rate);
  place_points(task);
  place_weights();
}

// Three tasks that no straight line solves, so a network without a hidden layer fails at each:
//   circle   one kind lies in a disc, the other in a ring around it
//   xor      the kinds lie in opposite quadrants: where x y > 0, and where x y < 0
//   spiral   each kind is an arm of a spiral, and the two arms interleave
void Lesson::place_points(std::string_view task) {
  for (size_t i = 0; i < kPoints; ++i) {
    Point point;
    point.is_second = i % 2 == 1;
    if (task == "xor") {
      const double x = 0.1 + 0.8 * random_.uniform();
      const double y = 0.1 + 0.8 * random_.uniform();
      const double side = random_.uniform() < 0.5 ? -1 : 1;
      point = {side * x, (point.is_second ? -side : side) * y, point.is_second};
    } else {
      const size_t pair = i / 2;
      const double along = static_cast<double>(pair) / (kPoints / 2.0);
      double radius = point.is_second ? 0.65 + 0.25 * random_.uniform() : 0.4 * random_.uniform();
      double angle = 2 * std::numbers::pi * random_.uniform();
      if (task == "spiral") {  // two arms of one turn
        radius = 0.1 + 0.8 * along;
        angle = 2 * std::numbers::pi * along + (point.is_second ? std::numbers::pi : 0) +
                random_.gauss(0, 0.08);
      }
      point.x = radius * std::cos(angle);
      point.y = radius * std::sin(angle);
    }
    points_.push_back(point);
  }
}

// Normal numbers with the variance 2 / inputs (He et al. 2015, arXiv:1502.01852); biases are 0.
void Lesson::place_weights() {
  for (size_t i = 0; i < kLayers; ++i) {
    const int64_t from = kSizes[i];
    const int64_t to = kSizes[i + 1];
    layers_[i].weights = {std::ssize(weights()), to, from};
    for (int64_t n = 0; n < to * from; ++n)
      graph_.leaf(random_.gauss(0, std::sqrt(2.0 / static_cast<double>(from))));
    graph_.keep();
    layers_[i].biases = {std::ssize(weights()), to, 1};
    for (int64_t n = 0; n < to; ++n) graph_.leaf(0);
    graph_.keep();
  }
  gradients_.resize(weights().size());
}

std::vector<double> Lesson::weights() const {
  return {graph_.kept_data().begin(), graph_.kept_data().end()};
}
std::vector<double> Lesson::gradients() const { return gradients_; }

std::vector<Row> Lesson::forward(double x, double y) {
  const size_t begin = graph_.size();
  graph_.leaf(x);
  graph_.leaf(y);
  std::vector<Row> rows = {graph_.since(begin)};
  for (size_t i = 0; i < kLayers; ++i) {
    const auto& [weights, biases] = layers_[i];
    const auto n = static_cast<size_t>(weights.rows);
    const Row dots = graph_.dots(static_cast<microgpt::NodeId>(weights.offset), n, rows.back());
    const Row bias = graph_.row(static_cast<microgpt::NodeId>(biases.offset), n);
    Row out = graph_.collect(n, [&](size_t j) { dots[j] + bias[j]; });
    if (i + 1 < kLayers) {
      const Row sums = out;
      out = graph_.collect(n, [&](size_t j) { sums[j].relu(); });
    }
    rows.push_back(out);
  }
  return rows;
}

double Lesson::logit(double x, double y) {
  graph_.reset();
  return forward(x, y).back()[0].data();
}

// A node's gradient is complete only when the graph of the whole batch has been walked, so the
// activations that snapshot() shows are computed again there.
double Lesson::look() {
  batch_.resize(kBatch);
  for (size_t& index : batch_) index = random_.below(kPoints);
  graph_.reset();
  Value total = graph_.leaf(0);
  for (const size_t index : batch_) {
    const Point& point = points_[index];
    const Value z = forward(point.x, point.y).back()[0];
    total = total + softplus(point.is_second ? -z : z);
  }
  const Value loss = total * (1.0 / static_cast<double>(kBatch));
  graph_.backward(loss);
  gradients_.assign(graph_.kept_grad().begin(), graph_.kept_grad().end());
  return loss.data();
}

void Lesson::update() {
  graph_.update(gradients_, adam_step(config_, step_));
  ++step_;
}

// The second kind is expected where the logit is above 0, its probability above 1/2.
double Lesson::accuracy() {
  const auto n_right = std::ranges::count_if(points_, [&](const Point& point) {
    return (logit(point.x, point.y) > 0) == point.is_second;
  });
  return static_cast<double>(n_right) / static_cast<double>(points_.size());
}

Json Lesson::network() const {
  NetworkJson network;
  int from = network.add_group("point", 0, kSizes[0], {"x", "y"});
  const int one = network.add_group("one", 0, 1, {"1"});
  for (size_t i = 0; i < kLayers; ++i) {
    const bool is_last = i + 1 == kLayers;
    const int to = network.add_group(
        is_last ? "z" : fmt::format("hidden{}", i + 1), static_cast<int64_t>(i) + 1, kSizes[i + 1],
        is_last ? std::vector<std::string>{"z"} : std::vector<std::string>{});
    network.add_connections(fmt::format("w{}", i + 1), from, to, layers_[i].weights);
    network.add_connections(fmt::format("b{}", i + 1), one, to, layers_[i].biases);
    from = to;
  }
  Json json = network.json("lesson", std::ssize(gradients_), config_);
  json["n_grid"] = kGrid;
  json["points"] = Json::array();
  for (const Point& point : points_)
    json["points"].push_back({point.x, point.y, point.is_second ? 1 : 0});
  return json;
}

// The plane is a grid of probabilities in 8 bits, row by row from below. For the activations of one
// point the network runs once more, as a graph whose backward pass gives the derivatives.
Json Lesson::snapshot() {
  std::vector<uint8_t> chances;
  for (int64_t row = 0; row < kGrid; ++row) {
    for (int64_t column = 0; column < kGrid; ++column) {
      const auto place = [](int64_t i) { return (2.0 * static_cast<double>(i) + 1) / kGrid - 1; };
      const double chance = 1 / (1 + std::exp(-logit(place(column), place(row))));
      chances.push_back(std::isfinite(chance) ? static_cast<uint8_t>(std::lround(chance * 255))
                                              : uint8_t{0});
    }
  }
  graph_.reset();
  const Point& point = points_[batch_.front()];
  const std::vector<Row> rows = forward(point.x, point.y);
  const Value z = rows.back()[0];
  graph_.backward(softplus(point.is_second ? -z : z));
  std::vector<double> activations;
  std::vector<double> slopes;
  for (size_t i = 0; i < rows.size(); ++i) {
    std::ranges::copy(rows[i].data(), std::back_inserter(activations));
    std::ranges::copy(rows[i].grad(), std::back_inserter(slopes));
    if (i > 0) continue;
    activations.push_back(1);  // the group "one"
    slopes.push_back(0);
  }
  return {{"step", step_},
          {"weights", packed_f32(weights())},
          {"gradients", packed_f32(gradients_)},
          {"point", batch_.front()},
          {"n_positions", 1},
          {"activations", packed_f32(activations)},
          {"activation_gradients", packed_f32(slopes)},
          {"accuracy", accuracy()},
          {"grid", base64(std::as_bytes(std::span(chances)))}};
}

}  // namespace limpid
