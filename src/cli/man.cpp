// `limpid man`: the manual page, in the language of groff (man(7), man-pages(7)).
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>

#include "cli/command.h"
#include "cli/output.h"

namespace limpid::cli {
namespace {

using Option = CommandDescription::Option;

// The code point that begins at text[i], of `n` bytes; a byte that begins none counts alone.
uint32_t code_point(std::string_view text, size_t i, size_t& n) {
  const auto byte = static_cast<unsigned char>(text[i]);
  n = byte >= 0xF0 ? 4 : byte >= 0xE0 ? 3 : byte >= 0xC0 ? 2 : 1;
  n = std::min(n, text.size() - i);
  uint32_t code = n == 1 ? byte : byte & (0xFFU >> (n + 1));
  for (size_t j = 1; j < n; ++j)
    code = code << 6 | (static_cast<unsigned char>(text[i + j]) & 0x3FU);
  return code;
}

// Text as groff prints it as it stands: hyphens that stay minus signs, no escapes, no requests.
std::string roff(std::string_view text) {
  std::string out;
  for (size_t i = 0, n = 1; i < text.size(); i += n) {
    const char c = text[i];
    const bool line_begins = i == 0 || text[i - 1] == '\n';
    const uint32_t code = code_point(text, i, n);
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
  for (const std::string& spelling : option.spellings)
    names += fmt::format("{}\\fB{}\\fR", names.empty() ? "" : ", ", roff(spelling));
  if (!option.placeholder.empty())
    names += fmt::format("{}\\fI{}\\fR", names.empty() ? "" : " ", roff(option.placeholder));
  const std::string env =
      option.env.empty() ? "" : fmt::format("\n.br\nEnvironment: \\fB{}\\fR", roff(option.env));
  return fmt::format(".TP\n{}\n{}{}\n", names, paragraph(option.help), env);
}

std::string command_section(const DescribedCommand& command) {
  const CommandDescription& description = command.description;
  std::string page = fmt::format(".SS limpid {}\n.B limpid {}\n.PP\n{}\n", roff(command.name),
                                 roff(description.usage), paragraph(description.summary));
  for (const Option& option : description.options) page += option_item(option);
  page += ".PP\nExamples:\n.PP\n.EX\n";
  for (const std::string& example : description.examples) page += roff("  " + example) + "\n";
  return page + ".EE\n";
}

// Each variable with the options that it stands for.
std::string environment_section(std::span<const DescribedCommand> commands) {
  std::map<std::string, std::string> variables = {
      {"XDG_CACHE_HOME", "where models are kept, in its folder limpid (~/.cache)"},
      {"XDG_STATE_HOME",
       "where what is typed in `limpid chat` is kept, in its folder limpid (~/.local/state)"},
      {"LIMPID_ISA", "the instruction set whose kernels run, of those that `limpid devices` lists"},
      {"NO_COLOR", "no colours when set"},
      {"HF_TOKEN", "the token with which `limpid pull` asks the hub"}};
  for (const DescribedCommand& command : commands) {
    for (const Option& option : command.description.options) {
      if (!option.env.empty())
        variables.try_emplace(option.env, fmt::format("as {}", option.shown()));
    }
  }
  std::string page = ".SH ENVIRONMENT\nThe command line counts before these.\n";
  for (const auto& [name, meaning] : variables)
    page += fmt::format(".TP\n.B {}\n{}\n", roff(name), roff(meaning));
  return page;
}

std::string manual_page(std::span<const DescribedCommand> commands) {
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
  for (const DescribedCommand& command : commands) page += command_section(command);
  page += environment_section(commands);
  page +=
      ".SH FILES\n.TP\n.I \\(ti/.cache/limpid\nmodels that were pulled and what was made of them; "
      "all "
      "of it can be obtained again\n"
      ".SH EXIT STATUS\n.TP\n.B 0\nall was done as asked\n.TP\n.B 1\nan error, or a comparison "
      "that "
      "departs\n.TP\n.B 130\nCtrl\\-C\n";
  return page;
}

}  // namespace

int man_command(const Arguments& arguments) {
  Flags flags("man",
              "Prints the manual page, for man -l. `cmake --install` puts it where man looks.",
              "limpid man | man -l -");
  if (!flags.parse(arguments)) return kExitOk;
  write_out(manual_page(described_commands()));
  return kExitOk;
}

}  // namespace limpid::cli
