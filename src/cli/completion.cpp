// `limpid completion`: what a shell needs to complete our words.
#include "cli/completion.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "base/check.h"
#include "cli/output.h"

namespace limpid::cli {
namespace {

using Option = CommandDescription::Option;

// The first line of a help text, without the clauses behind it: what a menu has room for.
std::string short_help(const Option& option) {
  return option.help.substr(0, std::min(option.help.find('\n'), option.help.find("; ")));
}

// `text` with a backslash before each of `special`.
std::string escaped(std::string_view text, std::string_view special) {
  std::string out;
  for (const char c : text) {
    if (special.find(c) != std::string_view::npos) out += '\\';
    out += c;
  }
  return out;
}

// For single quotes of bash and zsh, which know no escapes inside.
std::string in_single_quotes(std::string_view text) {
  std::string out = "'";
  for (const char c : text) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

std::vector<std::string> spellings_of(const CommandDescription& command) {
  std::vector<std::string> spellings = {"-h", "--help"};
  for (const Option& option : command.options)
    spellings.insert(spellings.end(), option.spellings.begin(), option.spellings.end());
  return spellings;
}

// The values that may stand without an option before them.
std::vector<std::string> positions_of(const CommandDescription& command) {
  std::vector<std::string> values;
  for (const Option& option : command.options) {
    if (option.spellings.empty())
      values.insert(values.end(), option.values.begin(), option.values.end());
  }
  return values;
}

std::string names_of(std::span<const DescribedCommand> commands) {
  std::string names;
  for (const DescribedCommand& command : commands) names += command.name + " ";
  return names + "help";
}

// The arms of bash's `case $command:$previous`.
std::string bash_values(const DescribedCommand& command) {
  std::string arms;
  for (const Option& option : command.description.options) {
    if (option.spellings.empty() || option.placeholder.empty()) continue;
    std::vector<std::string> patterns;
    for (const std::string& spelling : option.spellings)
      patterns.push_back(command.name + ":" + spelling);
    arms += fmt::format("    {}) values={} files={} ;;\n", fmt::join(patterns, "|"),
                        in_single_quotes(fmt::format("{}", fmt::join(option.values, " "))),
                        names_a_file(option) ? "yes" : "");
  }
  return arms;
}

// A specification for zsh's _arguments; `place` counts the positions: "1".
std::string zsh_argument(const Option& option, const std::string& place) {
  const auto value = [&option] {
    const std::string what = escaped(option.placeholder, ":[]");
    if (!option.values.empty() && !names_a_file(option))
      return fmt::format(":{}:({})", what, fmt::join(option.values, " "));
    return fmt::format(":{}:{}", what, names_a_file(option) ? "_files" : "");
  };
  const std::string help = escaped(short_help(option), "[]:\\");
  if (option.spellings.empty()) return fmt::format("    {}\n", in_single_quotes(place + value()));
  std::string lines;
  for (const std::string& spelling : option.spellings) {
    lines += fmt::format("    {}\n", in_single_quotes(fmt::format(
                                         "({}){}[{}]{}", fmt::join(option.spellings, " "), spelling,
                                         help, option.placeholder.empty() ? "" : value())));
  }
  return lines;
}

std::string fish_option(const std::string& command, const Option& option) {
  std::string line = fmt::format("complete -c limpid -n '__fish_seen_subcommand_from {}'", command);
  for (const std::string& spelling : option.spellings) {
    const bool is_long = spelling.starts_with("--");
    // -s: one letter; -o: several letters behind one dash.
    const char* kind = is_long ? "-l" : spelling.size() == 2 ? "-s" : "-o";
    line += fmt::format(" {} {}", kind, spelling.substr(is_long ? 2 : 1));
  }
  const bool is_file = names_a_file(option);
  if (!option.placeholder.empty() && !option.spellings.empty()) line += is_file ? " -r" : " -x";
  if (is_file) line += " -F";
  if (!option.values.empty()) line += fmt::format(" -a '{}'", fmt::join(option.values, " "));
  return line + fmt::format(" -d '{}'\n", escaped(short_help(option), "'\\"));
}

}  // namespace

bool names_a_file(const Option& option) {
  constexpr std::array<std::string_view, 9> kPlaces = {
      "FILE", "FOLDER", "IN", "OUT", "MODEL2", "PATH", "NAME|PATH", "MODEL", "model"};
  return std::ranges::find(kPlaces, option.placeholder) != kPlaces.end();
}

std::string bash_completion(std::span<const DescribedCommand> commands) {
  std::string options;
  std::string values;
  for (const DescribedCommand& command : commands) {
    options += fmt::format("    {}) options='{}' positions='{}' ;;\n", command.name,
                           fmt::join(spellings_of(command.description), " "),
                           fmt::join(positions_of(command.description), " "));
    values += bash_values(command);
  }
  return fmt::format(
      R"(# bash completion for limpid; made by `limpid completion bash`
_limpid() {{
  local current=${{COMP_WORDS[COMP_CWORD]}} previous=${{COMP_WORDS[COMP_CWORD - 1]}}
  local command=${{COMP_WORDS[1]}} options='' positions='' values='' files=''
  COMPREPLY=()
  if [[ $COMP_CWORD -eq 1 || ($COMP_CWORD -eq 2 && $command == help) ]]; then
    mapfile -t COMPREPLY < <(compgen -W '{} --help --version' -- "$current")
    return
  fi
  case $command in
{}  esac
  case $command:$previous in
{}    *) values=$positions files=yes ;;
  esac
  if [[ $current == -* ]]; then
    mapfile -t COMPREPLY < <(compgen -W "$options" -- "$current")
    return
  fi
  mapfile -t COMPREPLY < <(
    compgen -W "$values" -- "$current"
    [[ -z $files ]] || compgen -f -- "$current"
  )
  [[ -z $files ]] || compopt -o filenames 2>/dev/null
}}
complete -F _limpid limpid
)",
      names_of(commands), options, values);
}

