#include "generate/session_stream.h"

#include "base/stopwatch.h"

namespace limpid {

// Borrows the session last: a stream that cannot be made has borrowed nothing.
SessionStream::SessionStream(std::shared_ptr<Session::State> session, Prompt prompt,
                             const GenerationOptions& options, ShortenPrompt shorten, OnEnd on_end)
    : session_(std::move(session)),
      prompt_(std::move(prompt.ids)),
      shorten_(std::move(shorten)),
      on_end_(std::move(on_end)),
      continuation_(session_->idle().engine(), options) {
  session_->check_new(prompt_, 0, options.n_predict);
  continuation_.set_prompt(std::ssize(prompt_), prompt.n_dropped_messages);
  session_->is_lent = true;
}

void SessionStream::end() {
  if (!std::exchange(is_open_, false)) return;
  session_->is_lent = false;
  if (on_end_) on_end_(result());
}

// Fewer tokens than asked for means that the work was cancelled in between.
int64_t SessionStream::assign(std::span<const TokenId> tokens) {
  const int64_t n_kept = session_->assign(tokens, &continuation_.options().cancel);
  if (session_->tokens().size() < tokens.size()) continuation_.finish(StopReason::kCancelled);
  return n_kept;
}

void SessionStream::evaluate_prompt() {
  begun_ = true;
  auto& timings = continuation_.timings();
  const Stopwatch stopwatch;
  if (!prompt_.empty()) {
    timings.n_reused = assign(prompt_);
    timings.n_prompt = std::ssize(session_->tokens()) - timings.n_reused;
  }
  const auto evaluated = session_->tokens();
  std::vector<TokenId> sequence(evaluated.begin(), evaluated.end());
  if (const auto pending = session_->pending()) sequence.push_back(*pending);
  continuation_.begin(sequence);
  timings.prompt_seconds += stopwatch.seconds();
}

// A full context has three ways out. A chat can shorten its prompt: the new prompt and the sampled
// tokens replace the sequence. The options can ask for a context shift. Otherwise needs_shift()
// ends the answer or throws.
void SessionStream::make_room() {
  const auto n_tokens = std::ssize(session_->tokens());
  if (n_tokens < session_->n_ctx) return;
  const std::vector<TokenId>& sampled = continuation_.result().ids;
  if (auto shorter = shorten_ ? shorten_(std::ssize(sampled)) : std::nullopt) {
    continuation_.set_prompt(std::ssize(shorter->ids), shorter->n_dropped_messages);
    const auto pending = session_->pending();  // the last sampled token, not yet evaluated
    shorter->ids.insert(shorter->ids.end(), sampled.begin(), sampled.end() - 1);
    assign(shorter->ids);
    if (!continuation_.finished()) session_->set_pending(pending);
  } else if (shorten_ && !continuation_.options().context_shift) {
    continuation_.finish(StopReason::kLength);  // a chat of which only the last turn is left
  } else if (continuation_.needs_shift(n_tokens, session_->n_ctx)) {
    session_->shift(continuation_.n_keep(), &continuation_.options().cancel);
    if (!session_->pending()) continuation_.finish(StopReason::kCancelled);
  }
}

// One token: evaluates the last sampled one, if there is one, and samples the next from its logits.
void SessionStream::evaluate_and_sample() {
  if (session_->pending()) {
    make_room();
    if (continuation_.finished()) return;
    session_->evaluate_pending(continuation_.n_best());
  }
  const std::span<const Candidate> best = session_->best();
  session_->set_pending(
      continuation_.next(best.empty() ? StepRow{session_->logits(), {}} : StepRow{{}, best}));
}

// Works until some text is ready. A token may give none, for instance when it has only a part of a
// character or may begin a stop string.
void SessionStream::advance() {
  if (!begun_) evaluate_prompt();
  piece_ = continuation_.take_text();
  while (piece_.empty() && !continuation_.finished()) {
    if (continuation_.options().cancel.cancelled()) {
      continuation_.finish(StopReason::kCancelled);
    } else {
      const Stopwatch stopwatch;
      evaluate_and_sample();
      continuation_.timings().generation_seconds += stopwatch.seconds();
    }
    piece_ = continuation_.take_text();
  }
}

// However the stream ends, the session can be used again.
std::optional<std::string_view> SessionStream::next() {
  if (!is_open_) return std::nullopt;
  session_->engine().scheduler().refuse_callback();
  try {
    advance();
  } catch (...) {
    end();
    throw;
  }
  if (continuation_.finished()) end();
  if (piece_.empty()) return std::nullopt;
  return piece_;
}

void SessionStream::stop() {
  continuation_.finish(StopReason::kCancelled);
  on_end_ = {};
  end();
}

TextStream::TextStream(std::unique_ptr<SessionStream> source) : source_(std::move(source)) {}
TextStream::TextStream(TextStream&&) noexcept = default;
TextStream& TextStream::operator=(TextStream&&) noexcept = default;
TextStream::~TextStream() = default;

std::optional<std::string_view> TextStream::next() { return source_->next(); }

const GenerationResult& TextStream::result() {
  while (source_->next()) {
  }
  return source_->result();
}

const GenerationResult& TextStream::so_far() const { return source_->result(); }

}  // namespace limpid
