// What a subcommand accepts. A thin face over CLI11 that adds what llama.cpp's users are used to:
// short options of several letters (-ctk), help that shows them, and the nearest name for a typo.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace limpid::cli {

using Arguments = std::vector<std::string>;

// What a subcommand says of itself: the one source of its help, of the man page and of completion.
struct CommandDescription {
  struct Option {
    std::string group;                   // heading
    std::vector<std::string> spellings;  // "-c", "--ctx-size"; empty: a position
    std::string placeholder;             // of its value, "N", "[LIST]"; "": none
    std::string help;
    std::string env;  // variable that counts where the command line says nothing, or ""
    std::vector<std::string> values;  // the likely ones, for completion

    // "-c, --ctx-size N", or the position's name.
    [[nodiscard]] std::string shown() const;
  };
  std::string usage;  // what follows "limpid"
  std::string summary;
  std::vector<std::string> examples;
  std::vector<Option> options;
};

// `text` on lines of at most `n_columns` characters, broken at blanks; a word that is longer stays
// whole. The first line begins in `column`, the others after `indent` blanks.
std::string wrapped(std::string_view text, size_t indent, size_t column, size_t n_columns);

// The text of --help for a terminal of that width.
std::string help_text(const CommandDescription& command, size_t n_columns);

// A flag is declared as "names PLACEHOLDER", the names separated by commas: "-c,--ctx-size N".
// A name without dashes is also a positional argument; "!--no-x" is the negation of a switch.
// `env` names an environment variable that counts where the command line says nothing.
class Flags {
 public:
  // `usage` is what follows "limpid"; `examples` are whole command lines, one a line.
  Flags(std::string usage, std::string summary, const std::string& examples);
  ~Flags();
  Flags(const Flags&) = delete;
  Flags& operator=(const Flags&) = delete;

  void group(std::string title);  // heading in the help for what is declared next
  void text(std::string_view names, std::string& value, std::string help,
            const std::string& env = {});
  void texts(std::string_view names, std::vector<std::string>& values, std::string help);
  void integer(std::string_view names, int64_t& value, std::string help,
               const std::string& env = {});
  void number(std::string_view names, double& value, std::string help, const std::string& env = {});
  void toggle(std::string_view names, bool& value, std::string help, const std::string& env = {});
  // A switch that may be followed by a value after '=' or as the next word if that is no option.
  void optional_text(std::string_view names, bool& given, std::string& value, std::string help);
  // Likely values of what was declared last.
  void suggest(std::vector<std::string> values);
  // What a lone "-" stands for, e.g. "--file=-".
  void dash_means(std::string argument) { dash_ = std::move(argument); }

  // False when help was asked for (and printed). Throws ArgumentError.
  [[nodiscard]] bool parse(const Arguments& arguments);
  // What `command` says of itself. It runs until its first parse(), which gives false.
  static CommandDescription describe(const std::function<void()>& command);
  // Whether the command line or the environment gave the flag, by any of its names.
  [[nodiscard]] bool given(std::string_view name) const;

 private:
  struct Impl;
  // Splits `declaration`, remembers its names for the help and for suggestions, and gives what
  // CLI11 understands of them.
  std::string declare(std::string_view declaration, std::string help, const std::string& env,
                      bool takes_value);
  [[nodiscard]] Arguments rewrite(const Arguments& arguments);
  [[noreturn]] void unknown_option(const std::string& option) const;
  [[noreturn]] void unexpected(const std::string& word) const;
  // Declares an option whose text is read by `convert`, which gives what is wrong with it, or "".
  void converted(std::string_view names, std::string help, const std::string& env,
                 std::function<std::string(const std::string&)> convert);
  [[nodiscard]] std::string name_for_errors(std::string_view declaration,
                                            const std::string& env) const;
  [[nodiscard]] std::string command_name() const;

  CommandDescription description_;
  std::string group_ = "options";
  std::string dash_;
  std::map<std::string, bool, std::less<>> takes_value_;       // every spelling with dashes
  std::map<std::string, std::string, std::less<>> long_form_;  // "-ctk" -> "--cache-type-k"
  std::set<std::string, std::less<>> typed_;                   // spellings on the command line
  std::unique_ptr<Impl> impl_;
};

// The entry of `choices` nearest to `word`, or "" when none is near.
std::string nearest(std::string_view word, const std::vector<std::string>& choices);

}  // namespace limpid::cli