std::string zsh_completion(std::span<const DescribedCommand> commands) {
  std::string names;
  std::string arms;
  for (const DescribedCommand& command : commands) {
    names += fmt::format("    {}\n",
                         in_single_quotes(command.name + ":" + escaped(command.summary, ":")));
    std::string arguments;
    int n_positions = 0;
    for (const Option& option : command.description.options) {
      n_positions += option.spellings.empty() ? 1 : 0;
      arguments += zsh_argument(option, std::to_string(n_positions));
    }
    if (n_positions == 0 && !arguments.empty()) arguments += "    '*:file:_files'\n";
    arms += fmt::format(
        "  {})\n    _arguments \\\n    '(- *)'{{-h,--help}}'[options and examples]' \\\n",
        command.name);
    std::string_view rest = arguments;
    while (!rest.empty()) {
      const size_t end = rest.find('\n');
      arms += fmt::format("{}{}", rest.substr(0, end), end + 1 < rest.size() ? " \\\n" : "\n");
      rest.remove_prefix(end + 1);
    }
    if (arguments.empty()) arms += "    && return 0\n";
    arms += "    ;;\n";
  }
  return fmt::format(
      R"(#compdef limpid
# zsh completion for limpid; made by `limpid completion zsh`
_limpid() {{
  local -a commands=(
{}  )
  if (( CURRENT == 2 )); then
    _describe -t commands 'command of limpid' commands
    return
  fi
  local command=$words[2]
  shift words
  (( CURRENT-- ))
  case $command in
{}  esac
}}
if [[ $funcstack[1] == _limpid ]]; then _limpid "$@"; else compdef _limpid limpid; fi
)",
      names, arms);
}

std::string fish_completion(std::span<const DescribedCommand> commands) {
  std::string script = "# fish completion for limpid; made by `limpid completion fish`\n";
  script += "complete -c limpid -f\n";
  for (const DescribedCommand& command : commands) {
    script += fmt::format("complete -c limpid -n __fish_use_subcommand -a {} -d '{}'\n",
                          command.name, escaped(command.summary, "'\\"));
    const auto& options = command.description.options;
    for (const Option& option : options) script += fish_option(command.name, option);
    if (std::ranges::any_of(options, names_a_file))
      script +=
          fmt::format("complete -c limpid -n '__fish_seen_subcommand_from {}' -F\n", command.name);
  }
  return script;
}

int completion_command(const Arguments& arguments) {
  std::string shell;
  Flags flags("completion SHELL",
              "Prints a script with which bash, zsh or fish completes commands, options and file "
              "names.\n`cmake --install` puts it where the shell looks.",
              "limpid completion bash > limpid.bash && source limpid.bash\n"
              "limpid completion zsh > _limpid\n"
              "limpid completion fish > limpid.fish");
  flags.text("shell SHELL", shell, "bash, zsh or fish");
  flags.suggest({"bash", "zsh", "fish"});
  if (!flags.parse(arguments)) return kExitOk;
  const auto commands = described_commands();
  if (shell == "bash") return write_out(bash_completion(commands)), kExitOk;
  if (shell == "zsh") return write_out(zsh_completion(commands)), kExitOk;
  if (shell == "fish") return write_out(fish_completion(commands)), kExitOk;
  throw ArgumentError(shell.empty() ? "for which shell? limpid completion bash, zsh or fish"
                                    : fmt::format("no completion for {}; there are bash, zsh and "
                                                  "fish",
                                                  shell));
}

}  // namespace limpid::cli
