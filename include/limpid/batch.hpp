// Several prompts together: each pass over the weights computes a token for each prompt.
//
//   std::vector<std::string> prompts = {"The sea is", "The sky is"};
//   limpid::GenerationOptions options;
//   options.n_predict = 20;
//   for (const auto& result : limpid::generate_batch(model, prompts, options))
//     std::cout << result.text << "\n";
#pragma once

#include <cstddef>
#include <exception>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "limpid/generation.hpp"
#include "limpid/model.hpp"

namespace limpid {

// Continues each prompt (encoded as plain text, with BOS where the model wants it). Each result is
// bit for bit the one of the prompt alone. Calls `on_text(i, piece)` with whole UTF-8 when new text
// of prompt i is ready, on any thread that evaluates with this model. The KV cache holds n_ctx_each
// positions for each prompt (0: the model's n_ctx). A custom sampler with a state needs
// Sampler::clone. Throws what Session::generate and the reading of its stream throw, and what
// on_text throws: the first error of any prompt, which ends all of them without results. With
// `errors` such an error ends only its own prompt, whose result is then incomplete: (*errors)[i] is
// the error of prompt i, or null.
std::vector<GenerationResult> generate_batch(
    const LanguageModel& model, std::span<const std::string> prompts,
    const GenerationOptions& options = {},
    const std::function<void(size_t i, std::string_view piece)>& on_text = {},
    int64_t n_ctx_each = 0, std::vector<std::exception_ptr>* errors = nullptr);

}  // namespace limpid
