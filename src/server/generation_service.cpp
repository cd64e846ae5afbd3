#include "server/generation_service.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/check.h"
#include "base/system_limits.h"
#include "generate/engine.h"
#include "generate/generation_task.h"
#include "generate/prefix_file.h"

namespace limpid {
namespace {

constexpr size_t kMostJobs = 8;  // besides the one in progress
constexpr std::chrono::minutes kTrimEvery{1};

}  // namespace

// The choices of a prompt. The first one evaluates the prompt; the others start when that is done,
// and find its blocks in the cache. So n choices cost one evaluation of the prompt, not n.
//
// The scheduler knows tasks, and the service knows requests: this class connects the two. A
// request counts as running from the start of its first choice to the end of its last one.
class GenerationService::RunningGeneration {
 public:
  RunningGeneration(GenerationService& service, GenerationRequest request)
      : service_(service),
        engine_(*engine_of(service.model_)),
        request_(std::move(request)),
        told_(request_.choices.size()),
        n_left_(request_.choices.size()) {}

  // Throws for options out of range and for a prompt that does not fit.
  void make_tasks(const std::shared_ptr<RunningGeneration>& self) {
    for (size_t choice = 0; choice < request_.choices.size(); ++choice) {
      GenerationTask::Listener listener;
      listener.on_start = [self] { self->start(); };
      if (choice == 0) listener.on_prompt_token = request_.on_prompt_token;
      if (choice == 0) listener.on_prompt = request_.on_prompt;
      listener.on_token = [self, choice](std::string_view piece, const GenerationResult& so_far) {
        self->token(choice, piece, so_far);
      };
      listener.on_end = [self, choice](const GenerationResult& result, std::exception_ptr error) {
        self->end(choice, result, std::move(error));
      };
      tasks_.push_back(std::make_shared<GenerationTask>(engine_, request_.prompt,
                                                        request_.choices[choice], service_.n_ctx(),
                                                        std::move(listener), request_.mix));
    }
  }

  // The tasks' listeners hold this object, which holds the tasks.
  void drop_tasks() { tasks_.clear(); }

  void begin(Id id) {
    id_ = id;
    engine_.scheduler().submit(tasks_.front());
  }
  void cancel() {
    for (const GenerationOptions& options : request_.choices) options.cancel.cancel();
  }

 private:
  void start() {
    if (std::exchange(has_started_, true)) return;
    const int64_t slot = service_.take_slot(id_, request_.slot);
    if (request_.on_start) request_.on_start(slot);
  }

  void begin_others() {
    if (std::exchange(others_begun_, true)) return;
    for (size_t i = 1; i < tasks_.size(); ++i) engine_.scheduler().submit(tasks_[i]);
  }

  void token(size_t choice, std::string_view piece, const GenerationResult& so_far) {
    begin_others();
    if (!piece.empty()) request_.on_token(next_event(choice, piece, so_far));
  }

  // What no event before had.
  TokenEvent next_event(size_t choice, std::string_view text, const GenerationResult& result) {
    const Told before = std::exchange(told_[choice], {result.ids.size(), result.logprobs.size()});
    return {choice, text, std::span(result.ids).subspan(before.n_ids),
            std::span(result.logprobs).subspan(before.n_logprobs)};
  }

  // The slot and the place are free before the client hears of the end: it may save the slot, or
  // ask again, at once. A request that is cancelled in the queue gets no slot: it would replace the
  // slot's text by its own, which was never evaluated.
  void end(size_t choice, const GenerationResult& result, std::exception_ptr error) {
    // It goes with what it knows of its grammar, up to 12 MB.
    const std::shared_ptr<GenerationTask> ended = std::move(tasks_[choice]);
    if (!std::exchange(has_started_, true) && request_.on_start) request_.on_start(-1);
    begin_others();
    if (choice == 0) ids_ = result.ids;
    const bool is_last = --n_left_ == 0;
    if (is_last) {
      std::vector<TokenId> tokens = std::move(request_.prompt);
      tokens.insert(tokens.end(), ids_.begin(), ids_.end());
      service_.end(id_, std::move(tokens), request_.mix != nullptr);
      request_.place.reset();
    }
    request_.on_end(next_event(choice, "", result), result, std::move(error));
  }

  struct Told {
    size_t n_ids = 0, n_logprobs = 0;
  };

