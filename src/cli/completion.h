// Scripts that let a shell complete commands, options and file names, made from what each
// subcommand says of itself.
#pragma once

#include <span>
#include <string>

#include "cli/command.h"

namespace limpid::cli {

// Whether the option's value is a file or folder.
bool names_a_file(const CommandDescription::Option& option);

std::string bash_completion(std::span<const DescribedCommand> commands);
std::string zsh_completion(std::span<const DescribedCommand> commands);
std::string fish_completion(std::span<const DescribedCommand> commands);

}  // namespace limpid::cli
