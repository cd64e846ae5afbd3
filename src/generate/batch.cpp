#include "limpid/batch.hpp"

#include <algorithm>
#include <chrono>

#include "base/check.h"
#include "generate/continuation.h"

namespace limpid {
namespace {

// One prompt and its continuation.
struct Row {
  Row(const Engine& engine, const GenerationOptions& options) : continuation(engine, options) {}

  Continuation continuation;
  SequenceId sequence = 0;
  std::vector<TokenId> tokens;   // evaluated tokens, whose keys and values are in the cache
  std::vector<TokenId> pending;  // tokens to evaluate next; the last one needs logits
  int64_t n_ctx = 0;
  bool in_prompt = true;
};

// Runs all prompts together. A step of the model takes some tokens of each row: one pass over the
// weights serves all of them, and decoding is bound by that pass. Rows begin with their prompts,
// several tokens per step, and go on with one token per step:
//
//   step  row 0              row 1
//   1     prompt [0, 300)    prompt [0, 212)      n_batch = 512 tokens
//   2     answer token 1     prompt [212, 500)
//   3     answer token 2     answer token 1
//
// A row's result does not depend on the other rows: the executor sums each output element in an
// order that does not depend on the number of rows.
class Batch {
 public:
  Batch(const LanguageModel& model, std::span<const std::string> prompts,
        const GenerationOptions& options,
        const std::function<void(size_t i, std::string_view piece)>& on_text, int64_t n_ctx_each)
      : engine_(*engine_of(model)), on_text_(on_text) {
    int64_t n_positions = 0;
    for (const std::string& prompt : prompts) {
      Row& row = rows_.emplace_back(engine_, options);
      row.pending = model.encode(prompt);
      LIMPID_CHECK(ArgumentError, !row.pending.empty(),
                   "[batch] prompt {} is empty and the model has no BOS token to begin with",
                   rows_.size() - 1);
      row.n_ctx = n_ctx_each > 0 ? std::min(n_ctx_each, engine_.n_ctx()) : engine_.n_ctx();
      if (std::ssize(row.pending) > row.n_ctx)
        throw ContextOverflowError(std::ssize(row.pending), row.n_ctx,
                                   context_needed(std::ssize(row.pending), options.n_predict));
      row.continuation.begin(row.pending);
      row.continuation.timings().n_prompt = std::ssize(row.pending);
      // Reserve only as many positions as this row can use, in whole blocks.
      const int64_t n_free = row.n_ctx - std::ssize(row.pending);
      const int64_t n_more = options.n_predict < 0 ? n_free : std::min(options.n_predict, n_free);
      const int64_t n_used = std::ssize(row.pending) + n_more;
      n_positions += (n_used + kKvBlock - 1) / kKvBlock * kKvBlock;
    }
    if (rows_.empty()) return;
    cache_ = engine_.make_cache(n_positions);
    for (Row& row : rows_) row.sequence = cache_->add_sequence();
  }

  // Steps until all rows have ended, and collects their results in the order of the prompts.
  std::vector<GenerationResult> run() {
    while (step()) {
    }
    std::vector<GenerationResult> results;
    for (const Row& row : rows_) results.push_back(row.continuation.result());
    return results;
  }

 private:
  // Evaluates some of the pending tokens and samples. Returns false when all rows have ended.
  bool step() {
    const auto start = std::chrono::steady_clock::now();
    for (Row& row : rows_) make_room(row);
    plan();
    if (items_.empty()) return false;
    engine_.step(*cache_, items_, logits_);
    const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
    auto rest = std::span<const float>(logits_);
    for (size_t i = 0; i < items_.size(); ++i) {
      Row& row = *stepped_[i];
      auto& timings = row.continuation.timings();
      (row.in_prompt ? timings.prompt_seconds : timings.generation_seconds) += taken.count();
      const auto n = std::ssize(items_[i].tokens);
      row.tokens.insert(row.tokens.end(), row.pending.begin(), row.pending.begin() + n);
      row.pending.erase(row.pending.begin(), row.pending.begin() + n);
      if (items_[i].outputs == StepItem::Outputs::kNone) continue;
      const auto vocab_size = static_cast<size_t>(engine_.vocab_size());
      sample(row, rest.first(vocab_size));
      rest = rest.subspan(vocab_size);
    }
    return true;
  }

  // Ends a cancelled row, and shifts the context of a full one.
  void make_room(Row& row) {
    if (row.continuation.finished()) return;
    if (row.continuation.options().cancel.cancelled()) {
      row.continuation.finish(StopReason::kCancelled);
    } else if (!row.in_prompt && row.continuation.needs_shift(std::ssize(row.tokens), row.n_ctx)) {
      const auto left = shifted(row.tokens, row.continuation.n_keep());
      const auto n_kept = std::clamp<int64_t>(row.continuation.n_keep(), 0, std::ssize(left));
      cache_->truncate(row.sequence, n_kept);
      row.tokens.resize(static_cast<size_t>(n_kept));
      row.pending.insert(row.pending.begin(), left.begin() + n_kept, left.end());
    }
    if (row.continuation.finished()) give(row);
  }

  // Chooses the tokens of the next step. Every row that generates gets its one token; the rows that
  // are still in their prompts share the rest of n_batch, in order.
  void plan() {
    items_.clear();
    stepped_.clear();
    int64_t budget = engine_.options().n_batch;
    for (const Row& row : rows_) budget -= !row.continuation.finished() && row.pending.size() == 1;
    for (Row& row : rows_) {
      if (row.continuation.finished()) continue;
      const int64_t wanted = std::ssize(row.pending);
      int64_t n = 1;
      if (wanted > 1) {
        n = std::min(wanted, std::max<int64_t>(budget, items_.empty() ? 1 : 0));
        budget -= n;
      }
      if (n == 0) continue;
      StepItem& item = items_.emplace_back();
      item.sequence = row.sequence;
      item.tokens = std::span(row.pending).first(static_cast<size_t>(n));
      item.outputs = n == wanted ? StepItem::Outputs::kLast : StepItem::Outputs::kNone;
      stepped_.push_back(&row);
    }
  }

  // Samples the row's next token. It is evaluated in the next step.
  void sample(Row& row, std::span<const float> logits) {
    row.in_prompt = false;
    if (const auto token = row.continuation.next(logits)) row.pending = {*token};
    give(row);
  }

  // Passes new text of the row to the caller.
  void give(Row& row) {
    const std::string piece = row.continuation.take_text();
    if (on_text_ && !piece.empty()) on_text_(static_cast<size_t>(&row - rows_.data()), piece);
  }

  Engine& engine_;
  const std::function<void(size_t i, std::string_view piece)>& on_text_;
  std::vector<Row> rows_;
  std::unique_ptr<KvCache> cache_;
  std::vector<StepItem> items_;
  std::vector<Row*> stepped_;  // the row of each of items_
  std::vector<float> logits_;
};

}  // namespace

std::vector<GenerationResult> generate_batch(
    const LanguageModel& model, std::span<const std::string> prompts,
    const GenerationOptions& options,
    const std::function<void(size_t i, std::string_view piece)>& on_text, int64_t n_ctx_each) {
  LIMPID_CHECK(ArgumentError, n_ctx_each >= 0, "[batch] n_ctx_each is {}, must be 0 or more",
               n_ctx_each);
  return Batch(model, prompts, options, on_text, n_ctx_each).run();
}

}  // namespace limpid
