#include <algorithm>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>

#include "base/check.h"
#include "generate/continuation.h"
#include "generate/session_stream.h"
#include "server/generation_service.h"

namespace limpid {
namespace {

class SessionService final : public GenerationService {
 public:
  SessionService(LanguageModel model, size_t max_queued)
      : session_(std::move(model)), max_queued_(max_queued), thread_([this] { work(); }) {}

  ~SessionService() override {
    {
      const std::lock_guard lock(mutex_);
      is_ending_ = true;
      if (running_) cancel_all(running_->request);
    }
    changed_.notify_one();
    thread_.join();
  }

  Id submit(GenerationRequest request) override {
    const LanguageModel& model = session_.model();
    for (const GenerationOptions& options : request.choices) {
      const Continuation checked(*engine_of(model), options);  // throws for options out of range
      const auto n_prompt = std::ssize(request.prompt);
      if (n_prompt > session_.n_ctx())
        throw ContextOverflowError(n_prompt, session_.n_ctx(),
                                   context_needed(n_prompt, options.n_predict));
    }
    const std::lock_guard lock(mutex_);
    if (queue_.size() >= max_queued_) throw QueueFullError("the queue is full");
    const auto after = std::find_if(queue_.begin(), queue_.end(), [&](const Entry& entry) {
      return entry.request.priority < request.priority;
    });
    queue_.insert(after, {++last_id_, std::move(request)});
    changed_.notify_one();
    return last_id_;
  }

  void cancel(Id id) override {
    const std::lock_guard lock(mutex_);
    if (running_ && running_->id == id) cancel_all(running_->request);
    for (const Entry& entry : queue_) {
      if (entry.id == id) cancel_all(entry.request);
    }
  }

  int64_t n_queued() const override {
    const std::lock_guard lock(mutex_);
    return std::ssize(queue_);
  }
  int64_t n_running() const override {
    const std::lock_guard lock(mutex_);
    return running_ ? 1 : 0;
  }

 private:
  struct Entry {
    Id id = 0;
    GenerationRequest request;
  };

  static void cancel_all(const GenerationRequest& request) {
    for (const GenerationOptions& options : request.choices) options.cancel.cancel();
  }

  void work() {
    while (const auto request = next()) {
      if (request->on_start) request->on_start();
      for (size_t choice = 0; choice < request->choices.size(); ++choice)
        run_choice(*request, choice);
      const std::lock_guard lock(mutex_);
      running_.reset();
    }
  }

  // The request that is to run now; null at the end.
  GenerationRequest* next() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return is_ending_ || !queue_.empty(); });
    if (is_ending_) return nullptr;
    running_ = std::make_unique<Entry>(std::move(queue_.front()));
    queue_.pop_front();
    return &running_->request;
  }

  void run_choice(GenerationRequest& request, size_t choice) {
    const GenerationOptions& options = request.choices[choice];
    GenerationResult result;
    if (options.cancel.cancelled()) {
      result.stop_reason = StopReason::kCancelled;
      return request.on_end(choice, result, nullptr);
    }
    std::exception_ptr problem;
    try {
      SessionStream stream(state_of(session_), Prompt{request.prompt}, options);
      size_t n_told = 0;
      try {
        while (const auto piece = stream.next()) {
          const GenerationResult& so_far = stream.result();
          const auto n_logprobs = std::min(n_told, so_far.logprobs.size());
          request.on_token({choice, *piece, std::span(so_far.ids).subspan(n_told),
                            std::span(so_far.logprobs).subspan(n_logprobs)});
          n_told = so_far.ids.size();
        }
      } catch (...) {
        problem = std::current_exception();
      }
      result = stream.result();
    } catch (...) {
      problem = std::current_exception();
    }
    request.on_end(choice, result, problem);
  }

  Session session_;
  const size_t max_queued_;
  mutable std::mutex mutex_;  // guards what follows, but not what `running_` points to
  std::condition_variable changed_;
  std::deque<Entry> queue_;
  std::unique_ptr<Entry> running_;
  Id last_id_ = 0;
  bool is_ending_ = false;
  std::thread thread_;
};

}  // namespace

std::unique_ptr<GenerationService> make_session_service(LanguageModel model, size_t max_queued) {
  return std::make_unique<SessionService>(std::move(model), max_queued);
}

}  // namespace limpid
