// The list is in the order in which a new user meets the commands: chat and run first, tools for
// building on Limpid last. `limpid --help`, the manual page and completion all show it in this
// order.
#include "cli/command.h"

#include <CLI/CLI.hpp>

namespace limpid::cli {

const std::vector<Command>& commands() {
  static const std::vector<Command> all = {
      chat_command(),       run_command(),        serve_command(),      inspect_command(),
      tokenize_command(),   detokenize_command(), template_command(),   logits_command(),
      verify_command(),     explain_command(),    perplexity_command(), bench_command(),
      convert_command(),    quantize_command(),   tokenizer_command(),  train_command(),
      microgpt_command(),   pull_command(),       devices_command(),    doctor_command(),
      completion_command(), man_command(),
  };
  return all;
}

DeclaredCommand::DeclaredCommand(const Command& command)
    : Command(command), app(std::make_shared<CLI::App>()) {
  app->set_help_flag();  // none: main.cpp looks for it
  group(*app, "options");
  run = declare(*app);
}

}  // namespace limpid::cli
