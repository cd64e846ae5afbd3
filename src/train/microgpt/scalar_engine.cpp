// The scalar engine: the scalar model with its graph and its optimizer.
#include <cmath>

#include "train/microgpt/engine.h"
#include "train/microgpt/scalar_gpt.h"

namespace limpid::microgpt {
namespace {

// Builds the graph of one step's loss, runs it backward, and removes it again; only the parameters
// stay.
class ScalarEngine final : public Engine {
 public:
  ScalarEngine(const Config& config, const std::vector<double>& weights)
      : config_(config),
        matrices_(config.shape),
        graph_(config.python_sum_order),
        gpt_(graph_, config_.shape, matrices_) {
    for (const double weight : weights) graph_.leaf(weight);
    graph_.keep();
  }

  double forward_backward(std::span<const std::vector<Token>> documents) override {
    graph_.reset();
    Value total = mean_loss(documents[0]);
    for (const std::vector<Token>& document : documents.subspan(1)) {
      total = total + mean_loss(document);
    }
    if (documents.size() > 1) total = total * (1.0 / static_cast<double>(documents.size()));
    graph_.backward(total);
    return total.data();
  }

  std::vector<double> gradients() const override {
    const auto grad = graph_.kept_grad();
    return {grad.begin(), grad.end()};
  }

  void update(const AdamStep& step) override { graph_.update(graph_.kept_grad(), step); }

  void begin_context() override {
    graph_.reset();
    gpt_.begin_context();
  }

  void next_logits(Token token, std::span<double> logits) override {
    const auto data = gpt_.logits(token).data();
    std::copy(data.begin(), data.end(), logits.begin());
  }

  std::vector<double> weights() const override {
    const auto data = graph_.kept_data();
    return {data.begin(), data.end()};
  }

 private:
  Value mean_loss(std::span<const Token> document) {
    const auto n = std::min(static_cast<size_t>(config_.shape.block_size), document.size() - 1);
    gpt_.begin_context();
    Value total = gpt_.loss(document[0], document[1]);
    for (size_t i = 1; i < n; ++i) total = total + gpt_.loss(document[i], document[i + 1]);
    return total * (1.0 / static_cast<double>(n));
  }

  Config config_;
  Matrices matrices_;
  Graph graph_;
  ScalarGpt gpt_;
};

}  // namespace

double learning_rate_at(const Config& config, int64_t step) {
  return config.learning_rate *
         (1.0 - static_cast<double>(step) / static_cast<double>(config.num_steps));
}

AdamStep adam_step(const Config& config, int64_t step) {
  const auto t = static_cast<double>(step + 1);
  return {config.beta1, config.beta2,
          learning_rate_at(config, step) / (1.0 - std::pow(config.beta1, t)),
          1.0 / (1.0 - std::pow(config.beta2, t)), config.adam_epsilon};
}

std::unique_ptr<Engine> make_scalar_engine(const Config& config,
                                           const std::vector<double>& weights) {
  return std::make_unique<ScalarEngine>(config, weights);
}

}  // namespace limpid::microgpt
