#include "limpid/session.hpp"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "generate/continuation.h"
#include "generate/session_stream.h"

namespace limpid {

Session::State::State(LanguageModel language_model, const SessionOptions& options)
    : model(std::move(language_model)) {
  LIMPID_CHECK(ArgumentError, options.n_ctx >= 0 && options.n_ctx <= model.n_ctx(),
               "[session] n_ctx is {}, must be between 1 and the model's {}, or 0 for that",
               options.n_ctx, model.n_ctx());
  n_ctx = options.n_ctx > 0 ? options.n_ctx : model.n_ctx();
  cache = engine().make_cache(n_ctx);
  sequence = cache->add_sequence();
}

Session::State& Session::State::idle() {
  LIMPID_CHECK(ArgumentError, !is_lent,
               "[session] a stream of this session is still open: read it to its end or drop it "
               "before the session is used again");
  return *this;
}

void Session::State::check_new(std::span<const TokenId> new_tokens, int64_t n_before,
                               int64_t n_predict) const {
  for (const TokenId id : new_tokens) {
    LIMPID_CHECK(ArgumentError, id >= 0 && id < model.vocab_size(),
                 "[session] token id {} is not in the vocabulary [0, {})", id, model.vocab_size());
  }
  const int64_t n_after = n_before + std::ssize(new_tokens);
  if (n_after > n_ctx)
    throw ContextOverflowError(n_after, n_ctx, context_needed(n_after, n_predict));
}

void Session::State::step(std::span<const TokenId> chunk, StepItem::Outputs outputs,
                          std::vector<float>& out) {
  const StepItem item{sequence, chunk, outputs};
  engine().step(*cache, {&item, 1}, out);
  tokens.insert(tokens.end(), chunk.begin(), chunk.end());
}

// Evaluates the last token of an answer, now that another token follows it.
void Session::State::evaluate_pending() {
  if (!pending) return;
  step({&*pending, 1}, StepItem::Outputs::kLast, logits);
  pending.reset();
}

// The tokens are evaluated in chunks of n_batch. With `look`, each token gets its logits, and the
// chunks are small: logits are the largest memory of a step, 33 MB for 64 rows of a vocabulary of
// 128,256. Without it, only the last chunk computes logits.
int64_t Session::State::append(std::span<const TokenId> new_tokens, const CancelToken* cancel,
                               const LookAtLogits& look) {
  constexpr size_t kMostOutputs = 64;
  check_new(new_tokens, std::ssize(tokens) + (pending ? 1 : 0));
  evaluate_pending();
  const auto n_batch = static_cast<size_t>(engine().options().n_batch);
  const size_t n_chunk = look ? std::min(kMostOutputs, n_batch) : n_batch;
  const auto vocab_size = static_cast<size_t>(model.vocab_size());
  std::vector<float> rows;
  for (size_t done = 0; done < new_tokens.size();) {
    if (cancel != nullptr && cancel->cancelled()) return static_cast<int64_t>(done);
    const int64_t first = std::ssize(tokens);
    const auto chunk = new_tokens.subspan(done, std::min(n_chunk, new_tokens.size() - done));
    done += chunk.size();
    const bool is_last = done == new_tokens.size();
    const auto outputs = look      ? StepItem::Outputs::kAll
                         : is_last ? StepItem::Outputs::kLast
                                   : StepItem::Outputs::kNone;
    step(chunk, outputs, look ? rows : logits);
    if (!look) continue;
    logits.assign(rows.end() - static_cast<std::ptrdiff_t>(vocab_size), rows.end());
    for (size_t i = 0; i < chunk.size(); ++i)
      look(first + static_cast<int64_t>(i), std::span(rows).subspan(i * vocab_size, vocab_size));
  }
  return std::ssize(new_tokens);
}

// Tokens that are already in the cache at the same positions need not be evaluated again. At least
// the last token is evaluated, because its logits are needed.
int64_t Session::State::assign(std::span<const TokenId> wanted, const CancelToken* cancel) {
  LIMPID_CHECK(ArgumentError, !wanted.empty(), "[session] the new sequence has no tokens");
  check_new(wanted, 0);
  pending.reset();
  const auto differ = std::mismatch(tokens.begin(), tokens.end(), wanted.begin(), wanted.end());
  int64_t n_kept = differ.first - tokens.begin();
  const bool nothing_to_do =
      n_kept == std::ssize(wanted) && n_kept == std::ssize(tokens) && !logits.empty();
  if (nothing_to_do) return n_kept;
  n_kept = std::min(n_kept, std::ssize(wanted) - 1);
  truncate(n_kept);
  append(wanted.subspan(static_cast<size_t>(n_kept)), cancel);
  return n_kept;
}

// `pending` follows the evaluated tokens, so it is forgotten when none may follow them.
void Session::State::truncate(int64_t n) {
  LIMPID_CHECK(ArgumentError, n >= 0, "[session] cannot truncate to {} tokens", n);
  if (n <= std::ssize(tokens)) pending.reset();
  if (n >= std::ssize(tokens)) return;
  cache->truncate(sequence, n);
  tokens.resize(static_cast<size_t>(n));
  logits.clear();
}

// The tokens after the kept ones move to other positions. Their keys hold rotary angles of the old
// positions, so they are evaluated again; the result is then the same as for a fresh prompt.
int64_t Session::State::shift(int64_t n_keep) {
  const std::vector<TokenId> left = shifted(tokens, n_keep);
  const int64_t n_dropped = std::ssize(tokens) - std::ssize(left);
  const auto still_pending = std::exchange(pending, std::nullopt);
  truncate(std::clamp<int64_t>(n_keep, 0, std::ssize(left)));
  append(std::span(left).subspan(tokens.size()), nullptr);
  pending = still_pending;
  return n_dropped;
}

Session::Session(LanguageModel model, const SessionOptions& options)
    : state_(std::make_shared<State>(std::move(model), options)) {}
Session::Session(Session&&) noexcept = default;
Session& Session::operator=(Session&&) noexcept = default;
Session::~Session() = default;

const LanguageModel& Session::model() const { return state_->model; }
int64_t Session::n_ctx() const { return state_->n_ctx; }
std::span<const TokenId> Session::tokens() const { return state_->tokens; }

int64_t Session::append(std::span<const TokenId> tokens, const CancelToken* cancel) {
  return state_->idle().append(tokens, cancel);
}
void Session::append(
    std::span<const TokenId> tokens,
    const std::function<void(int64_t position, std::span<const float> logits)>& look) {
  state_->idle().append(tokens, nullptr, look);
}
int64_t Session::assign(std::span<const TokenId> tokens, const CancelToken* cancel) {
  return state_->idle().assign(tokens, cancel);
}
void Session::truncate(int64_t n) { state_->idle().truncate(n); }
int64_t Session::shift(int64_t n_keep) { return state_->idle().shift(n_keep); }

std::span<const float> Session::logits() const {
  LIMPID_CHECK(
      ArgumentError, !state_->logits.empty(),
      "[session] there are no logits: no token was evaluated since the start or the last truncate");
  return state_->logits;
}

TextStream Session::generate(const GenerationOptions& options) {
  logits();  // throws when there is nothing to continue
  return TextStream(std::make_unique<SessionStream>(state_, Prompt(), options));
}

TextStream Session::generate(std::string_view prompt, const GenerationOptions& options) {
  std::vector<TokenId> ids = state_->model.encode(prompt);
  LIMPID_CHECK(ArgumentError, !ids.empty(),
               "[session] the prompt is empty and the model has no BOS token to begin with");
  return TextStream(std::make_unique<SessionStream>(state_, Prompt{std::move(ids)}, options));
}

const std::shared_ptr<Session::State>& state_of(const Session& session) { return session.state_; }

}  // namespace limpid
