// Options of a command, declared on a CLI::App: the names that users of llama.cpp are used to,
// which include single-dash names of several letters (-ctk), and one-line errors with the nearest
// name for a typo. CLI11 holds the declarations and does the parsing; help, completion and the
// manual page read them from the CLI::App (cli/help.h).
#pragma once

#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

// The library's own name. NOLINTNEXTLINE(readability-identifier-naming)
namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace limpid::cli {

using Arguments = std::vector<std::string>;

// Heading in the help for the options that are declared next.
void group(CLI::App& app, std::string_view title);

struct Range {
  double least = -std::numeric_limits<double>::infinity();
  double most = std::numeric_limits<double>::infinity();
};

// Reads the text that was given for a value, into the value; a vector gets one more. Gives the
// problem with the text ("'x' is not a number", "7 must be in [0, 5]"), or "". Number: int,
// int64_t, float, double.
template <typename Number>
std::string read_value(const std::string& text, const Range& range, Number& value);
std::string read_value(const std::string& text, const Range& range, std::string& value);
// "on", "1", … or "off", "0", …, as llama-server reads its environment.
std::string read_value(const std::string& text, const Range& range, bool& value);
std::string read_value(const std::string& text, const Range& range,
                       std::vector<std::string>& value);
template <typename T>
std::string read_value(const std::string& text, const Range& range, std::optional<T>& value) {
  return read_value(text, range, value.emplace());
}

// Declares an option "-c,--ctx-size N": names between commas, then a placeholder for the value. A
// name without dashes makes the option a positional argument too. A value "[LIST]", after '=' or as
// the next word if that is not an option, may be left out: "". "FILE..." takes all words up to the
// next option. `env` names an environment variable that counts when the option is not on the
// command line. `read` is called with the text each time that the option is given, and returns the
// problem with it, or "".
CLI::Option* add_list(CLI::App& app, std::string_view declaration,
                      std::function<std::string(const std::string&)> read, std::string help,
                      std::string_view env = {});

// Declares an option that sets `value`, which has one of the types of read_value. If an option is
// given twice, its last value counts; a vector takes all values.
template <typename T>
CLI::Option* add_option(CLI::App& app, std::string_view declaration, T& value, const Range& range,
                        std::string help, std::string_view env = {}) {
  const auto read = [&value, range](const auto& text) { return read_value(text, range, value); };
  return add_list(app, declaration, read, std::move(help), env);
}
template <typename T>
CLI::Option* add_option(CLI::App& app, std::string_view declaration, T& value, std::string help,
                        std::string_view env = {}) {
  return add_option(app, declaration, value, Range{}, std::move(help), env);
}

// An option that takes no value; "!--no-x" among its names is the negation.
CLI::Option* add_switch(CLI::App& app, std::string_view declaration, bool& value, std::string help,
                        std::string_view env = {});
// Likely values, for completion. The option takes others too.
void suggest(CLI::Option* option, const std::vector<std::string>& values);
// An option with likely values.
template <typename T>
void add_choice(CLI::App& app, std::string_view declaration, T& value,
                const std::vector<std::string>& likely, std::string help,
                std::string_view env = {}) {
  suggest(add_option(app, declaration, value, std::move(help), env), likely);
}

// An option that takes one of these values and no other.
void add_one_of(CLI::App& app, std::string_view declaration, std::string& value,
                const std::vector<std::string>& choices, std::string help,
                std::string_view env = {});

// An option that means nothing without another: parse() refuses it alone.
void needs(CLI::Option* option, CLI::Option* other);

// The option of that name ("-c", "--ctx-size"), or null.
CLI::Option* find_option(const CLI::App& app, std::string_view name);

// An option on the command line precedes its own variable in the environment; this one also that of
// `other`, an option with a value, which then is not read.
void precedes(const CLI::App& app, std::string_view option, std::string_view other);

// Whether the option is on the command line, and not only in the environment. Known while parse()
// reads values, and after it.
bool is_given(const CLI::App& app, std::string_view name);

// The message of an error that was found after parse(). If it begins with an option that only the
// environment gives, it gets the variable's name: "-np 0: …" becomes "$LLAMA_ARG_N_PARALLEL 0: …".
std::string with_variable(const CLI::App& app, const std::string& message);

// The value of an environment variable; "" where it is not set.
std::string environment(const char* name);

// Parses the words after `command` and sets the values. A lone "-" is "--file -" for commands with
// -f. Throws ArgumentError.
void parse(CLI::App& app, std::string_view command, const Arguments& arguments);

// The entry of `choices` nearest to `word`, or "" when none is near.
std::string nearest(std::string_view word, const std::vector<std::string>& choices);
// "; did you mean X?" with that entry, or "".
std::string did_you_mean(std::string_view word, const std::vector<std::string>& choices);

}  // namespace limpid::cli
