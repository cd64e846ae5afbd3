// `limpid tokenizer train`: a tokenizer learned from text.
//
// Byte pair encoding begins with the 256 bytes as tokens, and again and again makes the most
// frequent pair of neighbours a new token. From "low low lower", with words cut at blanks:
//
//   l o w   l o w   l o w e r     the pair l, o occurs 3 times and becomes the token "lo"
//   lo w    lo w    lo w e r      the pair lo, w occurs 3 times and becomes "low"
//   low     low     low e r
//
// Words are counted first, and each different word is kept once with its count. So the time depends
// on the different words of a text, not on its length.

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>
#include <ranges>

#include "base/mapped_file.h"
#include "base/paths.h"
#include "cli/command.h"
#include "cli/output_path.h"
#include "tokenizer/tokenizer_json_writer.h"
#include "train/bpe/bpe_trainer.h"
#include "train/training_data.h"

namespace limpid::cli {
namespace {

struct TokenizerFlags {
  std::string action;
  std::vector<std::string> files;
  std::string out;
  std::string pre_tokenizer = "gpt2";
  std::vector<std::string> special;
  ModelFlags model;  // -t
  BpeTrainingOptions options;
  bool json = false;
};

constexpr std::pair<std::string_view, PreTokenizer> kPreTokenizers[] = {
    {"gpt2", PreTokenizer::kGpt2},
    {"llama3", PreTokenizer::kLlama3},
    {"qwen2", PreTokenizer::kQwen2},
    {"none", PreTokenizer::kNone},
};

void declare(CLI::App& app, TokenizerFlags& values) {
  add_choice(app, "action ACTION", values.action, {"train"}, "train");
  add_option(app, "files FILE...", values.files, "texts to learn from; - is standard input");
  add_option(app, "-o,--output OUT", values.out,
             "the tokenizer.json to write; - is standard output");
  add_option(app, "--vocab-size N", values.options.vocab_size, Range{1},
             "tokens, with the 256 bytes and the special tokens (32000)");
  const auto names = std::views::keys(kPreTokenizers);
  add_one_of(app, "--pre-tokenizer NAME", values.pre_tokenizer, {names.begin(), names.end()},
             "what cuts a text into words: gpt2, llama3, qwen2, or none (gpt2)");
  add_option(app, "--special LIST", values.special,
             "special tokens, between commas; they get the first ids");
  add_option(app, "--min-frequency N", values.options.min_frequency, Range{0},
             "a pair of tokens that occurs less often does not become a token (0)");
  add_switch(app, "--lines", values.options.each_line,
             "each line is a text of its own, as for `train` of tokenizers with files");
  add_switch(app, "--json", values.json, "what was learned, as JSON");
  declare_threads(app, values.model);
}

// The names between the commas of all lists.
std::vector<std::string> split_lists(const std::vector<std::string>& lists) {
  std::vector<std::string> names;
  for (const std::string& list : lists) {
    // A comma more, because split() takes no empty text after the last one.
    for (const std::string& name : CLI::detail::split(list + ',', ',')) {
      LIMPID_CHECK(ArgumentError, !name.empty(), "--special '{}': a special token is empty", list);
      names.push_back(name);
    }
  }
  return names;
}

void check_flags(const TokenizerFlags& values) {
  LIMPID_CHECK(ArgumentError, !values.action.empty(),
               "give what to do: limpid tokenizer train FILE... -o OUT");
  LIMPID_CHECK(ArgumentError, values.action == "train",
               "unknown action '{}'; the only one is train: limpid tokenizer train FILE... -o OUT",
               values.action);
  LIMPID_CHECK(ArgumentError, !values.files.empty(),
               "which text? limpid tokenizer train FILE... -o OUT");
  LIMPID_CHECK(ArgumentError, !values.out.empty(),
               "where is the tokenizer to be written? give -o OUT, as in -o tokenizer.json");
  LIMPID_CHECK(ArgumentError, values.out != "-" || !values.json,
               "-o - and --json both write to standard output; give one of them");
  check_not_an_input(values.out, values.files);
}

// Each document and each message is a text of its own, so that no word and no merge crosses from
// one to the next.
void open_json_lines(const std::string& path, std::vector<TrainingText>& texts) {
  const size_t n_before = texts.size();
  for_each_text(path, [&](std::string_view text) {
    const auto copy = std::make_shared<const std::string>(text);
    if (!text.empty()) texts.push_back({path, *copy, copy});
  });
  if (texts.size() == n_before) texts.push_back({path, {}, {}});  // so that errors name the file
}

// Regular files are mapped; standard input and pipes are read.
void open_text(const std::string& path, std::vector<TrainingText>& texts) {
  if (is_json_lines(path)) return open_json_lines(path, texts);
  if (is_file(path)) {
    const auto file = MappedFile::open(path);
    texts.push_back({path, text_of(*file), file});
  } else {
    const auto text = std::make_shared<const std::string>(read_text(path));  // says what is wrong
    texts.push_back({path == "-" ? "standard input" : path, *text, text});
  }
}

Json to_json(const TrainedBpe& trained, const TokenizerFlags& values, double seconds) {
  Json special = Json::object();
  for (size_t id = 0; id < trained.n_special; ++id) special[trained.pieces[id]] = id;
  return {{"output", values.out},
          {"vocab_size", trained.pieces.size()},
          {"n_merges", trained.merges.size()},
          {"special_tokens", std::move(special)},
          {"pre_tokenizer", values.pre_tokenizer},
          {"n_bytes", trained.n_bytes},
          {"n_words", trained.n_words},
          {"n_different_words", trained.n_different_words},
          {"last_count", trained.last_count},
          {"seconds", seconds}};
}

void print_summary(const TrainedBpe& trained, const TokenizerFlags& values, double seconds) {
  const auto vocab_size = static_cast<int64_t>(trained.pieces.size());
  if (vocab_size < values.options.vocab_size) {
    print_log(fmt::format(
        "the text has enough pairs for only {} of the {} tokens; more text{} gives more",
        vocab_size, values.options.vocab_size,
        values.options.min_frequency > 1 ? ", or a smaller --min-frequency," : ""));
  }
  print_log(fmt::format("{}: {}, {}, from {} with {}, {} of them different, in {:.2f} s",
                        values.out == "-" ? "standard output" : values.out,
                        count(trained.pieces.size(), "token"),
                        count(trained.merges.size(), "merge"), format_bytes(trained.n_bytes),
                        count(trained.n_words, "word"), trained.n_different_words, seconds));
}

void run(const TokenizerFlags& values) {
  check_flags(values);
  BpeTrainingOptions options = values.options;
  for (const auto& [name, cuts] : kPreTokenizers)
    if (name == values.pre_tokenizer) options.pre_tokenizer = cuts;
  options.special_tokens = split_lists(values.special);
  options.n_threads = std::max(values.model.options.n_threads, 0);
  if (values.out != "-") check_writable(values.out);
  std::vector<TrainingText> texts;
  for (const std::string& file : values.files) open_text(file, texts);

  ProgressBar counting("counting words");
  ProgressBar merging("merging");
  options.progress = counting.of_bytes();
  options.merging = [&](uint64_t done, uint64_t total) {
    counting.wipe();
    merging.show(done, total, fmt::format("{} of {} tokens", done, total));
    return true;
  };
  const Stopwatch watch;
  const TrainedBpe trained = train_bpe(texts, options);
  const double seconds = watch.seconds();
  write_text(values.out, write_tokenizer_json(tokenizer_spec(trained)));
  merging.wipe();
  print_summary(trained, values, seconds);
  if (options.pre_tokenizer == PreTokenizer::kNone) {
    print_log(
        "GGUF has no name for a tokenizer without words: limpid convert will refuse to write a "
        "model with this tokenizer as GGUF; for GGUF, train it with --pre-tokenizer gpt2, llama3 "
        "or qwen2");
  }
  if (values.json) write_json(to_json(trained, values, seconds));
}

}  // namespace

Command tokenizer_command() {
  return {
      "train a tokenizer", "tokenizer train FILE... -o OUT [options]",
      "Learns a byte-level BPE tokenizer from texts and writes it as tokenizer.json, for Limpid "
      "and for Hugging Face's\ntokenizers, whose BpeTrainer learns the same from the same words. "
      "Each file is one text, unless --lines is\ngiven; of a .jsonl or .ndjson file, as train "
      "--data "
      "takes it, each document and each message is one.",
      "limpid tokenizer train wiki.test.raw --vocab-size 8000 -o tokenizer.json\n"
      "limpid tokenizer train *.raw --pre-tokenizer llama3 --special '<s>,</s>' -o tokenizer.json\n"
      "echo Hello | limpid tokenizer train - -o tokenizer.json && limpid tokenize -m "
      "tokenizer.json -p Hello",
      bind<TokenizerFlags, declare, run>};
}

}  // namespace limpid::cli
