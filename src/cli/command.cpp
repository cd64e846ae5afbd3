#include "cli/command.h"

#include <array>

namespace limpid::cli {

std::span<const Command> commands() {
  static constexpr std::array kCommands{
      Command{"chat", "talk with a model", chat_command},
      Command{"run", "continue a text", run_command},
      Command{"inspect", "what is in a model file, and the memory it needs", inspect_command},
      Command{"tokenize", "text to token ids", tokenize_command},
      Command{"detokenize", "token ids to text", detokenize_command},
      Command{"template", "render a chat template", template_command},
      Command{"logits", "the model's raw outputs, as a .npy file", logits_command},
      Command{"verify", "a model beside a trace or another checkpoint, layer by layer",
              verify_command},
      Command{"perplexity", "how well a model predicts a text", perplexity_command},
      Command{"bench", "tokens per second, beside the limits of this machine", bench_command},
      Command{"convert", "a model in another layout", convert_command},
      Command{"quantize", "a model in fewer bits", quantize_command},
      Command{"microgpt", "the smallest language model that learns", microgpt_command},
      Command{"pull", "obtain a model", pull_command},
      Command{"devices", "what this machine can run on", devices_command},
      Command{"doctor", "whether all is well on this machine, and what to do if not",
              doctor_command},
      Command{"completion", "words after TAB, for bash, zsh or fish", completion_command},
      Command{"man", "the manual page", man_command},
  };
  return kCommands;
}

std::vector<DescribedCommand> described_commands() {
  std::vector<DescribedCommand> described;
  for (const Command& command : commands()) {
    described.push_back({std::string(command.name), std::string(command.summary),
                         Flags::describe([&command] { command.run({}); })});
  }
  return described;
}

}  // namespace limpid::cli
