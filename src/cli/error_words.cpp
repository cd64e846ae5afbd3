// "use a smaller context (OpenOptions::n_ctx)" becomes "use a smaller context (-c)": the library
// does not know what a program calls its options.
//
// The library throws one message for all programs that use it. Only this file knows both names, so
// an option that is renamed is changed in one place.
#include "cli/error_words.h"

#include <fmt/format.h>

#include <string_view>
#include <utility>

namespace limpid::cli {
namespace {

constexpr std::pair<std::string_view, std::string_view> kFlags[] = {
    {"Config::batch_size", "--batch_size"},
    {"Config::learning_rate", "--learning_rate"},
    {"Config::num_steps", "--num_steps"},
    {"Config::samples", "--samples"},
    {"Config::temperature", "--temperature"},
    {"OpenOptions::config", "--config"},
    {"OpenOptions::device", "--device"},
    {"OpenOptions::gpu_layers", "--gpu-layers"},
    {"OpenOptions::products", "--products"},
    {"OpenOptions::lora", "--lora"},
    {"OpenOptions::n_batch", "-b"},
    {"OpenOptions::n_ctx", "-c"},
    {"OpenOptions::rope_scaling", "--rope-scaling"},
    {"OpenOptions::split", "--split"},
    {"OpenOptions::tokenizer_path", "--tokenizer"},
    {"PlanOptions::allow_requantize", "--allow-requantize"},
    {"Shape::block_size", "--block_size"},
    {"Shape::n_embd", "--n_embd"},
    {"Shape::n_head", "--n_head"},
    {"Shape::n_layer", "--n_layer"},
};

}  // namespace

// Advice must work when it is followed, so no context is recommended that no model could have.
std::string sufficient_context(const ContextOverflowError& error) {
  constexpr int64_t kMost = 1 << 24;  // tokens; ten times what any model was trained for
  return error.n_needed() > kMost ? "" : fmt::format("-c {}", error.n_needed());
}

// The library names its own options in messages; here they get the names of the command line.
std::string in_program_words(const std::exception& error) {
  if (const auto* overflow = dynamic_cast<const ContextOverflowError*>(&error)) {
    const std::string context = sufficient_context(*overflow);
    return fmt::format(
        "the sequence has {} tokens and the context holds {}: shorten the text, or use {}",
        overflow->n_tokens(), overflow->n_ctx(),
        context.empty() ? "a larger -c and a smaller -n" : context);
  }
  std::string message = error.what();
  for (const auto& [option, flag] : kFlags) {
    for (size_t at = 0; (at = message.find(option, at)) != std::string::npos; at += flag.size())
      message.replace(at, option.size(), flag);
  }
  return message;
}

}  // namespace limpid::cli
