#include "cli/terminal_style.h"

#include <unistd.h>

#include <cstdlib>

#include "cli/output.h"

namespace limpid::cli {
namespace {

std::string_view variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::string_view() : value;
}

}  // namespace

bool terminal_has_escapes() {
  const std::string_view term = variable("TERM");
  return !term.empty() && term != "dumb";
}

TerminalStyle::TerminalStyle(int descriptor)
    : styled_(isatty(descriptor) != 0 && terminal_has_escapes() && variable("NO_COLOR").empty()) {}

void print_note(std::string_view text) { print_log(text, TerminalStyle(STDERR_FILENO).note()); }

}  // namespace limpid::cli
