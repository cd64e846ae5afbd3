// `limpid`: finds the subcommand, and turns whatever is thrown into one line and an exit code.
#include <fmt/format.h>

#include <array>
#include <csignal>
#include <cstdio>
#include <exception>

#include "cli/command.h"
#include "cli/output.h"
#include "limpid/error.hpp"

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
  };
  return kCommands;
}

namespace {

void print_overview() {
  write_out("usage: limpid COMMAND [options]\n\n");
  for (const Command& command : commands()) {
    write_out(fmt::format("  {:12} {}\n", command.name, command.summary));
  }
  write_out(
      "\n  limpid COMMAND --help   options and examples\n"
      "  limpid --version\n\n"
      "example:\n"
      "  limpid pull smollm2 && limpid chat -m smollm2\n");
}

int dispatch(const Arguments& arguments) {
  if (arguments.empty()) {
    print_overview();
    return kExitError;
  }
  const std::string& word = arguments.front();
  if (word == "-h" || word == "--help" || word == "help") return print_overview(), kExitOk;
  if (word == "--version" || word == "version") {
    write_out("limpid " LIMPID_VERSION "\n");
    return kExitOk;
  }
  std::vector<std::string> names;
  for (const Command& command : commands()) {
    if (command.name == word) return command.run({arguments.begin() + 1, arguments.end()});
    names.emplace_back(command.name);
  }
  const std::string suggestion = nearest(word, names);
  throw ArgumentError(suggestion.empty()
                          ? fmt::format("no command '{}' (limpid --help lists them)", word)
                          : fmt::format("no command '{}'; did you mean '{}'?", word, suggestion));
}

int run_program(const Arguments& arguments) {
  try {
    const int exit_code = dispatch(arguments);
    flush_out();
    return exit_code;
  } catch (const std::bad_alloc&) {
    print_error("out of memory; a smaller context (-c) or batch (-b) needs less");
  } catch (const std::exception& error) {
    print_error(error.what());
  }
  return kExitError;
}

}  // namespace
}  // namespace limpid::cli

int main(int argc, char** argv) {
  std::signal(SIGPIPE, SIG_DFL);  // a reader that leaves (| head) ends the program quietly
  return limpid::cli::run_program({argv + 1, argv + argc});
}
