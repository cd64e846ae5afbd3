// The help of a command, on a terminal of 80 columns:
//
//   usage: limpid tokenize -m FILE [-p TEXT | -f FILE | -] [options]
//
//   Text to token ids. Reads standard input unless -p or -f is given. …
//
//   options:
//     -p, --prompt TEXT               the text
//     --special [LIST]                parse control tokens in the text: all, or
//                                     the names in LIST
//
// CLI11 can print help too. This file does it because CLI11 lists short names before long ones,
// does not know single-dash names of several letters, and does not ask how wide the terminal is.
#include "cli/help.h"

#include <fmt/ranges.h>

#include <CLI/CLI.hpp>

#include "cli/terminal_text.h"

namespace limpid::cli {

std::vector<std::string> spellings(const CLI::Option& option) {
  std::vector<std::string> names;
  for (const std::string& name : option.get_lnames())  // name_for_parser() in flags.cpp
    names.push_back(name.starts_with('_') ? "-" + name.substr(1) : "--" + name);
  return names;
}

// The name of the type is the placeholder, then a colon and likely values if suggest() gave some.
std::string placeholder(const CLI::Option& option) {
  const std::string type = option.get_type_name();
  const std::string name = type.substr(0, type.find(':'));
  return name.empty() && option.get_lnames().empty() ? option.get_name(true) : name;
}

std::vector<std::string> likely_values(const CLI::Option& option) {
  const std::string type = option.get_type_name();
  const size_t colon = type.find(':');
  if (colon == type.npos) return {};
  return CLI::detail::split(type.substr(colon + 1), ' ');
}

std::string shown(const CLI::Option& option) {
  const std::string value = placeholder(option);
  const std::string names = fmt::format("{}", fmt::join(spellings(option), ", "));
  return names + (names.empty() || value.empty() ? "" : " ") + value;
}

// Line breaks of `text` count as blanks, so a text may be written in lines of any length.
std::string wrapped(std::string_view text, size_t indent, size_t column, size_t n_columns) {
  std::string out;
  while (true) {
    const size_t begin = text.find_first_not_of(" \n");
    if (begin == text.npos) return out;
    text.remove_prefix(begin);
    const std::string_view word = text.substr(0, text.find_first_of(" \n"));
    text.remove_prefix(word.size());
    const size_t width = n_characters(word);
    if (out.empty()) {
      column += width;
    } else if (column + 1 + width <= n_columns) {
      out += ' ';
      column += 1 + width;
    } else {
      out += '\n' + std::string(indent, ' ');
      column = indent + width;
    }
    out += word;
  }
}

// Two columns: names, then help, which continues in its own column. Names that are too long for
// their column, and all names on a narrow terminal, get their own line.
std::string help_text(const DeclaredCommand& command, size_t n_columns) {
  constexpr size_t kNames = 34;   // columns for the names of options
  constexpr size_t kNarrow = 60;  // below, help begins on a line of its own
  const size_t indent = n_columns < kNarrow ? 6 : kNames;
  std::string text =
      fmt::format("usage: limpid {}\n\n{}\n", wrapped(command.usage, 4, 14, n_columns),
                  wrapped(command.description, 0, 0, n_columns));
  std::string group;
  for (const CLI::Option* option : command.app->get_options()) {
    if (option->get_group() != group) text += fmt::format("\n{}:\n", group = option->get_group());
    const std::string names = "  " + shown(*option);
    const bool same_line = n_characters(names) < indent;
    text += same_line ? names + std::string(indent - n_characters(names), ' ')
                      : "  " + wrapped(names, 4, 2, n_columns) + "\n" + std::string(indent, ' ');
    const std::string env =
        option->get_envname().empty() ? "" : fmt::format(" [${}]", option->get_envname());
    text += wrapped(option->get_description() + env, indent, indent, n_columns) + "\n";
  }
  text += "\nexamples:\n";
  for (const std::string& example : CLI::detail::split(command.examples, '\n'))
    text += fmt::format("  {}\n", example);
  return text;
}

}  // namespace limpid::cli
