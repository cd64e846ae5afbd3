// The declarations of a command, read from its CLI::App: the one source of --help, completion and
// the manual page.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cli/command.h"

namespace limpid::cli {

// "-c", "--ctx-size"; none for an option that is only a position.
std::vector<std::string> spellings(const CLI::Option& option);
// Of the value: "N", "[LIST]"; "" for a switch.
std::string placeholder(const CLI::Option& option);
std::vector<std::string> likely_values(const CLI::Option& option);
// "-c, --ctx-size N", or the position's name.
std::string shown(const CLI::Option& option);

// `text` on lines of at most `n_columns` characters, broken at blanks. A longer word is not broken.
// The first line begins in `column`, the others after `indent` blanks.
std::string wrapped(std::string_view text, size_t indent, size_t column, size_t n_columns);

// The text of --help for a terminal of that width.
std::string help_text(const DeclaredCommand& command, size_t n_columns);

}  // namespace limpid::cli
