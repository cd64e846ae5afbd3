#include "train/watch/microgpt_view.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>

#include "base/check.h"
#include "train/microgpt/sampling.h"

namespace limpid {

using namespace microgpt;

MicrogptView::MicrogptView(const microgpt::Trainer& trainer)
    : config_(trainer.config()),
      alphabet_(trainer.alphabet()),
      matrices_(config_.shape),
      gpt_(graph_, config_.shape, matrices_),
      random_(config_.seed) {
  LIMPID_CHECK(ArgumentError, matrices_.n_params <= kMostWeights,
               "a model of {} weights is too large to draw each of them; watch one of at most {}",
               matrices_.n_params, kMostWeights);
  for (int64_t i = 0; i < matrices_.n_params; ++i) graph_.leaf(0);
  graph_.keep();
}

// Columns from left to right are the way of a number through the model: a token and its position
// choose rows whose sum is x, and so on. Attention is between v and "attended", where no
// weights are.
Json MicrogptView::network() const {
  const int64_t width = config_.shape.n_embd;
  std::vector<std::string> characters;
  characters.reserve(static_cast<size_t>(alphabet_.vocab_size()));
  for (Token token = 0; token < alphabet_.bos(); ++token)
    characters.push_back(alphabet_.decode(token));
  characters.emplace_back("BOS");
  std::vector<std::string> positions;
  for (int64_t i = 0; i < config_.shape.block_size; ++i) positions.push_back(std::to_string(i));

  NetworkJson network;
  const int token = network.add_group("token", 0, alphabet_.vocab_size(), characters);
  const int position = network.add_group("position", 0, config_.shape.block_size, positions);
  int64_t column = 1;
  int stream = network.add_group("x", column, width);
  network.add_connections("wte", token, stream, matrices_.wte, true);
  network.add_connections("wpe", position, stream, matrices_.wpe, true);
  for (size_t i = 0; i < matrices_.layers.size(); ++i) {
    const LayerMatrices& layer = matrices_.layers[i];
    const auto add = [&](const char* name, int64_t at, int64_t size) {
      return network.add_group(fmt::format("layer{}.{}", i, name), at, size);
    };
    const auto connect = [&](const char* name, int from, int to, const Matrix& matrix) {
      network.add_connections(fmt::format("layer{}.{}", i, name), from, to, matrix);
    };
    const int q = add("q", column + 1, width);
    const int k = add("k", column + 1, width);
    const int v = add("v", column + 1, width);
    const int attended = add("attended", column + 2, width);
    const int middle = add("middle", column + 3, width);
    const int hidden = add("hidden", column + 4, 4 * width);
    const int out = add("out", column + 5, width);
    connect("attn_wq", stream, q, layer.attn_wq);
    connect("attn_wk", stream, k, layer.attn_wk);
    connect("attn_wv", stream, v, layer.attn_wv);
    connect("attn_wo", attended, middle, layer.attn_wo);
    connect("mlp_fc1", middle, hidden, layer.mlp_fc1);
    connect("mlp_fc2", hidden, out, layer.mlp_fc2);
    stream = out;
    column += 5;
  }
  const int next = network.add_group("logit", column + 1, alphabet_.vocab_size(), characters);
  network.add_connections("lm_head", stream, next, matrices_.lm_head);
  Json json = network.json("microgpt", matrices_.n_params, config_);
  json["n_layers"] = config_.shape.n_layer;
  json["n_heads"] = config_.shape.n_head;
  return json;
}

Json MicrogptView::snapshot(const microgpt::Trainer& trainer) {
  const std::vector<double> weights = trainer.engine().weights();
  graph_.reset();
  std::ranges::copy(weights, graph_.kept_data().begin());
  Json json{{"step", trainer.steps_done()},
            {"weights", packed_f32(weights)},
            {"gradients", packed_f32(trainer.engine().gradients())}};
  json.update(current_name(trainer.batch().front()));
  json["made_up"] = made_up_name();
  return json;
}

// The name is run once more on a graph of numbers whose leaves are the engine's weights. So every
// activation is a node, and one backward pass from the mean loss gives the derivative by each. The
// inputs are not nodes: they are 1 for the token and the position that are chosen.
Json MicrogptView::current_name(const std::vector<Token>& document) {
  const auto n = std::min(static_cast<size_t>(config_.shape.block_size), document.size() - 1);
  std::vector<std::vector<Row>> traces;
  std::vector<double> attention;
  gpt_.begin_context();
  Value total = graph_.leaf(0);
  for (size_t i = 0; i < n; ++i) {
    total = total + gpt_.loss(document[i], document[i + 1]);
    traces.push_back(gpt_.trace());
    for (const Row& weights : gpt_.attention_weights()) {
      const auto read = weights.data();
      attention.insert(attention.end(), read.begin(), read.end());
      attention.resize(attention.size() + n - read.size());
    }
  }
  graph_.backward(total * (1.0 / static_cast<double>(n)));
  std::vector<double> activations;
  std::vector<double> gradients;
  const auto n_inputs = static_cast<size_t>(alphabet_.vocab_size() + config_.shape.block_size);
  for (size_t i = 0; i < n; ++i) {
    const size_t begin = activations.size();
    activations.resize(begin + n_inputs);
    activations[begin + static_cast<size_t>(document[i])] = 1;
    activations[begin + static_cast<size_t>(alphabet_.vocab_size()) + i] = 1;
    gradients.resize(activations.size());
    for (const Row& row : traces[i]) {
      std::ranges::copy(row.data(), std::back_inserter(activations));
      std::ranges::copy(row.grad(), std::back_inserter(gradients));
    }
  }
  return {
      {"tokens", std::vector<Token>(document.begin(), document.begin() + std::ssize(traces) + 1)},
      {"n_positions", n},
      {"activations", packed_f32(activations)},
      {"activation_gradients", packed_f32(gradients)},
      {"attention", packed_f32(attention)}};
}

// Empty if the model has diverged, since its probabilities are not numbers then.
std::string MicrogptView::made_up_name() {
  graph_.reset();
  const auto weights = graph_.kept_data();
  if (!std::ranges::all_of(weights, [](double weight) { return std::isfinite(weight); })) return {};
  gpt_.begin_context();
  return sample_document(config_, alphabet_, random_,
                         [this](Token token, std::span<double> logits) {
                           std::ranges::copy(gpt_.logits(token).data(), logits.begin());
                         });
}

}  // namespace limpid
