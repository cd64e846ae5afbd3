// What a model did with a text, in numbers: how surprised it was by each token, what each layer
// would have said, who said what it said, where each head looked, and how large the activations
// were. `limpid explain` writes it as JSON or as a page.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "insight/activation_sizes.h"
#include "insight/attention_map.h"
#include "insight/attribution.h"
#include "insight/prediction.h"
#include "insight/probe_executor.h"
#include "model/model.h"

namespace limpid {

// The logit lens at one layer: what the model would say if it ended there, for each token.
struct LensLayer {
  int64_t layer = -1;                   // after this block; -1: the embedding
  std::vector<Prediction> predictions;  // [n_tokens]
};

struct Explanation {
  std::vector<int32_t> token_ids;
  int64_t n_prompt = 0;  // the tokens that follow are the model's answer
  int64_t n_layers = 0;
  int64_t n_heads = 0;
  std::vector<Prediction> next;         // [n_tokens], after each token
  std::vector<double> surprise;         // [n_tokens] in bits, NaN for the first token
  std::vector<LensLayer> lens;          // chosen layers, the last one among them
  std::vector<Attribution> parts;       // of the last positions, ascending
  std::vector<AttentionMap> attention;  // [n_layers * n_heads]
  std::vector<LayerNorms> norms;        // [1 + n_layers]
};

struct ExplainOptions {
  int64_t n_prompt = 0;     // 0: all tokens are the prompt
  int64_t n_best = 10;      // likeliest next tokens that are kept
  int64_t n_lens_best = 5;  // of each layer, fewer in a long text
  int64_t lens_every = 1;   // layers of the logit lens: every Nth, and the last
  // Whose logit is attributed at each position; -1: that of the token that follows, and at the end
  // of the text that of the likeliest one.
  int32_t token = -1;
  int32_t against = -1;  // whose logit is subtracted from it; -1: none
  // Positions whose logits are attributed, the last ones; -1: as many as `most_parts` numbers
  // allow.
  int64_t n_attributed = -1;
  int64_t most_parts = 200'000;
  int64_t most_attention = 700'000;  // weights that are kept of all heads together
  int64_t most_lens = 40'000;        // tokens that are kept of all layers of the lens together
  int64_t n_batch = 256;             // tokens of a step; the results do not depend on it
  // Called with the tokens done and all; false cancels (ResourceError).
  std::function<bool(int64_t done, int64_t total)> progress{};
};

// Explains a text step by step, for a caller who has other work for the model in between.
class Explainer {
 public:
  // `probe` is the executor of `model`; both must outlive this object. Throws ArgumentError for no
  // tokens and for options with a token that the vocabulary lacks, ContextOverflowError.
  Explainer(Model& model, ProbeExecutor& probe, std::vector<int32_t> token_ids,
            const ExplainOptions& options);
  Explainer(const Explainer&) = delete;
  Explainer& operator=(const Explainer&) = delete;
  ~Explainer();

  // Evaluates the next tokens, with a KV cache of its own in f32, and explains each; false when all
  // are done. Throws what Model::step throws. The model and its executor belong to this call until
  // it returns.
  bool advance();
  // The explanation, once.
  Explanation take();

 private:
  class Work;
  std::unique_ptr<Work> work_;
};

// All steps at once.
Explanation explain(Model& model, ProbeExecutor& probe, std::span<const int32_t> token_ids,
                    const ExplainOptions& options = {});

}  // namespace limpid
