#include "train/training_sample.h"

#include <algorithm>
#include <vector>

#include "executor/executors.h"
#include "generate/engine.h"
#include "limpid/session.hpp"

namespace limpid {
// The checkpoint outlives the model, which reads its f32 matrices in place.
TrainingSample sample_text(const Checkpoint& checkpoint,
                           const std::shared_ptr<const Tokenizer>& tokenizer,
                           const RunSettings& settings, TokenId first_token, int n_threads) {
  OpenOptions open;
  open.n_threads = n_threads;
  open.check_memory = false;
  const LanguageModel model(
      std::make_shared<Engine>(Model::load({std::shared_ptr<const Checkpoint>(), &checkpoint},
                                           make_cpu_executor({.n_threads = n_threads})),
                               tokenizer, open, MemoryPlan{}));
  std::vector<TokenId> prompt;
  if (!settings.sample_prompt.empty()) prompt = model.encode(settings.sample_prompt);
  const TokenizerSpec& spec = tokenizer->spec();
  if (prompt.empty()) prompt = {spec.bos && spec.add_bos ? *spec.bos : first_token};
  GenerationOptions generation;
  generation.n_predict = settings.sample_tokens;
  generation.context_shift = true;
  generation.sampler.temperature = static_cast<float>(settings.sample_temp);
  generation.sampler.seed = settings.seed;
  const int64_t n_prompt = std::ssize(prompt);
  Session session(model,
                  {.n_ctx = n_prompt + std::min(model.n_ctx() - n_prompt, settings.sample_tokens)});
  session.append(prompt);
  TrainingSample sample{tokenizer->decode(prompt), {}};
  for (const std::string_view piece : session.generate(generation)) sample.text += piece;
  return sample;
}

}  // namespace limpid
