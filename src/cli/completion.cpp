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

// bash takes "--device=cpu" for three words and completes the third alone.
constexpr std::string_view kBash = R"(# bash completion for limpid; made by `limpid completion bash`
_limpid() {
  local line word words=()
  for word in "${COMP_WORDS[@]:1:COMP_CWORD}"; do
    [[ $word == = ]] || words+=("$word")
  done
  if [[ $word == = ]]; then word=''; words+=(''); fi
  COMPREPLY=()
  while IFS= read -r line; do
    if [[ $line == :files ]]; then
      mapfile -t -O "${#COMPREPLY[@]}" COMPREPLY < <(compgen -f -- "$word")
      compopt -o filenames 2>/dev/null
    else
      COMPREPLY+=("${line%%$'\t'*}")
    fi
  done < <("${COMP_WORDS[0]}" __complete "${words[@]}" 2>/dev/null)
}
complete -F _limpid limpid
)";

// _describe wants "word:help", with a backslash before a colon of the word. compset takes
// "--model=" away from "--model=a.gguf", so that _files sees a name alone.
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
  [[ -z $files ]] || { compset -P '-*='; _files }
}
if [[ $funcstack[1] == _limpid ]]; then _limpid "$@"; else compdef _limpid limpid; fi
)";

// `complete -C` gives fish's own completions of a line, here of one whose command is empty: the
// names of files, also those that begin with ~.
constexpr std::string_view kFish = R"(# fish completion for limpid; made by `limpid completion fish`
function __limpid_complete
  set -l words (commandline -opc)
  set -l current (commandline -ct)
  set -l option (string match -r -- '^-[^=]+=' "$current")
  for line in ($words[1] __complete $words[2..-1] "$current" 2>/dev/null)
    if test "$line" = ":files"
      string join \n -- "$option"(complete -C "'' "(string replace -- "$option" '' "$current"))
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

// The values of an option or of a position. `prefix` is the "--device=" of a word "--device=cpu".
void offer_values(std::string_view begun, const Option& option, const std::string& prefix = {}) {
  for (const std::string& value : likely_values(option)) offer(begun, prefix + value);
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

// The words before the last one decide: none, an option that wants a value, or anything else. The
// option may also be the beginning of the last word: "--device=c".
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
  const size_t equals = current.starts_with('-') ? current.find('=') : current.npos;
  const bool is_attached = equals != current.npos;
  const Option* before =
      find_option(*declared.app, is_attached ? current.substr(0, equals) : words[words.size() - 2]);
  if (before != nullptr && !spellings(*before).empty() && !placeholder(*before).empty()) {
    offer_values(current, *before, is_attached ? current.substr(0, equals + 1) : "");
    if (names_a_file(*before)) write_out(":files\n");
  } else if (current.starts_with('-')) {
    for (const char* name : {"-h", "--help"}) offer(current, name, "options and examples");
    for (const Option* option : declared.app->get_options()) {
      const std::string& help = option->get_description();  // a menu has room for its first clause
      for (const std::string& name : spellings(*option))
        offer(current, name, help.substr(0, help.find("; ")));
    }
  } else {
    for (const Option* option : declared.app->get_options()) {
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
