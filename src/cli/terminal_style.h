// How text of different speakers looks on a person's terminal.
#pragma once

#include <string_view>

namespace limpid::cli {

// Escape sequences (ECMA-48, SGR), or "" where nothing may be styled: `descriptor` is not a
// terminal, NO_COLOR is set and not empty (no-color.org), or TERM is unset or `dumb`.
class TerminalStyle {
 public:
  explicit TerminalStyle(int descriptor);

  [[nodiscard]] std::string_view question() const { return styled_ ? "\x1b[1;36m" : ""; }
  [[nodiscard]] std::string_view reset() const { return styled_ ? "\x1b[0m" : ""; }
  [[nodiscard]] std::string_view note() const { return styled_ ? "\x1b[2m" : ""; }

 private:
  bool styled_;
};

// Whether TERM names a terminal that understands escape sequences.
bool terminal_has_escapes();

// A line on stderr about the conversation, not part of it.
void print_note(std::string_view text);

}  // namespace limpid::cli
