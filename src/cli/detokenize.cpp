// `limpid detokenize`: token ids to text.
#include <fmt/format.h>

#include <iostream>
#include <nlohmann/json.hpp>

#include "base/check.h"
#include "cli/answer.h"
#include "cli/command.h"
#include "cli/open_model.h"
#include "cli/options.h"
#include "cli/output.h"

namespace limpid::cli {

int detokenize_command(const Arguments& arguments) {
  ModelFlags model;
  std::string ids;
  std::string file;
  bool special = false;
  bool jsonl = false;
  Flags flags("detokenize -m FILE [--ids LIST | -f FILE | -] [options]",
              "Token ids to text, byte for byte. Reads standard input unless --ids or -f is given.",
              "limpid detokenize -m smollm2 --ids 19556,905\n"
              "limpid tokenize -m smollm2 -p 'Hello world' | limpid detokenize -m smollm2");
  flags.text("--ids LIST", ids, "ids between commas or blanks");
  flags.text("-f,--file FILE", file, "a file with ids; - is standard input");
  flags.dash_means("--file=-");
  flags.toggle("--special", special, "control tokens as their names");
  flags.toggle("--jsonl", jsonl, "each line in is an array of ids, each line out a JSON string");
  declare_model_path(flags, model);
  declare_overrides(flags, model);
  if (!flags.parse(arguments)) return kExitOk;
  LIMPID_CHECK(ArgumentError, !flags.given("--ids") || !flags.given("--file"),
               "give one of --ids and -f");
  LIMPID_CHECK(ArgumentError, !jsonl || (!flags.given("--ids") && (file.empty() || file == "-")),
               "--jsonl reads standard input");

  const auto tokenizer = open_tokenizer(model);
  if (jsonl) {
    int64_t n_lines = 0;
    for (std::string line; std::getline(std::cin, line);) {
      const auto tokens = parse_token_ids(line, fmt::format("line {}", ++n_lines));
      write_out(dump_json(tokenizer->decode(tokens, special)) + "\n");
      flush_out();
    }
    return kExitOk;
  }
  const std::string source = flags.given("--ids") ? ids : read_text(file.empty() ? "-" : file);
  write_out(tokenizer->decode(parse_token_ids(source, "ids"), special));
  if (stdout_is_terminal()) write_out("\n");
  return kExitOk;
}

}  // namespace limpid::cli
