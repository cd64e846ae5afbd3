// `limpid completion`: scripts that let a shell complete commands, options, values and file names.
//
// A script knows nothing about the options. At each TAB it asks the program,
//   limpid __complete run -m smo
// with the words up to the cursor, and gets the possible completions of the last one: a line
// "smollm2<TAB>help" for each word, and a line ":files" if it may be the name of a file. So the
// three shells share one mechanism, and a script never has to be updated for a new option.
//
// For a TAB, the program declares the options of the one command on the line and parses nothing. So
// it answers in some milliseconds, and a half-typed line is never an error.
#include <CLI/CLI.hpp>
#include <algorithm>

#include "cli/help.h"

namespace limpid::cli {
namespace {

using Option = CLI::Option;

constexpr std::string_view kBash = R"(# bash completion for limpid; made by `limpid completion bash`
_limpid() {
  local line
  COMPREPLY=()
  while IFS= read -r line; do
    if [[ $line == :files ]]; then
      mapfile -t -O "${#COMPREPLY[@]}" COMPREPLY < <(compgen -f -- "${COMP_WORDS[COMP_CWORD]}")
      compopt -o filenames 2>/dev/null
    else
      COMPREPLY+=("${line%%$'\t'*}")
    fi
  done < <("${COMP_WORDS[0]}" __complete "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
}
complete -F _limpid limpid
)";

// _describe wants "word:help", with a backslash before a colon of the word.
constexpr std::string_view kZsh = R"(#compdef limpid
# zsh completion for limpid; made by `limpid completion zsh`
_limpid() {
  local line word files
  local -a described
  for line in "${(@f)$("${words[1]}" __complete "${(@)words[2,CURRENT]}" 2>/dev/null)}"; do
    if [[ $line == :files ]]; then
      files=yes
    elif [[ -n $line ]]; then
      word=${line%%$'\t'*}
      described+=("${word//:/\\:}:${line#*$'\t'}")
    fi
  done
  (( $#described )) && _describe 'limpid' described
  [[ -z $files ]] || _files
}
if [[ $funcstack[1] == _limpid ]]; then _limpid "$@"; else compdef _limpid limpid; fi
)";

constexpr std::string_view kFish = R"(# fish completion for limpid; made by `limpid completion fish`
function __limpid_complete
  set -l words (commandline -opc)
  set -l current (commandline -ct)
  for line in ($words[1] __complete $words[2..-1] "$current" 2>/dev/null)
    if test "$line" = ":files"
      __fish_complete_path "$current"
    else
      echo $line
    end
  end
end
complete -c limpid -f -a '(__limpid_complete)'
)";

// Whether the option's value may be a file or folder: "FILE", "NAME|PATH", "DIR[=SCALE]", …
bool names_a_file(const Option& option) {
  constexpr std::string_view kPlaces[] = {"FILE", "FOLDER", "DIR", "PATH", "MODEL"};
  const std::string name = placeholder(option);
  return name == "IN" || name == "OUT" || name == "model" ||
         std::ranges::any_of(kPlaces, [&](auto place) { return name.find(place) != name.npos; });
}

// A word with its help, if it begins as the last word on the command line does.
void offer(std::string_view begun, std::string_view word, std::string_view help = {}) {
  if (word.starts_with(begun)) write_out(fmt::format("{}\t{}\n", word, help));
}

// The values of an option or of a position.
void offer_values(std::string_view begun, const Option& option) {
  for (const std::string& value : likely_values(option)) offer(begun, value);
}

Run declare_completion(CLI::App& app) {
  const auto shell = std::make_shared<std::string>();
  add_choice(app, "shell SHELL", *shell, {"bash", "zsh", "fish"}, "bash, zsh or fish");
  return [shell] {
    if (*shell == "bash") return write_out(kBash), kExitOk;
    if (*shell == "zsh") return write_out(kZsh), kExitOk;
    if (*shell == "fish") return write_out(kFish), kExitOk;
    throw ArgumentError(
        shell->empty() ? "for which shell? limpid completion bash, zsh or fish"
                       : fmt::format("no completion for {}; there are bash, zsh and fish", *shell));
  };
}

}  // namespace

// The words before the last one decide: none, an option that wants a value, or anything else.
void print_suggestions(const Arguments& words) {
  const std::string current = words.empty() ? "" : words.back();
  if (words.size() <= 1 || (words.size() == 2 && words[0] == "help")) {
    for (const Command& command : commands()) offer(current, command.name(), command.summary);
    for (const char* word : {"help", "--help", "--version"}) offer(current, word);
    return;
  }
  const auto command = std::ranges::find(commands(), words[0], &Command::name);
  if (command == commands().end()) return;
  const DeclaredCommand declared(*command);
  const Option* before = find_option(*declared.app, words[words.size() - 2]);
  if (before != nullptr && !spellings(*before).empty() && !placeholder(*before).empty()) {
    offer_values(current, *before);
    if (names_a_file(*before)) write_out(":files\n");
  } else if (current.starts_with('-')) {
    for (const char* name : {"-h", "--help"}) offer(current, name, "options and examples");
    for (const Option* option : options_of(declared)) {
      const std::string& help = option->get_description();  // a menu has room for its first clause
      for (const std::string& name : spellings(*option))
        offer(current, name, help.substr(0, help.find("; ")));
    }
  } else {
    for (const Option* option : options_of(declared)) {
      if (spellings(*option).empty()) offer_values(current, *option);
    }
    write_out(":files\n");
  }
}

Command completion_command() {
  return {"words after TAB, for bash, zsh or fish", "completion SHELL",
          "Prints a script with which bash, zsh or fish completes commands, options and file "
          "names. `cmake --install` puts it where the shell looks.",
          "limpid completion bash > limpid.bash && source limpid.bash\n"
          "limpid completion zsh > _limpid\n"
          "limpid completion fish > limpid.fish",
          declare_completion};
}

}  // namespace limpid::cli
