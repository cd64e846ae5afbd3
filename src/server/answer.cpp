// One request, seen in time. The left side runs on a thread of the HTTP server, the right side on
// the engine's thread.
//
//   answer()                      start()         the request leaves the queue: the stream begins
//     submit() for each prompt    progress()      a part of the prompt is evaluated
//     returns                     token()         some text is ready
//                                 choice_end()    one of the choices is complete
//
// Every callback goes through AnswerInProgress, which asks the AnswerShape for the JSON of its API
// and hands the bytes to the HttpReply. So an API says only what its answers look like, and the
// order of events, the failures and the counts are the same for all APIs.
#include "server/answer.h"

#include <fmt/format.h>

#include <algorithm>
#include <mutex>

#include "base/stopwatch.h"
#include "server/api.h"

namespace limpid {
namespace {

// Each answer has copies of its prompt and of the biases from the start, before it runs.
constexpr size_t kMostAnswers = 512;

// One request under way. It belongs to the callbacks that the service holds. They come on the
// engine's thread; the mutex is there because submit() may fail on a thread of the HTTP server
// while choices that were submitted before already answer.
class AnswerInProgress {
 public:
  AnswerInProgress(const ApiCall& call, std::unique_ptr<AnswerShape> shape,
                   const RequestSettings& settings,
                   const std::vector<std::vector<TokenId>>& prompts)
      : served_(call.loan),
        shape_(std::move(shape)),
        reply_(call.reply),
        metrics_(*served_->metrics),
        stream_(settings.stream),
        n_each_(static_cast<size_t>(settings.n_choices)),
        n_left_(prompts.size() * n_each_),
        since_prompt_(n_left_),
        since_token_(n_left_),
        prompt_told_(n_left_, 0) {
    results_.choices.resize(n_left_);
    results_.prompts.resize(prompts.size());
    for (const auto& prompt : prompts) results_.n_prompt_tokens += std::ssize(prompt);
  }

  // Ends all choices.
  const CancelToken& cancel_token() const { return cancel_; }

  void start(size_t choice, int64_t slot) {
    const std::lock_guard lock(mutex_);
    shape_->slot(choice, slot);
    if (std::exchange(has_started_, true)) return;
    metrics_.queue_seconds.observe(since_submitted_.seconds());
    if (!stream_) return;
    reply_->begin_stream({200, shape_->content_type(), "", {{"Cache-Control", "no-cache"}}});
    reply_->write(shape_->begin(results_.n_prompt_tokens));
  }

  void prompt_token(size_t prompt, const TokenLogprobs& token) {
    const std::lock_guard lock(mutex_);
    results_.prompts[prompt].push_back(token);
  }

  void progress(PromptProgress progress) {
    const std::lock_guard lock(mutex_);
    Stopwatch& since_prompt = since_prompt_[progress.choice];
    if (progress.n_done == progress.n_found) since_prompt = {};
    if (progress.n_done > progress.n_found) progress.seconds = since_prompt.seconds();
    if (stream_ && !has_failed_) reply_->write(shape_->progress(progress));
  }

  void token(const TokenEvent& event) {
    const std::lock_guard lock(mutex_);
    count_time(event);
    if (!stream_ || has_failed_) return;
    tell_prompt(event.choice);
    reply_->write(shape_->token(event));
  }

  // The whole answer may need more memory than there is. Nobody above could tell the client.
  void choice_end(const TokenEvent& rest, const GenerationResult& result,
                  const std::exception_ptr& error) {
    const std::lock_guard lock(mutex_);
    try {
      end_choice(rest, result, error);
    } catch (...) {
      tell_failure(as_api_error(std::current_exception()));
    }
  }

  // The client has gone, or the server ends. Then the stream ends with an error, which has to come
  // before the ends of the cancelled choices.
  void leave() {
    const std::lock_guard lock(mutex_);
    cancel_.cancel();  // first: the rest may throw
    reply_->write(shape_->failure({503, "the server is shutting down"}));
    reply_->end();
  }

