// The subcommands. Each declares its options on a CLI::App in a function of its own, so that help,
// completion and the manual page can read the declarations of all commands without running one.
//
// The file of a command includes this header, which brings what nearly all of them use: options,
// opening a model, output, and checks.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "base/check.h"
#include "cli/flags.h"
#include "cli/open_model.h"
#include "cli/options.h"
#include "cli/output.h"

namespace limpid::cli {

inline constexpr int kExitOk = 0;
inline constexpr int kExitError = 1;
inline constexpr int kExitInterrupted = 130;  // as a shell reports SIGINT

// Runs a command with the values that parse() has set, and returns the exit code. Errors are
// thrown.
using Run = std::function<int()>;

struct Command {
  std::string summary;      // in the list of all commands
  std::string usage;        // what follows "limpid"; its first word is the name
  std::string description;  // of several sentences
  std::string examples;     // whole command lines, one a line
  Run (*declare)(CLI::App& app);

  [[nodiscard]] std::string name() const { return usage.substr(0, usage.find(' ')); }
};

// Makes a command's Command::declare of its three parts: a struct of values, a function
// declare(app, values) for the options that set them, and a function run(values), which returns an
// exit code, or nothing where success has only one.
template <typename Values, auto declare, auto run>
Run bind(CLI::App& app) {
  const auto values = std::make_shared<Values>();
  declare(app, *values);
  return [values] {
    if constexpr (std::is_void_v<decltype(run(*values))>) {
      run(*values);
      return kExitOk;
    } else {
      return run(*values);
    }
  };
}

Command bench_command();
Command chat_command();
Command completion_command();
Command convert_command();
Command detokenize_command();
Command devices_command();
Command doctor_command();
Command explain_command();
Command inspect_command();
Command logits_command();
Command man_command();
Command microgpt_command();
Command perplexity_command();
Command pull_command();
Command quantize_command();
Command run_command();
Command serve_command();
Command template_command();
Command tokenize_command();
Command train_command();
Command tokenizer_command();
Command verify_command();

// Prints the possible completions of the last of `words`, for the scripts of `limpid completion`.
void print_suggestions(const Arguments& words);

// All of them, in the order of `limpid --help`.
const std::vector<Command>& commands();

// A command with its declarations.
struct DeclaredCommand : Command {
  explicit DeclaredCommand(const Command& command);

  std::shared_ptr<CLI::App> app;
  Run run;
};

}  // namespace limpid::cli
