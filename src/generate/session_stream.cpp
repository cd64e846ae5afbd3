#include "generate/session_stream.h"

#include <chrono>

namespace limpid {
namespace {

// Adds the time from its making to its end.
class Stopwatch {
 public:
  explicit Stopwatch(double& seconds)
      : seconds_(seconds), start_(std::chrono::steady_clock::now()) {}
  ~Stopwatch() {
    seconds_ += std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  }
  Stopwatch(const Stopwatch&) = delete;
  Stopwatch& operator=(const Stopwatch&) = delete;

 private:
  double& seconds_;
  std::chrono::steady_clock::time_point start_;
};

}  // namespace

SessionStream::SessionStream(std::shared_ptr<Session::State> session, std::vector<TokenId> prompt,
                             const GenerationOptions& options)
    : session_(std::move(session)),
      lease_(session_->lend()),
      prompt_(std::move(prompt)),
      continuation_(session_->engine(), options) {
  session_->check_new(prompt_, 0);
}

void SessionStream::evaluate_prompt() {
  begun_ = true;
  auto& timings = continuation_.timings();
  const Stopwatch stopwatch(timings.prompt_seconds);
  if (!prompt_.empty()) {
    const int64_t n_wanted = std::ssize(prompt_);
    timings.n_reused = session_->assign(prompt_, &continuation_.options().cancel);
    timings.n_prompt = std::ssize(session_->tokens) - timings.n_reused;
    if (std::ssize(session_->tokens) < n_wanted) continuation_.finish(StopReason::kCancelled);
  }
  continuation_.begin(session_->tokens);
}

void SessionStream::evaluate_and_sample() {
  const Stopwatch stopwatch(continuation_.timings().generation_seconds);
  if (pending_) {
    if (continuation_.needs_shift(std::ssize(session_->tokens), session_->n_ctx)) {
      session_->shift(continuation_.n_keep());
    }
    if (continuation_.finished()) return;
    session_->append({&*pending_, 1}, nullptr);
  }
  pending_ = continuation_.next(session_->logits);
}

void SessionStream::advance() {
  if (!begun_) evaluate_prompt();
  piece_ = continuation_.take_text();
  while (piece_.empty() && !continuation_.finished()) {
    if (continuation_.options().cancel.cancelled()) {
      continuation_.finish(StopReason::kCancelled);
    } else {
      evaluate_and_sample();
    }
    piece_ = continuation_.take_text();
  }
}

std::optional<std::string_view> SessionStream::next() {
  if (ended()) return std::nullopt;
  try {
    advance();
  } catch (...) {
    lease_.reset();
    throw;
  }
  if (continuation_.finished()) lease_.reset();
  if (piece_.empty()) return std::nullopt;
  return piece_;
}

void SessionStream::stop() {
  continuation_.finish(StopReason::kCancelled);
  lease_.reset();
}

TextStream::TextStream(std::unique_ptr<Source> source) : source_(std::move(source)) {}
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