  void fail(const std::exception_ptr& error) {
    const std::lock_guard lock(mutex_);
    tell_failure(as_api_error(error, shape_->prompt_field()));
  }

 private:
  void end_choice(const TokenEvent& rest, const GenerationResult& result,
                  const std::exception_ptr& error) {
    count(rest.choice, result);
    if (error) tell_failure(as_api_error(error));
    if (!has_failed_ && stream_) {
      tell_prompt(rest.choice);
      reply_->write(shape_->choice_end(rest, result));
    }
    results_.choices[rest.choice] = result;
    if (--n_left_ > 0 || has_failed_) return;
    if (stream_) {
      reply_->write(shape_->end(results_));
      reply_->end();
    } else {
      reply_->send({200, "application/json", dump_json(shape_->whole(results_))});
    }
  }

  // An event may bring several tokens, which a character was made of: each took its share.
  void count_time(const TokenEvent& event) {
    if (!std::exchange(has_token_, true))
      metrics_.first_token_seconds.observe(since_submitted_.seconds());
    const auto since_last = std::exchange(since_token_[event.choice], Stopwatch());
    if (!since_last) return;
    const double seconds = since_last->seconds();
    for (size_t i = 0; i < event.ids.size(); ++i)
      metrics_.token_seconds.observe(seconds / static_cast<double>(event.ids.size()));
  }

  // Once for each choice, when its prompt is complete.
  void tell_prompt(size_t choice) {
    if (std::exchange(prompt_told_[choice], char{1})) return;
    const std::vector<TokenLogprobs>& tokens = results_.prompts[choice / n_each_];
    if (!tokens.empty()) reply_->write(shape_->prompt(choice, tokens));
  }

  // Each prompt is reported to the client once: its other choices find what the first one
  // evaluated.
  void count(size_t choice, const GenerationResult& result) {
    const GenerationTimings& timings = result.timings;
    if (choice % n_each_ == 0) results_.n_cached_tokens += timings.n_reused;
    results_.n_generated += timings.n_generated;
    const bool was_left = result.stop_reason == StopReason::kCancelled && !has_failed_;
    if (was_left && !std::exchange(was_left_, true)) metrics_.n_cancelled += 1;
    if (timings.n_prompt + timings.n_reused == 0) return;  // it ended before its first token
    metrics_.add(timings);
  }

  // Nothing follows a failure, so the other choices end too.
  void tell_failure(const ApiError& error) {
    if (std::exchange(has_failed_, true)) return;
    cancel_.cancel();
    metrics_.n_failed += 1;
    if (stream_ && has_started_) {
      reply_->log_failure(error.reason);
      reply_->write(shape_->failure(error));
      reply_->end();
    } else {
      send_error(*reply_, shape_->style(), error);
    }
  }

