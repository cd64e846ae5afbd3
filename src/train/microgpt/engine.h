// What the training loop asks of a model that learns.
#pragma once

#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "train/microgpt/adam_step.h"
#include "train/microgpt/config.h"
#include "train/microgpt/dataset.h"
#include "train/microgpt/parameters.h"

namespace limpid::microgpt {

// Of step 0, 1, ... of `config.num_steps`, over which the learning rate falls to 0.
AdamStep adam_step(const Config& config, int64_t step);

class Engine {
 public:
  virtual ~Engine() = default;

  // Mean over the documents of their mean loss: the cross entropy of every next token, in nats, up
  // to block_size of them. A document is BOS, its characters, BOS. Leaves the gradients.
  virtual double forward_backward(std::span<const std::vector<Token>> documents) = 0;
  // d loss / d parameter of the last forward_backward, in the order of Matrices. Ask before
  // update() or a new context.
  virtual std::vector<double> gradients() const = 0;
  virtual void update(const AdamStep& step) = 0;

  // For sampling: forgets the context, then takes a token and gives logits [vocab_size] for the
  // one behind it. At most block_size tokens from one begin_context to the next.
  virtual void begin_context() = 0;
  virtual void next_logits(Token token, std::span<double> logits) = 0;

  // In the order of Matrices.
  virtual std::vector<double> weights() const = 0;
};

// The model as a graph of scalars, in f64.
std::unique_ptr<Engine> make_scalar_engine(const Config& config, std::vector<double> weights);

// The same model without a graph: matrices, vectors, and the derivative written out. T is float or
// double.
template <typename T>
std::unique_ptr<Engine> make_fast_engine(const Config& config, std::vector<double> weights);

}  // namespace limpid::microgpt
