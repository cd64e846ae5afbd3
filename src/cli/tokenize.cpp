// `limpid tokenize`: text to token ids.
//
// The same text in each format of the output:
//   --ids      [19556, 905]
//   --pieces   19556<TAB>"Hello"      a line for each token
//   --count    2
//   --json     {"count":2,"ids":[19556,905],"pieces":["Hello"," world"]}
//   --jsonl    in: "Hello world"      out: [19556, 905]
// --jsonl answers each line at once, so another program can keep it running and ask it.
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <iostream>
#include <nlohmann/json.hpp>

#include "base/json_text.h"
#include "base/parse_number.h"
#include "cli/command.h"
#include "cli/error_words.h"
#include "cli/token_comparison.h"
#include "tokenizer/token_tree.h"

namespace limpid::cli {
namespace {

struct TokenizeFlags {
  ModelFlags model;
  std::optional<std::string> prompt;
  std::optional<std::string> file;
  std::optional<std::string> special;
  std::string algorithm = "bpe";
  bool no_bos = false;
  bool ids = false;
  bool pieces = false;
  bool count = false;
  bool json = false;
  bool jsonl = false;
  bool refuse_special = false;
  bool throughput = false;
  std::string compare;
  std::string encoding;
};

// Names or ids of control tokens between commas; none: all of them.
SpecialTokens allowed_tokens(const TokenizeFlags& values, const Tokenizer& tokenizer) {
  SpecialTokens special;
  special.refuse_others = values.refuse_special;
  if (!values.special) return special;
  special.allow = SpecialTokens::Allow::kAll;
  if (values.special->empty()) return special;
  special.allow = SpecialTokens::Allow::kList;
  for (const std::string& name : CLI::detail::split(*values.special, ',')) {
    const auto is_control = [&](TokenId id) {
      return id >= 0 && id < tokenizer.vocab_size() && tokenizer.is_control(id);
    };
    TokenId id = tokenizer.find(name).value_or(-1);
    if (!is_control(id)) id = parse_number<TokenId>(name).value_or(-1);  // "2" may be any token
    LIMPID_CHECK(ArgumentError, is_control(id), "--special: the model has no control token '{}'",
                 name);
    special.list.push_back(id);
  }
  return special;
}

// A JSON array, which detokenize and parse_token_ids() read too.
std::string to_line(std::span<const TokenId> ids) {
  return fmt::format("[{}]\n", fmt::join(ids, ", "));
}

// The bytes of a token, which may be a part of a character: JSON shows U+FFFD for such bytes.
Json piece_of(const Tokenizer& tokenizer, TokenId id) {
  return std::string(tokenizer.bytes_of(id, true));
}

// Each output format excludes the others (check_flags).
void print_ids(const Tokenizer& tokenizer, std::span<const TokenId> ids,
               const TokenizeFlags& values) {
  if (values.json) {
    Json pieces = Json::array();
    for (const TokenId id : ids) pieces.push_back(piece_of(tokenizer, id));
    write_json({{"count", ids.size()}, {"ids", ids}, {"pieces", std::move(pieces)}});
  } else if (values.count) {
    write_out(fmt::format("{}\n", ids.size()));
  } else if (values.pieces) {
    for (const TokenId id : ids)
      write_out(fmt::format("{}\t{}\n", id, dump_json(piece_of(tokenizer, id))));
  } else {
    write_out(to_line(ids));
  }
}

// The algorithm that was asked for. For the token tree it also counts the differences from the
// exact algorithm.
class Encoder {
 public:
  Encoder(std::shared_ptr<const Tokenizer> tokenizer, const std::string& algorithm)
      : tokenizer_(std::move(tokenizer)) {
    if (algorithm == "token-tree") tree_.emplace(tokenizer_);
  }
  std::vector<TokenId> encode(std::string_view text, const EncodeOptions& options) {
    std::vector<TokenId> exact = tokenizer_->encode(text, options);
    if (!tree_) return exact;
    std::vector<TokenId> ids = tree_->encode(text, options);
    const TokenDisagreement differs = disagreement(*tokenizer_, exact, ids);
    total_.n_exact += differs.n_exact;
    total_.n_other += differs.n_other;
    total_.n_differing += differs.n_differing;
    return ids;
  }
  void print_disagreement() const {
    if (!tree_) return;
    const auto n = static_cast<double>(std::max<size_t>(1, total_.n_exact));
    print_log(fmt::format(
        "token-tree: {}; exact BPE has {}, of which {} ({:.2f} %) are not in the same place",
        count(total_.n_other, "token"), total_.n_exact, total_.n_differing,
        100 * static_cast<double>(total_.n_differing) / n));
  }

