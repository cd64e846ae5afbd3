// The subcommands. Each takes the words after its name and gives the exit code; what goes wrong is
// thrown.
#pragma once

#include <span>
#include <string_view>

#include "cli/flags.h"

namespace limpid::cli {

inline constexpr int kExitOk = 0;
inline constexpr int kExitError = 1;
inline constexpr int kExitInterrupted = 130;  // as a shell reports SIGINT

int bench_command(const Arguments& arguments);
int chat_command(const Arguments& arguments);
int completion_command(const Arguments& arguments);
int convert_command(const Arguments& arguments);
int detokenize_command(const Arguments& arguments);
int devices_command(const Arguments& arguments);
int doctor_command(const Arguments& arguments);
int inspect_command(const Arguments& arguments);
int logits_command(const Arguments& arguments);
int man_command(const Arguments& arguments);
int microgpt_command(const Arguments& arguments);
int perplexity_command(const Arguments& arguments);
int pull_command(const Arguments& arguments);
int quantize_command(const Arguments& arguments);
int run_command(const Arguments& arguments);
int template_command(const Arguments& arguments);
int tokenize_command(const Arguments& arguments);
int verify_command(const Arguments& arguments);

struct Command {
  std::string_view name;
  std::string_view summary;
  int (*run)(const Arguments& arguments);
};

// All of them, in the order of `limpid --help`.
std::span<const Command> commands();

struct DescribedCommand {
  std::string name;
  std::string summary;
  CommandDescription description;
};

// All of them with what they accept. A command must declare its flags and parse them before
// anything else.
std::vector<DescribedCommand> described_commands();

}  // namespace limpid::cli
