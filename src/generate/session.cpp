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
  keeps_blocks_ = true;
  engine().scheduler().reserve(n_ctx);
}

Session::State::~State() {
  engine().scheduler().remove(*this);
  engine().scheduler().unreserve(n_ctx);
}

Session::State& Session::State::idle() {
  engine().scheduler().refuse_callback();
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

std::optional<TokenId> Session::State::pending() const {
  if (std::ssize(tokens_) == n_stored_) return std::nullopt;
  return tokens_.back();
}

void Session::State::set_pending(std::optional<TokenId> token) {
  tokens_.resize(static_cast<size_t>(n_stored_));
  if (token) tokens_.push_back(*token);
}

void Session::State::evaluate_pending(int64_t n_best) {
  if (pending()) evaluate(std::ssize(tokens_), nullptr, {}, n_best);
}

// The same bits come out again, whatever the step.
std::span<const float> Session::State::logits() {
  if (!logits_.empty() || n_stored_ == 0) return logits_;
  engine().scheduler().refuse_callback();
  const auto still_pending = pending();
  const TokenId last = tokens().back();
  truncate(n_stored_ - 1);
  append({&last, 1}, nullptr);
  set_pending(still_pending);
  return logits_;
}

void Session::State::forget_logits() {
  logits_.clear();
  best_.clear();
}

void Session::State::on_row(int64_t position, const StepRow& row) {
  if (position + 1 == n_wanted_) {
    logits_.assign(row.whole.begin(), row.whole.end());
    best_.assign(row.best.begin(), row.best.end());
  }
  if (*look_ && position >= first_row_) (*look_)(position, row.whole);
}

void Session::State::evaluate(int64_t n_fixed, const CancelToken* cancel, const LookAtLogits& look,
                              int64_t n_best) {
  const int64_t n_before = n_stored_;
  cancel_ = cancel;
  look_ = &look;
  n_best_ = n_best;
  first_row_ = look ? n_fixed : kNoRows;
  n_wanted_ = std::ssize(tokens_);
  n_adopted_ = 0;
  const std::shared_ptr<Task> self = shared_from_this();
  try {
    engine().scheduler().run({&self, 1});
  } catch (...) {
    error_ = std::current_exception();
  }
  const std::exception_ptr error = std::exchange(error_, nullptr);
  if (n_stored_ == std::ssize(tokens_) && !error) return;
  if (n_stored_ > n_before) forget_logits();
  tokens_.resize(static_cast<size_t>(std::max(n_fixed, n_stored_)));
  if (error) std::rethrow_exception(error);
}

// With `look`, each of the new tokens gets its logits.
int64_t Session::State::append(std::span<const TokenId> new_tokens, const CancelToken* cancel,
                               const LookAtLogits& look) {
  const int64_t n_before = std::ssize(tokens_);
  check_new(new_tokens, n_before);
  const std::vector<TokenId> added(new_tokens.begin(), new_tokens.end());  // may be of tokens_
  tokens_.insert(tokens_.end(), added.begin(), added.end());
  evaluate(n_before, cancel, look);
  return std::max<int64_t>(0, n_stored_ - n_before);
}

// Tokens that are already in the cache at the same positions need not be evaluated again. At least
// the last token is evaluated, because its logits are needed.
int64_t Session::State::assign(std::span<const TokenId> wanted, const CancelToken* cancel) {
  LIMPID_CHECK(ArgumentError, !wanted.empty(), "[session] the new sequence has no tokens");
  check_new(wanted, 0);
  set_pending(std::nullopt);
  const auto differ = std::ranges::mismatch(tokens_, wanted);
  int64_t n_kept = differ.in1 - tokens_.begin();
  const bool nothing_to_do =
      n_kept == std::ssize(wanted) && n_kept == std::ssize(tokens_) && !logits_.empty();
  if (nothing_to_do) return n_kept;
  n_kept = std::min(n_kept, std::ssize(wanted) - 1);
  const std::vector<TokenId> left(wanted.begin() + n_kept, wanted.end());  // may be of tokens_
  truncate(n_kept);
  append(left, cancel);
  return n_kept + n_adopted_;
}

// The pending token follows the evaluated tokens, so it is forgotten when none may follow them.
void Session::State::truncate(int64_t n) {
  LIMPID_CHECK(ArgumentError, n >= 0, "[session] cannot truncate to {} tokens", n);
  if (n <= n_stored_) set_pending(std::nullopt);
  if (n >= n_stored_) return;
  n_stored_ = n_wanted_ = n;
  tokens_.resize(static_cast<size_t>(n));
  forget_logits();
}

// The tokens after the kept ones move to other positions. Their keys hold rotary angles of the old
// positions, so they are evaluated again; the result is then the same as for a fresh prompt.
int64_t Session::State::shift(int64_t n_keep, const CancelToken* cancel) {
  const std::vector<TokenId> left = shifted(tokens(), n_keep);
  const int64_t n_dropped = n_stored_ - std::ssize(left);
  const auto still_pending = pending();
  truncate(std::clamp<int64_t>(n_keep, 0, std::ssize(left)));
  append(std::span(left).subspan(tokens_.size()), cancel);
  if (n_stored_ == std::ssize(left)) set_pending(still_pending);
  return n_dropped;
}

Session::Session(LanguageModel model, const SessionOptions& options)
    : state_(std::make_shared<State>(std::move(model), options)) {}
Session::Session(Session&&) noexcept = default;
Session& Session::operator=(Session&&) noexcept = default;
Session::~Session() = default;

const LanguageModel& Session::model() const { return state_->model; }
int64_t Session::n_ctx() const { return state_->n_ctx; }
std::span<const TokenId> Session::tokens() const { return state_->tokens(); }

int64_t Session::append(std::span<const TokenId> tokens, const CancelToken* cancel) {
  return state_->idle().append(tokens, cancel);
}
void Session::append(
    std::span<const TokenId> tokens,
    const std::function<void(int64_t position, std::span<const float> logits)>& look) {
  const std::shared_ptr<State> state = state_;  // `look` may destroy this session
  state->idle().append(tokens, nullptr, look);
}
int64_t Session::assign(std::span<const TokenId> tokens, const CancelToken* cancel) {
  return state_->idle().assign(tokens, cancel);
}
void Session::truncate(int64_t n) { state_->idle().truncate(n); }
int64_t Session::shift(int64_t n_keep, const CancelToken* cancel) {
  return state_->idle().shift(n_keep, cancel);
}

std::span<const float> Session::logits() const {
  const std::span<const float> logits = state_->logits();
  LIMPID_CHECK(ArgumentError, !logits.empty(), "[session] no logits: the session has no tokens");
  return logits;
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