 private:
  std::shared_ptr<const Tokenizer> tokenizer_;
  std::optional<TokenTree> tree_;
  TokenDisagreement total_;
};

// Encodes again and again for half a second, and says how fast that went.
void print_throughput(const Tokenizer& tokenizer, std::string_view text,
                      const EncodeOptions& options) {
  std::vector<TokenId> ids;
  int64_t n_rounds = 0;
  double seconds = 0;
  for (const Stopwatch watch; seconds < 0.5; ++n_rounds) {
    ids.clear();
    tokenizer.encode(text, options, ids);
    seconds = watch.seconds();
  }
  const double rate = static_cast<double>(n_rounds) / seconds / 1e6;
  print_log(fmt::format("{:.2f} MB/s, {:.3f} million tokens/s: {}, {}, {}, one thread",
                        static_cast<double>(text.size()) * rate,
                        static_cast<double>(ids.size()) * rate, count(text.size(), "byte"),
                        count(ids.size(), "token"), count(n_rounds, "time")));
}

// The same text by another model's tokenizer, beside this one's.
void print_comparison(const Tokenizer& tokenizer, std::string_view text,
                      const EncodeOptions& options, const TokenizeFlags& values) {
  const auto other = open_tokenizer(second_model(values.model, values.compare), values.encoding);
  EncodeOptions other_options = options;
  other_options.special = allowed_tokens(values, *other);
  const std::string& name =
      values.model.model.empty() ? values.model.repository : values.model.model;
  write_out(format_comparison(
      {name, &tokenizer, tokenizer.encode(text, options), options.add_special},
      {values.compare, other.get(), other->encode(text, other_options), options.add_special},
      text.size()));
}

// One JSON string a line in, one JSON array of ids a line out.
void tokenize_lines(Encoder& encoder, const EncodeOptions& options) {
  int64_t n_lines = 0;
  for (std::string line; std::getline(std::cin, line);) {
    const auto json = parse_json(line, fmt::format("line {}", ++n_lines));
    LIMPID_CHECK(ArgumentError, json.is_string(), "line {}: is not a JSON string", n_lines);
    try {
      write_out(to_line(encoder.encode(json.get_ref<const std::string&>(), options)));
    } catch (const ArgumentError& error) {
      throw in_line(n_lines, error);
    }
    flush_out();
  }
}

void declare(CLI::App& app, TokenizeFlags& values) {
  add_option(app, "-p,--prompt TEXT", values.prompt, "the text");
  add_option(app, "-f,--file FILE", values.file, "a file with the text; - is standard input");
  add_switch(app, "--ids", values.ids, "the ids, as a JSON array (the default)");
  add_switch(app, "--pieces", values.pieces, "a line for each token: its id and its text");
  add_switch(app, "--count", values.count, "how many tokens");
  add_switch(app, "--json", values.json, "all three as JSON");
  add_switch(app, "--jsonl", values.jsonl, "each line in is a JSON string, each line out its ids");
  add_switch(app, "--no-bos", values.no_bos, "leave BOS and EOS out");
  add_option(app, "--special [LIST]", values.special,
             "parse control tokens in the text: all, or the names in LIST");
  add_one_of(app, "--tokenizer-algorithm NAME", values.algorithm, {"bpe", "token-tree"},
             "bpe, the model's own, or token-tree: the longest token at each place; on stderr, how "
             "far the two differ");
  add_switch(app, "--refuse-special", values.refuse_special,
             "a control token's name in the text that --special does not allow is an error");
  add_option(app, "--compare MODEL", values.compare,
             "show the tokens of another model's tokenizer beside these");
  add_switch(app, "--throughput", values.throughput, "how fast, on stderr");
  add_option(app, "--encoding NAME", values.encoding,
             "how an unknown *.tiktoken file splits text: cl100k_base, o200k_base, …");
  declare_model_path(app, values.model);
  declare_overrides(app, values.model);
}

// Throws ArgumentError for flags that do not go together.
void check_flags(const TokenizeFlags& values, bool from_stdin) {
  LIMPID_CHECK(ArgumentError, !values.prompt || !values.file, "give one of -p and -f");
  LIMPID_CHECK(ArgumentError, !values.jsonl || from_stdin, "--jsonl reads standard input");
  const int n_outputs = values.ids + values.pieces + values.count + values.json;
  LIMPID_CHECK(ArgumentError, n_outputs <= 1, "give one of --ids, --pieces, --count and --json");
  LIMPID_CHECK(
      ArgumentError,
      !values.jsonl || !(values.pieces || values.count || values.json || values.throughput),
      "--jsonl writes ids: --pieces, --count, --json and --throughput are for one text");
  LIMPID_CHECK(ArgumentError, values.compare.empty() || (n_outputs == 0 && !values.jsonl),
               "--compare has an output of its own");
  LIMPID_CHECK(ArgumentError, values.compare.empty() || values.algorithm == "bpe",
               "--compare compares the models' own tokens: leave --tokenizer-algorithm out");
}

// --encoding is for both tokenizers of --compare.
void check_encoding(const TokenizeFlags& values) {
  const bool is_used =
      values.encoding.empty() || takes_encoding(values.model) ||
      (!values.compare.empty() && takes_encoding(second_model(values.model, values.compare)));
  LIMPID_CHECK(ArgumentError, is_used,
               "--encoding is for *.tiktoken files, which do not say how they split text; leave "
               "it out");
}

void run(const TokenizeFlags& values) {
  const bool from_stdin = !values.prompt && values.file.value_or("-") == "-";
  check_flags(values, from_stdin);

  const auto tokenizer = open_tokenizer(values.model, values.encoding);
  check_encoding(values);
  const EncodeOptions options{.add_special = !values.no_bos,
                              .special = allowed_tokens(values, *tokenizer)};
  Encoder encoder(tokenizer, values.algorithm);
  std::string text;
  if (!values.jsonl) text = values.prompt ? *values.prompt : read_text(values.file.value_or("-"));
  if (values.jsonl) {
    tokenize_lines(encoder, options);
  } else if (values.compare.empty()) {
    print_ids(*tokenizer, encoder.encode(text, options), values);
  } else {
    print_comparison(*tokenizer, text, options, values);
  }
  encoder.print_disagreement();
  if (values.throughput) print_throughput(*tokenizer, text, options);
}

}  // namespace

Command tokenize_command() {
  return {"text to token ids", "tokenize -m FILE [-p TEXT | -f FILE | -] [options]",
          "Text to token ids. Reads standard input unless -p or -f is given. The model may be its "
          "tokenizer alone: tokenizer.json, tokenizer.model, *.tiktoken, vocab.json with "
          "merges.txt, a folder with one of them, a GGUF without weights.",
          "limpid tokenize -m smollm2 -p 'Hello world' --pieces\n"
          "echo '\"Hello world\"' | limpid tokenize -m smollm2 --jsonl",
          bind<TokenizeFlags, declare, run>};
}

}  // namespace limpid::cli
