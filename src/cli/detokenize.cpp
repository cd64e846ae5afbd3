// `limpid detokenize`: token ids to text.
//
// A token may end in the middle of a character: an emoji of four bytes is often two tokens. So the
// ids of one text are decoded together. Ids one by one would give pieces that are not UTF-8.
#include <iostream>
#include <nlohmann/json.hpp>

#include "cli/command.h"
#include "cli/error_words.h"

// Ids may be written as in a file or a shell: "19556,905", "[19556, 905]", or one a line. The
// output has no newline at the end that the text does not have, except on a terminal, whose prompt
// would follow in the same line.
namespace limpid::cli {
namespace {

struct DetokenizeFlags {
  ModelFlags model;
  std::optional<std::string> ids;
  std::optional<std::string> file;
  bool special = false;
  bool jsonl = false;
};

void declare(CLI::App& app, DetokenizeFlags& values) {
  add_option(app, "--ids LIST", values.ids, "ids between commas or blanks");
  add_option(app, "-f,--file FILE", values.file, "a file with ids; - is standard input");
  add_switch(app, "--special", values.special, "write control tokens by name");
  add_switch(app, "--jsonl", values.jsonl,
             "each line in is an array of ids, each line out a JSON string");
  declare_model_path(app, values.model);
  declare_overrides(app, values.model);
}

void run(const DetokenizeFlags& values) {
  LIMPID_CHECK(ArgumentError, !values.ids || !values.file, "give one of --ids and -f");
  LIMPID_CHECK(ArgumentError, !values.jsonl || (!values.ids && values.file.value_or("-") == "-"),
               "--jsonl reads standard input");
  const auto tokenizer = open_tokenizer(values.model);
  if (values.jsonl) {
    int64_t n_lines = 0;
    for (std::string line; std::getline(std::cin, line);) {
      const auto tokens = parse_token_ids(line, fmt::format("line {}", ++n_lines));
      try {
        write_json(tokenizer->decode(tokens, values.special));
      } catch (const ArgumentError& error) {
        throw in_line(n_lines, error);
      }
      flush_out();
    }
    return;
  }
  const std::string source = values.ids ? *values.ids : read_text(values.file.value_or("-"));
  write_out(
      tokenizer->decode(parse_token_ids(source, values.ids ? "--ids" : "ids"), values.special));
  if (stdout_is_terminal()) write_out("\n");
}

}  // namespace

Command detokenize_command() {
  return {"token ids to text", "detokenize -m FILE [--ids LIST | -f FILE | -] [options]",
          "Token ids to text, byte for byte. Reads standard input unless --ids or -f is given.",
          "limpid detokenize -m smollm2 --ids 19556,905\n"
          "limpid tokenize -m smollm2 -p 'Hello world' | limpid detokenize -m smollm2",
          bind<DetokenizeFlags, declare, run>};
}

}  // namespace limpid::cli
