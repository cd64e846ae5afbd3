// The tensor engine: microgpt as one more model of the decoder that runs and trains all others.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "executor/executors.h"
#include "train/microgpt/engine.h"
#include "train/optimizer.h"
#include "train/training_model.h"

namespace limpid::microgpt {
namespace {

// The decoder's name of a matrix: "layer0.attn_wq" to "blk.0.attn_q.weight".
std::string decoder_name(const std::string& name) {
  constexpr std::pair<std::string_view, std::string_view> kNames[] = {
      {"wte", "token_embd"},      {"wpe", "position_embd"}, {"lm_head", "output"},
      {"attn_wq", "attn_q"},      {"attn_wk", "attn_k"},    {"attn_wv", "attn_v"},
      {"attn_wo", "attn_output"}, {"mlp_fc1", "ffn_up"},    {"mlp_fc2", "ffn_down"}};
  const size_t dot = name.find('.');
  const std::string matrix = dot == std::string::npos ? name : name.substr(dot + 1);
  const auto* found =
      std::ranges::find(kNames, matrix, &std::pair<std::string_view, std::string_view>::first);
  const std::string block =
      dot == std::string::npos ? "" : fmt::format("blk.{}.", name.substr(5, dot - 5));
  return fmt::format("{}{}.weight", block, found->second);
}

bool is_norm(std::string_view name) { return name.ends_with("_norm.weight"); }

// GPT-2 with RMSNorm, which has no weight, a norm of the embeddings instead of one at the end, and
// ReLU.
Metadata metadata_of(const Shape& shape) {
  Metadata metadata;
  metadata.set("general.architecture", {std::string("gpt2"), "string"});
  KeyWriter keys(metadata, "gpt2.");
  keys.string("norm", "rms");
  keys.string("outer_norm", "embedding");
  keys.string("hidden_activation", "relu");
  keys.integer("block_count", shape.n_layer);
  keys.integer("context_length", shape.block_size);
  keys.integer("embedding_length", shape.n_embd);
  keys.integer("feed_forward_length", 4 * shape.n_embd);
  keys.integer("attention.head_count", shape.n_head);
  keys.number("attention.layer_norm_epsilon", 1e-5);
  return metadata;
}

Checkpoint to_checkpoint(const Shape& shape, const std::vector<double>& weights) {
  Checkpoint checkpoint;
  checkpoint.path = "microgpt";
  checkpoint.metadata = metadata_of(shape);
  const auto add = [&](const std::string& name, const limpid::Shape& of_tensor) {
    checkpoint.add(name, Tensor(DType::kF32, of_tensor));
    return checkpoint.owned.back()->f32();
  };
  const Matrices matrices(shape);
  for (const auto& [name, matrix] : matrices.named) {
    const auto values = add(decoder_name(name), {matrix.rows, matrix.cols});
    std::copy_n(weights.begin() + matrix.offset, matrix.size(), values.begin());
  }
  std::vector<std::string> norms = {"token_embd_norm.weight"};
  for (int64_t i = 0; i < shape.n_layer; ++i) {
    norms.push_back(fmt::format("blk.{}.attn_norm.weight", i));
    norms.push_back(fmt::format("blk.{}.ffn_norm.weight", i));
  }
  for (const std::string& name : norms) std::ranges::fill(add(name, {shape.n_embd}), 1.0F);
  return checkpoint;
}

class TensorEngine final : public Engine {
 public:
  TensorEngine(const Config& config, const std::vector<double>& weights)
      : config_(config),
        matrices_(config.shape),
        model_(to_checkpoint(config.shape, weights), make_executor("cpu", {.n_threads = 1}),
               {.learns = [](std::string_view name) { return !is_norm(name); }}),
        pool_(1),
        optimizer_({.beta1 = config.beta1,
                    .beta2 = config.beta2,
                    .epsilon = config.adam_epsilon,
                    .weight_decay = 0,
                    .clip = 0},
                   model_.parameters()) {}

  // The targets of a document have weights of their own, so each is a batch.
  double forward_backward(std::span<const std::vector<Token>> documents) override {
    model_.zero_gradients();
    double loss = 0;
    for (const std::vector<Token>& document : documents) {
      const int64_t n = std::min(config_.shape.block_size, std::ssize(document) - 1);
      Batch batch;
      batch.token_ids.assign(document.begin(), document.begin() + n);
      batch.targets.assign(document.begin() + 1, document.begin() + 1 + n);
      batch.lengths = {n};
      const double weight = 1.0 / static_cast<double>(n * std::ssize(documents));
      for (const double of_token : model_.losses_and_gradients(batch, static_cast<float>(weight)))
        loss += of_token * weight;
    }
    return loss;
  }

  std::vector<double> gradients() const override {
    return gather([](const Parameter& parameter) { return parameter.gradient.view().f32(); });
  }
  std::vector<double> weights() const override {
    return gather([](const Parameter& parameter) { return parameter.value->view().f32(); });
  }

  // AdamW without decay. It divides the learning rate by 1 - beta1^t itself.
  void update(const AdamStep& step) override {
    const auto t = static_cast<double>(optimizer_.n_steps() + 1);
    optimizer_.step(step.step_size * (1.0 - std::pow(step.beta1, t)), 0, pool_);
    model_.refresh();
  }

  void begin_context() override { context_.clear(); }
  // Computes the whole context again, as the tape keeps no KV cache.
  void next_logits(Token token, std::span<double> logits) override {
    context_.push_back(token);
    std::ranges::copy(model_.next_logits(context_), logits.begin());
  }

 private:
  // Numbers of the parameters in the order of Matrices.
  template <typename Numbers>
  std::vector<double> gather(const Numbers& numbers) const {
    std::vector<double> all;
    for (const auto& [name, matrix] : matrices_.named) {
      const auto parameter =
          std::ranges::find(model_.parameters(), decoder_name(name), &Parameter::name);
      const float* values = numbers(*parameter);
      all.insert(all.end(), values, values + matrix.size());
    }
    return all;
  }

  Config config_;
  Matrices matrices_;
  TrainingModel model_;
  ThreadPool pool_;
  Optimizer optimizer_;
  std::vector<int32_t> context_;
};

}  // namespace

std::unique_ptr<Engine> make_tensor_engine(const Config& config,
                                           const std::vector<double>& weights) {
  return std::make_unique<TensorEngine>(config, weights);
}

}  // namespace limpid::microgpt
