// The first lesson: a small multilayer perceptron learns which of two kinds a point in the plane
// is, with the graph of numbers and the Adam of microgpt.
#pragma once

#include <array>
#include <string_view>
#include <vector>

#include "train/microgpt/config.h"
#include "train/microgpt/parameters.h"
#include "train/microgpt/value.h"
#include "train/watch/network_json.h"

namespace limpid {

// Two inputs, two layers of ten neurons with ReLU, one output z; 1 / (1 + exp(-z)) is the
// probability of the second kind.
class Lesson {
 public:
  // "circle", "xor" or "spiral". Of `config`, num_steps, learning_rate, seed and the numbers of
  // Adam count. Throws ArgumentError.
  Lesson(std::string_view task, const microgpt::Config& config);

  const microgpt::Config& config() const { return config_; }
  int64_t steps_done() const { return step_; }
  void set_learning_rate(double rate) { config_.learning_rate = rate; }

  // Computes loss and gradients of the next points. The loss is the mean of log(1 + exp(-z)) for
  // points of the second kind, and of log(1 + exp(z)) for the others.
  double look();
  // Updates the weights by the gradients of look(), which ends the step.
  void update();
  // Returns the share of all points for which the network expects the right kind.
  double accuracy();

  Json network() const;
  // Call it after look(). Returns the numbers for the page, and the probabilities of the second
  // kind over the whole plane, times 255, for the decision boundary: [kGrid, kGrid] from (-1, -1).
  Json snapshot();
  static constexpr int64_t kGrid = 60;

  std::vector<double> weights() const;
  std::vector<double> gradients() const;

 private:
  static constexpr std::array<int64_t, 4> kSizes = {2, 10, 10, 1};
  static constexpr size_t kLayers = kSizes.size() - 1;
  struct Point {
    double x = 0, y = 0;
    bool is_second = false;
  };
  struct Layer {
    microgpt::Matrix weights;  // [to, from]
    microgpt::Matrix biases;   // [to, 1]
  };

  void place_points(std::string_view task);
  void place_weights();
  // Returns the neurons of each layer, inputs first.
  std::vector<microgpt::Row> forward(double x, double y);
  double logit(double x, double y);

  microgpt::Config config_;
  microgpt::PythonRandom random_;
  microgpt::Graph graph_;
  std::array<Layer, kLayers> layers_;
  std::vector<Point> points_;
  std::vector<size_t> batch_;
  std::vector<double> gradients_;
  int64_t step_ = 0;
};

}  // namespace limpid
