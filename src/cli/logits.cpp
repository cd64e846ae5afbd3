// `limpid logits`: the model's raw outputs, for comparisons.
//
// The tokens are evaluated in chunks of -b. Logits are computed only where rows are wanted, since
// the output matrix is the largest of a small model: for --positions -1 of 1,000 tokens with -b
// 512,
//   tokens [0, 512)      no logits
//   tokens [512, 1000)   logits of the last
#include <algorithm>

#include "cli/command.h"
#include "cli/npy_file.h"
#include "cli/output_path.h"
#include "generate/engine.h"
#include "model/tokenizer_from_metadata.h"

namespace limpid::cli {
namespace {

struct LogitsFlags {
  ModelFlags model;
  std::optional<std::string> ids;
  std::optional<std::string> ids_file;
  std::optional<std::string> prompt;
  std::string positions;
  std::string output;
};

// The tokens from the one source that was given. With ids, a model without a tokenizer works too.
std::vector<TokenId> read_ids(const LogitsFlags& values, const Checkpoint& checkpoint) {
  const int n_sources = int{values.ids.has_value()} + int{values.ids_file.has_value()} +
                        int{values.prompt.has_value()};
  LIMPID_CHECK(ArgumentError, n_sources == 1, "which tokens? give one of --ids, --ids-file and -p");
  const std::string source = values.ids ? "--ids" : values.ids_file.value_or("-p");
  std::vector<TokenId> ids =
      values.prompt
          ? tokenizer_from(checkpoint)->encode(*values.prompt)
          : parse_token_ids(values.ids ? *values.ids : read_text(*values.ids_file), source);
  LIMPID_CHECK(ArgumentError, !ids.empty(), "{}: no tokens, so nothing to evaluate", source);
  return ids;
}

// Pairs (position, row of the file), by position. Negative positions count from the end.
std::vector<std::pair<int64_t, int64_t>> wanted_rows(const std::string& text, int64_t n_tokens) {
  std::vector<int64_t> positions = parse_integers(text, "--positions");
  for (int64_t t = 0; text.empty() && t < n_tokens; ++t) positions.push_back(t);
  std::vector<std::pair<int64_t, int64_t>> rows;
  for (const int64_t given : positions)
    rows.emplace_back(absolute_position(given, n_tokens), static_cast<int64_t>(rows.size()));
  std::ranges::sort(rows);
  return rows;
}

// Evaluates the tokens chunk by chunk and writes the wanted rows; asks for no more logits than
// needed. Returns how many tokens were evaluated.
int64_t evaluate(Model& model, KvCache& cache, std::span<const TokenId> ids, int64_t chunk,
                 std::span<const std::pair<int64_t, int64_t>> rows, NpyFile& file) {
  const SequenceId sequence = cache.add_sequence();
  const auto vocab_size = static_cast<size_t>(model.spec().vocab_size);
  ProgressBar bar("evaluating");
  // Tokens after the last wanted position cannot change its logits.
  const int64_t n_needed = rows.empty() ? 0 : rows.back().first + 1;
  for (int64_t begin = 0; begin < n_needed; begin += chunk) {
    const int64_t end = std::min(begin + chunk, n_needed);
    const int64_t next = rows.front().first;  // the last one is n_needed - 1
    const auto outputs = next >= end       ? StepItem::Outputs::kNone
                         : next == end - 1 ? StepItem::Outputs::kLast
                                           : StepItem::Outputs::kAll;
    const StepItem item{sequence,
                        ids.subspan(static_cast<size_t>(begin), static_cast<size_t>(end - begin)),
                        outputs};
    const std::span<const float> logits = model.step(cache, {&item, 1});
    const int64_t first = outputs == StepItem::Outputs::kLast ? end - 1 : begin;
    while (!rows.empty() && rows.front().first < end) {
      const auto& [position, row] = rows.front();
      file.write_row(
          row, logits.subspan(static_cast<size_t>(position - first) * vocab_size, vocab_size));
      rows = rows.subspan(1);
    }
    bar.show(end, n_needed);
  }
  return n_needed;
}

void declare(CLI::App& app, LogitsFlags& values) {
  values.model.options.cache_type_k = values.model.options.cache_type_v = "f32";
  add_option(app, "--ids LIST", values.ids, "token ids between commas");
  add_option(app, "--ids-file FILE", values.ids_file, "a file of token ids; - is standard input");
  add_option(app, "-p,--prompt TEXT", values.prompt,
             "text, encoded with BOS where the model wants it");
  add_option(app, "--positions LIST", values.positions,
             "rows to write, in this order; -1 is the last token (all)");
  add_option(app, "-o,--output FILE", values.output, "where to write; - is standard output");
  declare_model(app, values.model);
}

void run(const LogitsFlags& values) {
  LIMPID_CHECK(ArgumentError, !values.output.empty(), "where to? give -o FILE");

  const auto checkpoint = open_header(values.model);
  const std::vector<TokenId> ids = read_ids(values, *checkpoint);
  LIMPID_CHECK(ArgumentError, values.output != "-" || !stdout_is_terminal(),
               "-o -: an array is not text for a terminal; send it to a file or a program");
  check_output(values.output, *checkpoint);
  const auto n_tokens = static_cast<int64_t>(ids.size());
  const auto rows = wanted_rows(values.positions, n_tokens);
  const auto model = load_weights_only(values.model, checkpoint);
  const OpenOptions& options = values.model.options;
  const auto cache = model->make_cache_for_one(n_tokens, cache_dtype(options.cache_type_k),
                                               cache_dtype(options.cache_type_v));
  NpyFile file(values.output, static_cast<int64_t>(rows.size()), model->spec().vocab_size);
  const Stopwatch watch;
  const int64_t n_evaluated =
      evaluate(*model, *cache, ids, to_open_options(values.model).n_batch, rows, file);
  file.finish();
  const double seconds = watch.seconds();
  print_log(fmt::format("{} of {} in {:.2f} s ({:.1f} tokens/s): {}", count(rows.size(), "row"),
                        count(n_tokens, "token"), seconds,
                        static_cast<double>(n_evaluated) / seconds, values.output));
}

}  // namespace

Command logits_command() {
  return {"the model's raw outputs, as a .npy file",
          "logits -m FILE (--ids LIST | --ids-file FILE | -p TEXT) -o FILE [options]",
          "Writes the logits after each token as a .npy file: f32 [positions, vocab].\n"
          "With ids it needs no tokenizer. The KV cache is f32 unless -ctk, -ctv say otherwise.",
          "limpid logits -m smollm2 -p 'The capital of France is' --positions -1 -o out.npy\n"
          "limpid logits -m smollm2 --ids 504,3575,282 --device reference -o out.npy",
          bind<LogitsFlags, declare, run>};
}

}  // namespace limpid::cli
