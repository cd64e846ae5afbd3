// `limpid`: finds the subcommand, runs it, and turns an exception into one line and an exit code.
//
// Every command ends here, with one of these exit codes:
//   0    all was done as asked
//   1    an error, reported in one line on stderr, or a comparison that finds a difference
//   130  Ctrl-C, SIGTERM or SIGHUP; serve ends with 0 after the first two
#include <fcntl.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <exception>

#include "base/paths.h"
#include "cli/error_words.h"
#include "cli/help.h"
#include "cli/signals.h"
#include "limpid/error.hpp"

namespace limpid::cli {

namespace {

// A descriptor that is closed (2>&-) would go to the first file or socket that is opened, which
// then would be read as standard input or get the messages. Reading and writing are errors, as on a
// closed one, but messages are lost.
void hold_standard_streams() {
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    const int mode = stream == STDOUT_FILENO ? O_RDONLY : O_WRONLY;
    if (fcntl(stream, F_GETFD) < 0) open("/dev/null", mode);  // gets the lowest number that is free
  }
}

// The order of commands() is that in which a new user needs them: chat first.
void print_overview() {
  write_out("usage: limpid COMMAND [options]\n\n");
  for (const Command& command : commands()) {
    write_out(fmt::format("  {:12} {}\n", command.name(),
                          wrapped(command.summary, 15, 15, terminal_columns(STDOUT_FILENO))));
  }
  write_out(
      "\n  limpid COMMAND --help   options and examples\n"
      "  limpid --version\n\n"
      "example:\n"
      "  limpid pull smollm2 && limpid chat -m smollm2\n");
}

int run(const Command& command, const Arguments& arguments) {
  const DeclaredCommand declared(command);
  const auto is_help = [](const std::string& word) { return word == "-h" || word == "--help"; };
  if (std::ranges::any_of(arguments, is_help)) {
    write_out(help_text(declared, terminal_columns(STDOUT_FILENO)));
    return kExitOk;
  }
  parse(*declared.app, command.name(), arguments);
  try {
    return declared.run();
  } catch (const ArgumentError& error) {
    throw ArgumentError(with_variable(*declared.app, error.what()));
  }
}

// The first word must be a command. Otherwise the error depends on the word: a file, an option, or
// a name that is near to a command.
int dispatch(const Arguments& arguments) {
  if (arguments.empty()) {
    print_overview();
    return kExitError;
  }
  const std::string& word = arguments.front();
  if (word == "help" && arguments.size() >= 2) return dispatch({arguments[1], "--help"});
  if (word == "-h" || word == "--help" || word == "help") return print_overview(), kExitOk;
  if (word == "--version" || word == "version") {
    write_out("limpid " LIMPID_VERSION "\n");
    return kExitOk;
  }
  if (word == "__complete")
    return print_suggestions({arguments.begin() + 1, arguments.end()}), kExitOk;
  std::vector<std::string> names;
  for (const Command& command : commands()) {
    if (command.name() == word) return run(command, {arguments.begin() + 1, arguments.end()});
    names.push_back(command.name());
  }
  LIMPID_CHECK(ArgumentError, !is_there(word),
               "a command comes first: limpid chat -m {} (limpid --help lists them)", word);
  names.insert(names.end(), {"--help", "--version"});
  const std::string suggestion = did_you_mean(word, names);
  const DeclaredCommand chat(chat_command());
  const bool is_of_chat = find_option(*chat.app, word.substr(0, word.find('='))) != nullptr;
  LIMPID_CHECK(ArgumentError, !suggestion.empty() || !word.starts_with('-') || !is_of_chat,
               "a command comes before {}, as in limpid chat {} (limpid --help lists them)", word,
               fmt::join(arguments, " "));
  throw ArgumentError(fmt::format("no command '{}'{}", word,
                                  suggestion.empty() ? " (limpid --help lists them)" : suggestion));
}

// Every error ends here as one line. Standard output is flushed before success is reported, so a
// full disk is an error too.
int run_program(const Arguments& arguments) {
  try {
    const int exit_code = dispatch(arguments);
    flush_out();
    return exit_code;
  } catch (const std::bad_alloc&) {
    print_error("out of memory; a smaller context (-c) or batch (-b) needs less");
  } catch (const Interrupted& interrupted) {
    print_error(interrupted.what());
    return kExitInterrupted;
  } catch (const std::exception& error) {
    print_error(in_program_words(error));
  }
  return kExitError;
}

}  // namespace
}  // namespace limpid::cli

int main(int argc, char** argv) {
  limpid::cli::hold_standard_streams();
  std::signal(SIGPIPE, SIG_DFL);  // a reader that leaves (| head) ends the program quietly
  std::signal(SIGXFSZ, SIG_IGN);  // a file that outgrows `ulimit -f` is an error of the write
  limpid::cli::handle_signals();
  return limpid::cli::run_program({argv + 1, argv + argc});
}
