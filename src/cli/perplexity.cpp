// `limpid perplexity`: how well a model predicts a text, counted as llama.cpp's perplexity counts
// it.
#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/thread_pool.h"
#include "cli/command.h"
#include "generate/engine.h"
#include "generate/logprobs.h"
#include "model/decoder_from_checkpoint.h"
#include "model/tokenizer_from_metadata.h"

namespace limpid::cli {
namespace {

constexpr int64_t kDefaultContext = 512;
constexpr uint64_t kMaxLogitBytes = uint64_t{512} << 20;

// Sums over predicted tokens. The perplexity is exp(mean negative log-likelihood): a model that
// guesses among k equally likely tokens has perplexity k.
struct Estimate {
  double nll = 0;
  double nll_squared = 0;
  int64_t n = 0;

  double perplexity() const { return std::exp(nll / static_cast<double>(n)); }
  // Standard error of the mean, carried through the exponential: a small error d of the mean
  // changes exp(mean) by d * exp(mean).
  double error() const {
    if (n < 2) return 0;
    const double mean = nll / static_cast<double>(n);
    const double variance = nll_squared / static_cast<double>(n) - mean * mean;
    return variance > 0 ? std::sqrt(variance / static_cast<double>(n - 1)) * perplexity() : 0;
  }
};

// The text's tokens in chunks of n_ctx that do not overlap. The first half of each is context only;
// where the tokenizer adds BOS, it replaces a chunk's first token. With n_ctx = 8:
//
//   chunk 0   t0 t1 t2 t3 | t4  t5  t6  t7     t4, …, t6 predict t5, …, t7
//   chunk 1   t8 t9 …     | t12 t13 t14 t15    t12, …, t14 predict t13, …, t15
//             context       counted
//
// A step has at most the tokens of a batch, and as many as memory has room for their logits: the
// halves of several chunks, or a part of one half.
class Evaluation {
 public:
  Evaluation(Model& model, const OpenOptions& options, std::vector<TokenId> ids,
             std::optional<TokenId> bos)
      : model_(model),
        ids_(std::move(ids)),
        bos_(bos),
        n_ctx_(options.n_ctx),
        first_(options.n_ctx / 2),
        pool_(options.n_threads) {
    const auto row_bytes = static_cast<uint64_t>(model.spec().vocab_size) * sizeof(float);
    const auto by_memory = static_cast<int64_t>(kMaxLogitBytes / row_bytes);
    const int64_t n_batch = std::clamp<int64_t>(by_memory, 1, options.n_batch);
    n_together_ = std::max<int64_t>(1, n_batch / (n_ctx_ - first_));
    n_at_once_ = n_batch / n_together_;
    cache_ = model.make_cache(n_together_ * blocks_for(n_ctx_) * kKvBlock,
                              cache_dtype(options.cache_type_k), cache_dtype(options.cache_type_v));
  }

  int64_t n_chunks() const { return std::ssize(ids_) / n_ctx_; }
  int64_t n_together() const { return n_together_; }

  // Evaluates chunks [begin, begin + n): the context, then the tokens that predict.
  void add_chunks(int64_t begin, int64_t n, Estimate& estimate) {
    std::vector<std::vector<TokenId>> chunks;
    std::vector<StepItem> items(size_of(n));
    for (StepItem& item : items) {
      const auto start = ids_.begin() + (begin + std::ssize(chunks)) * n_ctx_;
      chunks.emplace_back(start, start + n_ctx_);
      if (bos_) chunks.back().front() = *bos_;
      item.sequence = cache_->add_sequence();
    }
    for (int64_t from = 0, to = 0; from < n_ctx_; from = to) {
      const bool predicts = from >= first_;
      to = std::min(from + n_at_once_, predicts ? n_ctx_ : first_);
      for (size_t i = 0; i < items.size(); ++i) {
        items[i].tokens = std::span(chunks[i]).subspan(size_of(from), size_of(to - from));
        items[i].outputs = predicts ? StepItem::Outputs::kAll : StepItem::Outputs::kNone;
      }
      const auto logits = model_.step(*cache_, items);
      if (predicts) add_rows(logits, begin, n, from, to, estimate);
    }
    for (const StepItem& item : items) cache_->remove_sequence(item.sequence);
  }

 private:
  static size_t size_of(int64_t n) { return static_cast<size_t>(n); }

  // Adds the predictions from tokens [from, to) of n chunks. That from the last token of a chunk is
  // not counted: the next token belongs to another chunk.
  void add_rows(std::span<const float> logits, int64_t begin, int64_t n, int64_t from, int64_t to,
                Estimate& estimate) {
    const int64_t n_counted = std::min(to, n_ctx_ - 1) - from;  // of each chunk
    const auto vocab_size = size_of(model_.spec().vocab_size);
    std::vector<double> nll(size_of(n * n_counted));
    pool_.for_each(n * n_counted, 1, [&](int64_t i) {
      const int64_t chunk = i / n_counted;
      const int64_t place = i % n_counted;
      const size_t row = size_of(chunk * (to - from) + place);
      const auto scores = logits.subspan(row * vocab_size, vocab_size);
      const TokenId next = ids_[size_of((begin + chunk) * n_ctx_ + from + place + 1)];
      // -log softmax(scores)[next]
      nll[size_of(i)] = log_sum_exp(scores) - scores[size_of(next)];
    });
    for (const double each : nll) {
      LIMPID_CHECK(ArgumentError, std::isfinite(each),
                   "a logit is not finite: the model's weights are damaged");
      estimate.nll += each;
      estimate.nll_squared += each * each;
    }
    estimate.n += n * n_counted;
  }

