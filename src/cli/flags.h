// What a subcommand accepts. A thin face over CLI11 that adds what llama.cpp's users are used to:
// short options of several letters (-ctk), help that shows them, and the nearest name for a typo.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace limpid::cli {

using Arguments = std::vector<std::string>;

// A flag is declared as "names PLACEHOLDER", the names separated by commas: "-c,--ctx-size N".
// A name without dashes is also a positional argument; "!--no-x" is the negation of a switch.
// `env` names an environment variable that counts where the command line says nothing.
class Flags {
 public:
  // `usage` is what follows "limpid"; `examples` are whole command lines, one a line.
  Flags(std::string usage, std::string summary, std::string examples);
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
  // What a lone "-" stands for, e.g. "--file=-".
  void dash_means(std::string argument) { dash_ = std::move(argument); }

  // False when help was asked for (and printed). Throws ArgumentError.
  [[nodiscard]] bool parse(const Arguments& arguments);
  // Whether the command line or the environment gave the flag, by any of its names.
  [[nodiscard]] bool given(std::string_view name) const;

 private:
  struct Impl;
  struct Entry {
    std::string group;
    std::string names;  // as shown
    std::string help;
  };
  // Splits `declaration`, remembers its names for the help and for suggestions, and gives what
  // CLI11 understands of them.
  std::string declare(std::string_view declaration, std::string help, const std::string& env,
                      bool takes_value);
  [[nodiscard]] Arguments rewrite(const Arguments& arguments) const;
  [[noreturn]] void unknown_option(const std::string& option) const;
  void print_help() const;

  std::string usage_;
  std::string summary_;
  std::string examples_;
  std::string group_ = "options";
  std::string dash_;
  std::vector<Entry> entries_;
  std::map<std::string, bool, std::less<>> takes_value_;       // every spelling with dashes
  std::map<std::string, std::string, std::less<>> long_form_;  // "-ctk" -> "--cache-type-k"
  std::unique_ptr<Impl> impl_;
};

// The entry of `choices` nearest to `word`, or "" when none is near.
std::string nearest(std::string_view word, const std::vector<std::string>& choices);

}  // namespace limpid::cli