  GenerationService& service_;
  Engine& engine_;
  GenerationRequest request_;
  Id id_ = 0;
  std::vector<std::shared_ptr<GenerationTask>> tasks_;
  std::vector<Told> told_;    // of each choice
  size_t n_left_;             // choices that have not ended
  std::vector<TokenId> ids_;  // of the first choice
  bool has_started_ = false;
  bool others_begun_ = false;
};

GenerationService::GenerationService(LanguageModel model, const ServiceOptions& options)
    : model_(std::move(model)), options_(options), slots_(static_cast<size_t>(options.n_parallel)) {
  Scheduler& scheduler = engine_of(model_)->scheduler();
  scheduler.reserve(options.n_positions > 0 ? options.n_positions : n_ctx());
  scheduler.set_limits(options.n_parallel, options.most_slowdown);
  thread_ = std::thread([this] { work(); });
}

GenerationService::~GenerationService() {
  {
    const std::lock_guard lock(mutex_);
    is_ending_ = true;
    for (const auto& [id, cancel] : cancels_) cancel();
  }
  wake();
  thread_.join();
}

// The only thread that ticks. A tick may find new work, and so may a job, so it sleeps only when
// both had nothing to do. `has_work_` is set under the mutex by wake(): work that comes between the
// last tick and the wait is not missed.
//
// malloc keeps what requests have freed. At most once a minute, and while nothing runs, the free
// pages go back to the system.
void GenerationService::work() {
  using Clock = std::chrono::steady_clock;
  Scheduler& scheduler = engine_of(model_)->scheduler();
  auto trim_at = Clock::now() + kTrimEvery;
  while (true) {
    const bool has_ticked = scheduler.tick();
    if (advance_job() || has_ticked) continue;
    std::unique_lock lock(mutex_);
    const auto is_over = [this] { return is_ending_ && cancels_.empty(); };
    const auto has_more = [&] { return has_work_ || is_over(); };
    if (is_over()) return;
    if (!submitted_.wait_until(lock, trim_at, has_more)) {
      lock.unlock();
      return_free_memory();
      trim_at = Clock::now() + kTrimEvery;
      lock.lock();
      submitted_.wait(lock, has_more);
    }
    has_work_ = false;
  }
}

bool GenerationService::advance_job() {
  std::function<bool()> job;
  {
    const std::lock_guard lock(mutex_);
    if (is_ending_) jobs_.clear();
    if (jobs_.empty()) return false;
    job = std::move(jobs_.front());
    jobs_.pop_front();
  }
  bool is_over = false;
  engine_of(model_)->scheduler().with_cache([&](KvCache& /*cache*/) { is_over = !job(); });
  if (is_over) return true;
  const std::lock_guard lock(mutex_);
  jobs_.push_back(std::move(job));
  return true;
}

void GenerationService::submit(std::function<bool()> advance) {
  {
    const std::lock_guard lock(mutex_);
    if (is_ending_ || jobs_.size() >= kMostJobs) throw QueueFullError("the queue is full");
    jobs_.push_back(std::move(advance));
  }
  wake();
}

void GenerationService::wake() {
  {
    const std::lock_guard lock(mutex_);
    has_work_ = true;
  }
  submitted_.notify_one();
}

// The queue has a bound: requests that wait cost memory, and a client that is refused at once can
// ask another server. A request that could run at once does not count as waiting: with 32 at a time
// and 256 places in the queue, the 289th request is refused.
QueuePlace GenerationService::take_place() {
  const int64_t n = ++n_places_;
  QueuePlace place(this, [this](const void*) { --n_places_; });
  if (n > options_.n_parallel + options_.n_queued) throw QueueFullError("the queue is full");
  return place;
}

GenerationService::Id GenerationService::add(std::function<void()> cancel) {
  const std::lock_guard lock(mutex_);
  if (is_ending_) throw QueueFullError("the queue is full");
  cancels_[++last_id_] = std::move(cancel);
  return last_id_;
}

void GenerationService::submit(GenerationRequest request) {
  const auto running = std::make_shared<RunningGeneration>(*this, std::move(request));
  const Id id = add([running] { running->cancel(); });
  try {
    running->make_tasks(running);
  } catch (...) {
    running->drop_tasks();
    end(id, {}, false);
    throw;
  }
  running->begin(id);
  wake();
}

void GenerationService::submit(EmbeddingRequest request) {
  if (std::ssize(request.tokens) > n_ctx())
    throw ContextOverflowError(std::ssize(request.tokens), n_ctx());
  const Id id = add([cancel = request.cancel] { cancel.cancel(); });
  auto on_end = [this, id, tell = std::move(request.on_end), place = std::move(request.place)](
                    std::span<const float> embedding, std::exception_ptr error) mutable {
    place.reset();
    end(id, {}, false);
    tell(embedding, std::move(error));
  };
  try {
    Engine& engine = *engine_of(model_);
    engine.scheduler().submit(std::make_shared<EmbeddingTask>(
        engine, std::move(request.tokens), request.pooling, request.normalize, request.cancel,
        std::move(on_end), std::move(request.mix)));
  } catch (...) {
    end(id, {}, false);
    throw;
  }
  wake();
}

Scheduler::Usage GenerationService::usage() const { return engine_of(model_)->scheduler().usage(); }

int64_t GenerationService::n_ctx() const {
  int64_t n = model_.n_ctx();
  if (options_.n_ctx > 0) n = std::min(n, options_.n_ctx);
  if (options_.n_positions > 0) n = std::min(n, options_.n_positions);
  return n;
}

// ---- slots --------------------------------------------------------------------------------------

// The wanted one, or else the first that is free. There may be none, because the scheduler counts
// choices and the slots count requests: a request that has no slot is answered all the same, and
// leaves no text to save.
int64_t GenerationService::take_slot(Id id, int64_t wanted) {
  const std::lock_guard lock(mutex_);
  auto slot = std::ranges::find(slots_, Id{0}, &SlotState::user);
  if (wanted >= 0 && wanted < std::ssize(slots_) && slots_[static_cast<size_t>(wanted)].user == 0)
    slot = slots_.begin() + wanted;
  if (slot == slots_.end()) return -1;
  slot->user = id;
  return slot - slots_.begin();
}

void GenerationService::end(Id id, std::vector<TokenId> tokens, bool has_mix) {
  {
    const std::lock_guard lock(mutex_);
    cancels_.erase(id);
    const auto slot = std::ranges::find(slots_, id, &SlotState::user);
    if (slot != slots_.end()) *slot = {0, std::move(tokens), has_mix};
  }
  wake();
}

std::vector<GenerationService::Slot> GenerationService::slots() const {
  const std::lock_guard lock(mutex_);
  std::vector<Slot> slots;
  for (const SlotState& slot : slots_) slots.push_back({slot.user != 0, std::ssize(slot.tokens)});
  return slots;
}

GenerationService::SlotState GenerationService::idle_slot(size_t slot) const {
  const std::lock_guard lock(mutex_);
  LIMPID_CHECK(ArgumentError, slot < slots_.size(), "there are slots 0 to {}, not {}",
               slots_.size() - 1, slot);
  LIMPID_CHECK(ArgumentError, slots_[slot].user == 0, "slot {} is in use", slot);
  return slots_[slot];
}

void GenerationService::set_tokens(size_t slot, std::vector<TokenId> tokens) {
  const std::lock_guard lock(mutex_);
  slots_[slot].tokens = std::move(tokens);
  slots_[slot].has_mix = false;
}

// A file holds the keys and values of the model as it was opened.
int64_t GenerationService::save_slot(size_t slot, const std::string& path) {
  const SlotState state = idle_slot(slot);
  LIMPID_CHECK(ArgumentError, !state.has_mix,
               "the text of slot {} was evaluated with scales of adapters: it cannot be saved",
               slot);
  return save_prefix(*engine_of(model_), state.tokens, path);
}

int64_t GenerationService::restore_slot(size_t slot, const std::string& path) {
  idle_slot(slot);  // throws
  std::vector<TokenId> tokens = restore_prefix(*engine_of(model_), path);
  const int64_t n_tokens = std::ssize(tokens);
  set_tokens(slot, std::move(tokens));
  return n_tokens;
}

int64_t GenerationService::erase_slot(size_t slot) {
  const int64_t n_tokens = std::ssize(idle_slot(slot).tokens);
  set_tokens(slot, {});
  return n_tokens;
}

}  // namespace limpid
