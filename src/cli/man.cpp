// `limpid man`: the manual page, in the language of groff (man(7), man-pages(7)).
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <map>

#include "cli/help.h"
#include "cli/output.h"
#include "cli/terminal_text.h"

namespace limpid::cli {
namespace {

using Option = CLI::Option;

// `text` written so that groff prints it unchanged: it would read hyphens, backslashes, quotes and
// a leading dot as markup.
std::string roff(std::string_view text) {
  std::string out;
  for (bool line_begins = true; !text.empty(); line_begins = out.back() == '\n') {
    const auto [n_bytes, code, is_valid] = first_character(text);
    const char c = text.front();
    text.remove_prefix(n_bytes);
    if (line_begins && (c == '.' || c == '\'')) out += "\\&";
    if (code >= 0x80)
      out += fmt::format("\\[u{:04X}]", code);
    else if (c == '\\')
      out += "\\e";
    else if (c == '-')
      out += "\\-";
    else if (c == '\'')
      out += "\\(aq";
    else if (c == '`')
      out += "\\(ga";
    else if (c == '^')
      out += "\\(ha";
    else if (c == '~')
      out += "\\(ti";
    else
      out += c;
  }
  return out;
}

// A help text, whose line breaks are for --help.
std::string paragraph(std::string_view text) {
  std::string out;
  for (const char c : text) {
    const bool blank = c == ' ' || c == '\n';
    if (!blank || out.empty() || out.back() != ' ') out += blank ? ' ' : c;
  }
  return roff(out);
}

std::string option_item(const Option& option) {
  std::string names;
  for (const std::string& spelling : spellings(option))
    names += fmt::format("{}\\fB{}\\fR", names.empty() ? "" : ", ", roff(spelling));
  if (!placeholder(option).empty())
    names += fmt::format("{}\\fI{}\\fR", names.empty() ? "" : " ", roff(placeholder(option)));
  const std::string name = option.get_envname();
  const std::string env =
      name.empty() ? "" : fmt::format("\n.br\nEnvironment: \\fB{}\\fR", roff(name));
  return fmt::format(".TP\n{}\n{}{}\n", names, paragraph(option.get_description()), env);
}

std::string longest_name(const Option& option) {
  return std::ranges::max(spellings(option), {}, &std::string::size);
}

// The options that several commands declare in the same words, in order. The page explains them
// once; two options are the same if their items on the page are.
std::vector<const Option*> shared_options(std::span<const DeclaredCommand> commands) {
  std::map<std::string, int> n_uses;
  std::vector<const Option*> first_uses;
  for (const DeclaredCommand& command : commands) {
    for (const Option* option : options_of(command)) {
      const bool is_first = ++n_uses[option_item(*option)] == 1;
      if (is_first && !spellings(*option).empty()) first_uses.push_back(option);
    }
  }
  std::erase_if(first_uses,
                [&](const Option* option) { return n_uses[option_item(*option)] == 1; });
  return first_uses;
}

// A section per command: usage, description, its own options, the names of shared ones, and
// examples.
std::string command_section(const DeclaredCommand& command, std::span<const Option* const> shared) {
  std::string page = fmt::format(".SS limpid {}\n.B limpid {}\n.PP\n{}\n", roff(command.name),
                                 roff(command.usage), paragraph(command.description));
  std::string also;
  for (const Option* option : options_of(command)) {
    const std::string item = option_item(*option);
    if (std::ranges::any_of(shared, [&](const Option* each) { return option_item(*each) == item; }))
      also += fmt::format("{}\\fB{}\\fR", also.empty() ? "" : ", ", roff(longest_name(*option)));
    else
      page += item;
  }
  if (!also.empty()) page += fmt::format(".PP\nAlso, as under SHARED OPTIONS: {}\n", also);
  page += ".PP\nExamples:\n.PP\n.EX\n";
  for (const std::string& example : CLI::detail::split(command.examples, '\n'))
    page += roff("  " + example) + "\n";
  return page + ".EE\n";
}

// Each environment variable with the option that it sets.
std::string environment_section(std::span<const DeclaredCommand> commands) {
  std::map<std::string, std::string> variables = {
      {"XDG_CACHE_HOME", "where models are kept, in its folder limpid (~/.cache)"},
      {"XDG_STATE_HOME",
       "where what is typed in `limpid chat` is kept, in its folder limpid (~/.local/state)"},
      {"LIMPID_ISA", "the instruction set whose kernels run, of those that `limpid devices` lists"},
      {"NO_COLOR", "no colours when it is set and not empty"},
      {"HF_TOKEN", "the token with which `limpid pull` asks the hub"}};
  for (const DeclaredCommand& command : commands) {
    for (const Option* option : options_of(command)) {
      if (!option->get_envname().empty())
        variables.try_emplace(option->get_envname(), fmt::format("as {}", shown(*option)));
    }
  }
  std::string page = ".SH ENVIRONMENT\nThe command line counts before these.\n";
  for (const auto& [name, meaning] : variables)
    page += fmt::format(".TP\n.B {}\n{}\n", roff(name), roff(meaning));
  return page;
}

std::string manual_page(std::span<const DeclaredCommand> commands) {
  std::string page = fmt::format(
      ".TH LIMPID 1 \"\" \"limpid {}\" \"User Commands\"\n"
      ".SH NAME\nlimpid \\- run, convert, quantise and look into language models\n"
      ".SH SYNOPSIS\n.B limpid\n.I COMMAND\n[options]\n"
      ".SH DESCRIPTION\n{}\n.PP\n{}\n",
      LIMPID_VERSION,
      paragraph("Limpid opens a language model as downloaded (GGUF, safetensors, PyTorch .pth, "
                "llama2.c) and runs it on the CPU."),
      paragraph("Data goes to standard output; logs, progress and timings go to standard error. An "
                "error is one line that says what to do. Ctrl-C stops an answer."));
  page += ".SH COMMANDS\n";
  const std::vector<const Option*> shared = shared_options(commands);
  for (const DeclaredCommand& command : commands) page += command_section(command, shared);
  page += ".SH SHARED OPTIONS\n";
  for (const Option* option : shared) page += option_item(*option);
  page += environment_section(commands);
  page +=
      ".SH FILES\n.TP\n.I \\(ti/.cache/limpid\nmodels that were pulled and what was made of them; "
      "all "
      "of it can be obtained again\n"
      ".SH EXIT STATUS\n.TP\n.B 0\nall was done as asked\n.TP\n.B 1\nan error, or a comparison "
      "that "
      "departs\n.TP\n.B 130\nCtrl\\-C, SIGTERM or SIGHUP\n";
  return page;
}

Run declare_man(CLI::App& /*app*/) {
  return [] { return write_out(manual_page(declared_commands())), kExitOk; };
}

}  // namespace

Command man_command() {
  return {"man",
          "the manual page",
          "man",
          "Prints the manual page, for man -l. `cmake --install` puts it where man looks.",
          "limpid man | man -l -",
          declare_man};
}

}  // namespace limpid::cli