  Model& model_;
  std::vector<TokenId> ids_;
  std::optional<TokenId> bos_;
  int64_t n_ctx_;
  int64_t first_;  // that predicts
  ThreadPool pool_;
  int64_t n_together_ = 1;  // chunks
  int64_t n_at_once_ = 1;   // tokens of each
  std::unique_ptr<KvCache> cache_;
};

struct PerplexityFlags {
  ModelFlags model;
  std::optional<std::string> file;
  std::optional<std::string> prompt;
  int64_t max_chunks = -1;
  bool json = false;
};

void declare(CLI::App& app, PerplexityFlags& values) {
  add_option(app, "-f,--file FILE", values.file, "the text (default: standard input)");
  add_option(app, "-p,--prompt TEXT", values.prompt, "the text itself");
  add_option(app, "--chunks N", values.max_chunks, "evaluate no more than N chunks (-1: all)");
  add_switch(app, "--json", values.json, "the result as JSON");
  declare_model(app, values.model, std::to_string(kDefaultContext));
}

// A terminal as standard input would wait for a whole text to be typed, so that is an error.
std::string text_of(const PerplexityFlags& values) {
  LIMPID_CHECK(ArgumentError, !values.file || !values.prompt, "give one of -f and -p");
  LIMPID_CHECK(ArgumentError, values.file || values.prompt || !stdin_is_terminal(),
               "which text? give -f FILE, or send it to standard input");
  return values.prompt ? *values.prompt : read_text(values.file.value_or("-"));
}

// Evaluates the first `n_chunks` chunks and shows the running value.
Estimate estimate_over(Evaluation& evaluation, int64_t n_chunks) {
  Estimate estimate;
  ProgressBar bar("perplexity");
  for (int64_t begin = 0; begin < n_chunks; begin += evaluation.n_together()) {
    const int64_t n = std::min(evaluation.n_together(), n_chunks - begin);
    evaluation.add_chunks(begin, n, estimate);
    const std::string running = fmt::format("[{}]{:.4f}", begin + n, estimate.perplexity());
    bar.show(begin + n, n_chunks, running);
    if (!stderr_is_terminal()) print_log(running);
  }
  return estimate;
}

// That of llama.cpp, where the model has positions for it.
int64_t default_context(const DecoderSpec& spec) {
  return spec.position == PositionKind::kRope ? kDefaultContext
                                              : std::min(kDefaultContext, spec.n_ctx_train);
}

void run(PerplexityFlags& values) {
  const auto checkpoint = open_header(values.model);
  int64_t& n_ctx = values.model.options.n_ctx;
  if (n_ctx == 0) n_ctx = default_context(read_spec(*checkpoint));
  LIMPID_CHECK(
      ArgumentError, n_ctx >= 3,
      "-c {}: must be at least 3: one token of context, one that predicts, and the one that "
      "it predicts",
      n_ctx);
  LIMPID_CHECK(ArgumentError, values.max_chunks == -1 || values.max_chunks > 0,
               "--chunks {}: must be at least 1, or -1 for all", values.max_chunks);
  const std::string text = text_of(values);
  LIMPID_CHECK(
      ArgumentError, !text.empty(),
      "the text is empty; perplexity at -c {} needs at least {} tokens: give a text (-p, -f "
      "or standard input)",
      n_ctx, 2 * static_cast<uint64_t>(n_ctx));
  const auto tokenizer = tokenizer_from(*checkpoint);
  std::vector<TokenId> ids = tokenizer->encode(text);
  const int64_t n_ids = std::ssize(ids);
  LIMPID_CHECK(ArgumentError, n_ids / 2 >= n_ctx,
               "the text has {}; perplexity at -c {} needs at least {}: give a longer text, or a "
               "smaller -c",
               count(n_ids, "token"), n_ctx, 2 * static_cast<uint64_t>(n_ctx));
  const auto model = load_weights_only(values.model, checkpoint);
  const TokenizerSpec& spec = tokenizer->spec();
  Evaluation evaluation(*model, to_open_options(values.model), std::move(ids),
                        spec.add_bos ? spec.bos : std::nullopt);
  int64_t n_chunks = evaluation.n_chunks();
  if (values.max_chunks > 0) n_chunks = std::min(values.max_chunks, n_chunks);
  const Stopwatch watch;
  const Estimate estimate = estimate_over(evaluation, n_chunks);
  const double seconds = watch.seconds();
  if (values.json) {
    write_json({{"perplexity", estimate.perplexity()},
                {"error", estimate.error()},
                {"chunks", n_chunks},
                {"n_ctx", n_ctx},
                {"n_predicted", estimate.n},
                {"n_tokens", n_ids},
                {"seconds", seconds}});
  } else {
    write_out(fmt::format("Final estimate: PPL = {:.4f} +/- {:.5f}\n", estimate.perplexity(),
                          estimate.error()));
  }
  print_log(fmt::format("{} of {} tokens in {:.1f} s ({:.1f} tokens/s)", count(n_chunks, "chunk"),
                        n_ctx, seconds, static_cast<double>(n_chunks * n_ctx) / seconds));
}

}  // namespace

Command perplexity_command() {
  return {
      "how well a model predicts a text", "perplexity -m FILE [-f FILE | -p TEXT | -] [options]",
      "How well a model predicts a text, counted as llama.cpp's perplexity counts it: chunks "
      "of -c tokens that\ndo not overlap, the first half of each as context. Running values "
      "go to standard error.",
      "limpid perplexity -m smollm2 -f wiki.test.raw -c 512", bind<PerplexityFlags, declare, run>};
}

}  // namespace limpid::cli