  const std::shared_ptr<const ServedModel> served_;  // first: the others refer to it
  const std::unique_ptr<AnswerShape> shape_;
  const std::shared_ptr<HttpReply> reply_;
  Metrics& metrics_;
  const bool stream_;
  const size_t n_each_;  // choices of a prompt
  const CancelToken cancel_;
  const Stopwatch since_submitted_;
  std::mutex mutex_;  // guards what follows
  bool has_started_ = false, has_token_ = false, has_failed_ = false, was_left_ = false;
  size_t n_left_;  // choices that have not ended
  // Of each choice:
  std::vector<Stopwatch> since_prompt_;                // since the evaluation of its prompt began
  std::vector<std::optional<Stopwatch>> since_token_;  // the last one
  std::vector<char> prompt_told_;
  AnswerResults results_;
};

// Room for the answer ends where the context does: the answer is then cut, and not an error.
// Example: a context of 2,048 tokens and a prompt of 2,000 leave 48 tokens, whatever `max_tokens`
// says. With context_shift the oldest tokens make room, so the context sets no limit, except to an
// answer that is to end when the context is full.
int64_t n_predict_within(const GenerationOptions& options, int64_t n_room) {
  const bool fills_context = options.n_predict == GenerationOptions::kUntilContextIsFull;
  if (options.context_shift && !fills_context) return options.n_predict;
  const int64_t n_most = std::max<int64_t>(n_room, 1);
  return options.n_predict < 0 ? n_most : std::min(options.n_predict, n_most);
}

// Each choice has a seed of its own: with one seed for all, n choices would be n times the same
// text. The largest seed is followed by 0.
std::vector<GenerationOptions> options_of_choices(const RequestSettings& settings, int64_t n_room,
                                                  const CancelToken& cancel) {
  std::vector<GenerationOptions> choices;
  for (int64_t i = 0; i < settings.n_choices; ++i) {
    GenerationOptions options = settings.generation;
    options.cancel = cancel;
    options.n_predict = n_predict_within(options, n_room);
    int64_t& seed = options.sampler.seed;
    if (seed >= 0) {
      const uint64_t next = static_cast<uint64_t>(seed) + static_cast<uint64_t>(i);
      seed = static_cast<int64_t>(next & INT64_MAX);
    }
    choices.push_back(std::move(options));
  }
  return choices;
}

}  // namespace

// JSON in one line has no line break, which would need another "data:".
std::string sse_event(const Json& data) { return "data: " + dump_json(data) + "\n\n"; }

std::string sse_event(std::string_view type, const Json& members) {
  Json data = {{"type", type}};
  data.update(members);
  return "event: " + std::string(type) + "\n" + sse_event(data);
}

void answer(const ApiCall& call, const RequestSettings& settings,
            std::vector<std::vector<TokenId>> prompts, std::unique_ptr<AnswerShape> shape) {
  const ServedModel& served = call.served;
  if (const auto& log = call.api.options().log_prompt) {
    for (const auto& prompt : prompts) log(served.name, served.model.decode(prompt, true));
  }
  const auto n_each = static_cast<size_t>(settings.n_choices);
  if (prompts.size() * n_each > kMostAnswers)
    throw ApiError(
        400,
        fmt::format("n is {}, and there are {} prompts: a request has at most {} answers", n_each,
                    prompts.size(), kMostAnswers),
        "n");
  const std::shared_ptr<const AdapterMix> mix = adapter_mix(served, settings);
  served.metrics->n_requests += 1;
  const auto progress =
      std::make_shared<AnswerInProgress>(call, std::move(shape), settings, prompts);
  try {
    QueuePlace place = served.service->take_place();
    for (size_t i = 0; i < prompts.size(); ++i) {
      const size_t first = i * n_each;
      GenerationRequest request;
      request.place = i + 1 < prompts.size() ? place : std::move(place);
      request.choices = options_of_choices(settings, served.n_ctx() - std::ssize(prompts[i]),
                                           progress->cancel_token());
      request.prompt = std::move(prompts[i]);
      request.mix = mix;
      request.slot = settings.slot;
      request.on_start = [progress, first](int64_t slot) { progress->start(first, slot); };
      if (settings.wants_prompt_logprobs()) {
        request.on_prompt_token = [progress, i](const TokenLogprobs& token) {
          progress->prompt_token(i, token);
        };
      }
      if (settings.stream && settings.return_progress) {
        request.on_prompt = [progress, first, n_total = std::ssize(request.prompt)](
                                int64_t n_done, int64_t n_found) {
          progress->progress({first, n_total, n_found, n_done});
        };
      }
      request.on_token = [progress, first](TokenEvent event) {
        event.choice += first;
        progress->token(event);
      };
      request.on_end = [progress, first](TokenEvent rest, const GenerationResult& result,
                                         const std::exception_ptr& error) {
        rest.choice += first;
        progress->choice_end(rest, result, error);
      };
      served.service->submit(std::move(request));
    }
  } catch (...) {
    return progress->fail(std::current_exception());
  }
  call.reply->on_gone([progress] { progress->leave(); });
}

}  // namespace limpid
