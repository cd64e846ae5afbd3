// `limpid completion`: scripts that let a shell complete commands, options and file names, made
// from the declarations of all commands.
//
// - bash calls _limpid, which leaves the completions of the current word in COMPREPLY. The script
// has
//   two `case` tables: the options of each command, and the values of each "command:option".
// - zsh has _arguments, which wants a specification per option, "(-n --predict)-n[help]:N:": in
//   parentheses the names that exclude each other, then the help, the value and its completions.
// - fish wants one `complete` line per option, with the command as its condition.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>

#include "base/check.h"
#include "cli/help.h"
#include "cli/output.h"

namespace limpid::cli {
namespace {

using Option = CLI::Option;

// Whether the option's value is a file or folder.
bool names_a_file(const Option& option) {
  constexpr std::array<std::string_view, 9> kPlaces = {
      "FILE", "FOLDER", "IN", "OUT", "MODEL2", "PATH", "NAME|PATH", "MODEL", "model"};
  return std::ranges::find(kPlaces, placeholder(option)) != kPlaces.end();
}

// The first clause of a help text: a menu has room for no more.
std::string short_help(const Option& option) {
  const std::string& help = option.get_description();
  return help.substr(0, std::min(help.find('\n'), help.find("; ")));
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

std::vector<std::string> spellings_of(const DeclaredCommand& command) {
  std::vector<std::string> all = {"-h", "--help"};
  for (const Option* option : options_of(command)) {
    const std::vector<std::string> names = spellings(*option);
    all.insert(all.end(), names.begin(), names.end());
  }
  return all;
}

// The likely values of arguments without an option before them.
std::vector<std::string> positions_of(const DeclaredCommand& command) {
  std::vector<std::string> all;
  for (const Option* option : options_of(command)) {
    if (!spellings(*option).empty()) continue;
    const std::vector<std::string> values = likely_values(*option);
    all.insert(all.end(), values.begin(), values.end());
  }
  return all;
}

std::string names_of(std::span<const DeclaredCommand> commands) {
  std::string names;
  for (const DeclaredCommand& command : commands) names += command.name + " ";
  return names + "help";
}

// The arms of bash's `case $command:$previous`.
std::string bash_values(const DeclaredCommand& command) {
  std::string arms;
  for (const Option* option : options_of(command)) {
    if (spellings(*option).empty() || placeholder(*option).empty()) continue;
    std::vector<std::string> patterns;
    for (const std::string& spelling : spellings(*option))
      patterns.push_back(command.name + ":" + spelling);
    arms += fmt::format("    {}) values={} files={} ;;\n", fmt::join(patterns, "|"),
                        in_single_quotes(fmt::format("{}", fmt::join(likely_values(*option), " "))),
                        names_a_file(*option) ? "yes" : "");
  }
  return arms;
}

// A specification for zsh's _arguments; `place` counts the positions: "1".
std::string zsh_argument(const Option& option, const std::string& place) {
  const auto value = [&option] {
    const std::string what = escaped(placeholder(option), ":[]");
    const std::vector<std::string> values = likely_values(option);
    if (!values.empty() && !names_a_file(option))
      return fmt::format(":{}:({})", what, fmt::join(values, " "));
    return fmt::format(":{}:{}", what, names_a_file(option) ? "_files" : "");
  };
  const std::string help = escaped(short_help(option), "[]:\\");
  const std::vector<std::string> names = spellings(option);
  if (names.empty()) return fmt::format("    {}\n", in_single_quotes(place + value()));
  std::string lines;
  for (const std::string& name : names) {
    lines += fmt::format(
        "    {}\n", in_single_quotes(fmt::format("({}){}[{}]{}", fmt::join(names, " "), name, help,
                                                 placeholder(option).empty() ? "" : value())));
  }
  return lines;
}

// The line of one option.
std::string fish_option(const std::string& command, const Option& option) {
  std::string line = fmt::format("complete -c limpid -n '__fish_seen_subcommand_from {}'", command);
  for (const std::string& spelling : spellings(option)) {
    const bool is_long = spelling.starts_with("--");
    // -s: one letter; -o: several letters after one dash.
    const char* kind = is_long ? "-l" : spelling.size() == 2 ? "-s" : "-o";
    line += fmt::format(" {} {}", kind, spelling.substr(is_long ? 2 : 1));
  }
  const bool is_file = names_a_file(option);
  if (!placeholder(option).empty() && !spellings(option).empty()) line += is_file ? " -r" : " -x";
  if (is_file) line += " -F";
  const std::vector<std::string> values = likely_values(option);
  if (!values.empty()) line += fmt::format(" -a '{}'", fmt::join(values, " "));
  return line + fmt::format(" -d '{}'\n", escaped(short_help(option), "'\\"));
}

std::string bash_completion(std::span<const DeclaredCommand> commands) {
  std::string options;
  std::string values;
  for (const DeclaredCommand& command : commands) {
    options +=
        fmt::format("    {}) options='{}' positions='{}' ;;\n", command.name,
                    fmt::join(spellings_of(command), " "), fmt::join(positions_of(command), " "));
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

// _arguments takes its specifications as words of one command, so every line but the last ends with
// a backslash.
std::string zsh_completion(std::span<const DeclaredCommand> commands) {
  std::string names;
  std::string arms;
  for (const DeclaredCommand& command : commands) {
    names += fmt::format("    {}\n",
                         in_single_quotes(command.name + ":" + escaped(command.summary, ":")));
    std::string arguments;
    int n_positions = 0;
    for (const Option* option : options_of(command)) {
      n_positions += spellings(*option).empty() ? 1 : 0;
      arguments += zsh_argument(*option, std::to_string(n_positions));
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

std::string fish_completion(std::span<const DeclaredCommand> commands) {
  std::string script = "# fish completion for limpid; made by `limpid completion fish`\n";
  script += "complete -c limpid -f\n";
  for (const DeclaredCommand& command : commands) {
    script += fmt::format("complete -c limpid -n __fish_use_subcommand -a {} -d '{}'\n",
                          command.name, escaped(command.summary, "'\\"));
    const std::vector<const Option*> options = options_of(command);
    for (const Option* option : options) script += fish_option(command.name, *option);
    if (std::ranges::any_of(options, [](const Option* each) { return names_a_file(*each); }))
      script +=
          fmt::format("complete -c limpid -n '__fish_seen_subcommand_from {}' -F\n", command.name);
  }
  return script;
}

Run declare_completion(CLI::App& app) {
  const auto shell = std::make_shared<std::string>();
  suggest(add_option(app, "shell SHELL", *shell, "bash, zsh or fish"), {"bash", "zsh", "fish"});
  return [shell] {
    const auto commands = declared_commands();
    if (*shell == "bash") return write_out(bash_completion(commands)), kExitOk;
    if (*shell == "zsh") return write_out(zsh_completion(commands)), kExitOk;
    if (*shell == "fish") return write_out(fish_completion(commands)), kExitOk;
    throw ArgumentError(
        shell->empty() ? "for which shell? limpid completion bash, zsh or fish"
                       : fmt::format("no completion for {}; there are bash, zsh and fish", *shell));
  };
}

}  // namespace

Command completion_command() {
  return {"completion",
          "words after TAB, for bash, zsh or fish",
          "completion SHELL",
          "Prints a script with which bash, zsh or fish completes commands, options and file "
          "names.\n`cmake --install` puts it where the shell looks.",
          "limpid completion bash > limpid.bash && source limpid.bash\n"
          "limpid completion zsh > _limpid\n"
          "limpid completion fish > limpid.fish",
          declare_completion};
}

}  // namespace limpid::cli
