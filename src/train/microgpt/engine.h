// The interface between the training loop and a model that learns.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "train/microgpt/adam_step.h"
#include "train/microgpt/config.h"
#include "train/microgpt/dataset.h"
#include "train/microgpt/parameters.h"

namespace limpid::microgpt {

// The learning rate of step 0, 1, … of `config.num_steps`: it falls linearly to 0.
double learning_rate_at(const Config& config, int64_t step);
// Returns the Adam step for step 0, 1, …
AdamStep adam_step(const Config& config, int64_t step);

// A model that can be trained and sampled. There are three implementations: a graph of scalars that
// is easy to read, matrices with SIMD and a derivative by hand that are fast, and the decoder and
// tape that train large models. All compute the same function, which tests check against each
// other.
class Engine {
 public:
  virtual ~Engine() = default;

  // Computes the loss, and the gradients as a side effect. The loss is the mean over the documents
  // of each document's mean cross entropy (in nats) of the next token, for up to block_size tokens.
  // A document is BOS, its characters, BOS.
  virtual double forward_backward(std::span<const std::vector<Token>> documents) = 0;
  // Returns d loss / d parameter of the last forward_backward, in the order of Matrices. Call it
  // before update() or begin_context().
  virtual std::vector<double> gradients() const = 0;
  virtual void update(const AdamStep& step) = 0;

  // For sampling. begin_context forgets the context; next_logits takes a token and computes logits
  // [vocab_size] for the next one. A context has at most block_size tokens.
  virtual void begin_context() = 0;
  virtual void next_logits(Token token, std::span<double> logits) = 0;

  // Returns the weights in the order of Matrices.
  virtual std::vector<double> weights() const = 0;
};

// Creates the engine that computes with a graph of scalars, in f64. It is slow, and simple to read.
std::unique_ptr<Engine> make_scalar_engine(const Config& config,
                                           const std::vector<double>& weights);

// Creates the engine that computes the same model with matrices and vectors and an explicit
// derivative. T is float or double.
template <typename T>
std::unique_ptr<Engine> make_fast_engine(const Config& config, const std::vector<double>& weights);

// Creates the engine that describes the model to the decoder of all models (DecoderSpec) and trains
// it as `limpid train` does, in f32.
std::unique_ptr<Engine> make_tensor_engine(const Config& config,
                                           const std::vector<double>& weights);

}  // namespace limpid::microgpt
