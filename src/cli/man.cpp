// `limpid man`: the manual page, in the language of groff (man(7), man-pages(7)).
//
// The page is made from the declarations of the options, as --help is, so that the two cannot
// differ. An option that means the same in several commands (-m, -t, --temp) stands once, under
// SHARED OPTIONS: the page would otherwise explain -m a dozen times.
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <map>

#include "base/utf8.h"
#include "cli/help.h"

namespace limpid::cli {
namespace {

using Option = CLI::Option;

// `text` written so that groff prints it unchanged: it would read hyphens, backslashes, quotes and
// a leading dot as markup. So "-c" becomes a backslash before "-c".
std::string roff(std::string_view text) {
  constexpr std::pair<char, std::string_view> kEscapes[] = {
      {'\\', "\\e"}, {'-', "\\-"}, {'\'', "\\(aq"}, {'`', "\\(ga"}, {'^', "\\(ha"}, {'~', "\\(ti"},
  };
  std::string out;
  for (bool line_begins = true; !text.empty(); line_begins = out.back() == '\n') {
    const auto [code, size] = unicode::decode(text);
    const char c = text.front();
    text.remove_prefix(size);
    if (line_begins && (c == '.' || c == '\'')) out += "\\&";
    const auto* escape = std::ranges::find(kEscapes, c, &std::pair<char, std::string_view>::first);
    if (code >= 0x80)
      out += fmt::format("\\[u{:04X}]", static_cast<uint32_t>(code));
    else if (escape != std::end(kEscapes))
      out += escape->second;
    else
      out += c;
  }
  return out;
}

// A help text, whose line breaks are for --help, in one line.
std::string paragraph(std::string_view text) { return roff(wrapped(text, 0, 0, text.npos)); }

// An option as an item of a list. .TP begins it, with a hanging paragraph; \fB, \fI and \fR switch
// to bold, italic, roman:
//   .TP
//   \fB\-t\fR, \fB\-\-threads\fR \fIN\fR
//   threads (default: as many as cores)
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

// The number of commands that declare each option in the same words, by the option's item on the
// page. An option of several commands is explained once, under SHARED OPTIONS.
using UseCounts = std::map<std::string, int>;

// A section per command: usage, description, its own options, the names of shared ones, and
// examples. Adds the items of shared options that `explained` lacks.
std::string command_section(const DeclaredCommand& command, const UseCounts& n_uses,
                            std::vector<std::string>& explained) {
  std::string page = fmt::format(".SS limpid {}\n.B limpid {}\n.PP\n{}\n", roff(command.name()),
                                 roff(command.usage), paragraph(command.description));
  std::vector<std::string> also;
  for (const Option* option : command.app->get_options()) {
    const std::string item = option_item(*option);
    if (n_uses.at(item) == 1 || spellings(*option).empty()) {
      page += item;
      continue;
    }
    const std::string name = std::ranges::max(spellings(*option), {}, &std::string::size);
    also.push_back(fmt::format("\\fB{}\\fR", roff(name)));
    if (std::ranges::find(explained, item) == explained.end()) explained.push_back(item);
  }
  if (!also.empty())
    page += fmt::format(".PP\nAlso, as under SHARED OPTIONS: {}\n", fmt::join(also, ", "));
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
      {"HF_TOKEN", "the token that `limpid pull` sends to the hub"}};
  for (const DeclaredCommand& command : commands) {
    for (const Option* option : command.app->get_options()) {
      if (!option->get_envname().empty())
        variables.try_emplace(option->get_envname(), fmt::format("as {}", shown(*option)));
    }
  }
  std::string page = ".SH ENVIRONMENT\nThe command line takes precedence over these.\n";
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
                "llama2.c) and runs it on the CPU or a GPU."),
      paragraph("Data goes to standard output; logs, progress and timings go to standard error. An "
                "error is one line that says what to do. Ctrl-C stops an answer."));
  UseCounts n_uses;
  for (const DeclaredCommand& command : commands) {
    for (const Option* option : command.app->get_options()) ++n_uses[option_item(*option)];
  }
  std::vector<std::string> shared;
  page += ".SH COMMANDS\n";
  for (const DeclaredCommand& command : commands) page += command_section(command, n_uses, shared);
  page += fmt::format(".SH SHARED OPTIONS\n{}", fmt::join(shared, ""));
  page += environment_section(commands);
  page +=
      ".SH FILES\n.TP\n.I \\(ti/.cache/limpid\n"
      "models that were pulled and what was made of them; all of it can be obtained again\n"
      ".SH EXIT STATUS\n.TP\n.B 0\nall was done as asked\n"
      ".TP\n.B 1\nan error, or a comparison that finds a difference\n"
      ".TP\n.B 130\nCtrl\\-C, SIGTERM or SIGHUP. After the first two, train saves first, and serve "
      "finishes the running requests and exits with 0.\n";
  return page;
}

Run declare_man(CLI::App& /*app*/) {
  return [] {
    const std::vector<DeclaredCommand> declared(commands().begin(), commands().end());
    return write_out(manual_page(declared)), kExitOk;
  };
}

}  // namespace

Command man_command() {
  return {"the manual page", "man",
          "Prints the manual page, for man -l. `cmake --install` puts it where man looks.",
          "limpid man | man -l -", declare_man};
}

}  // namespace limpid::cli
