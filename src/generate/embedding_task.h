// The embedding of a text, as a task of the scheduler.
#pragma once

#include <exception>
#include <functional>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "generate/engine.h"
#include "generate/scheduler.h"

namespace limpid {

// How the hidden states of all tokens become one vector: their mean, or the state of the last token
// (which has seen all others), or of the first (for models that were trained so).
enum class Pooling : uint8_t { kMean, kLast, kFirst };

// The pooling of that name, "mean", "last" or "cls"; nothing for another name.
std::optional<Pooling> pooling_named(std::string_view name);

// The pooling that an embedding model was trained with (GGUF's ARCHITECTURE.pooling_type); the mean
// for other models. Throws UnsupportedError for a type that is not implemented.
Pooling model_pooling(const Checkpoint& checkpoint);

// Evaluates a text and pools its hidden states, the last layer's results after the output norm.
class EmbeddingTask final : public Task {
 public:
  // Called once, on the thread that ticks. `embedding` [d_model] is scaled to length 1 if
  // `normalize` is set; it is empty after an error or a cancellation.
  using OnEnd = std::function<void(std::span<const float> embedding, std::exception_ptr error)>;

  // Throws ArgumentError without tokens, ContextOverflowError.
  EmbeddingTask(const Engine& engine, std::vector<TokenId> tokens, Pooling pooling, bool normalize,
                CancelToken cancel, OnEnd on_end, std::shared_ptr<const AdapterMix> mix = nullptr);

 private:
  void on_row(int64_t position, const StepRow& row) override;
  void on_stop(std::exception_ptr error) override;
  bool is_cancelled() const override { return cancel_.cancelled(); }
  void give();

  Pooling pooling_;
  bool normalize_;
  CancelToken cancel_;
  OnEnd on_end_;
  std::vector<double> sum_;  // [d_model]
  int64_t next_ = 0;         // rows before this position are in the sum
};

}  // namespace limpid
