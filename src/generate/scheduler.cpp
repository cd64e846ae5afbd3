// Which tasks run, and what of them a tick evaluates; scheduler_passes.cpp evaluates it.
#include "generate/scheduler.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace limpid {
namespace {

// Logits are the largest memory of a step: 33 MB for 64 rows of a vocabulary of 128,256.
constexpr int64_t kMostRows = 64;

}  // namespace

void Task::assign_tokens(std::vector<TokenId> tokens) {
  const auto differ = std::ranges::mismatch(tokens_, tokens);
  n_stored_ = std::min(n_stored_, static_cast<int64_t>(differ.in1 - tokens_.begin()));
  tokens_ = std::move(tokens);
  n_wanted_ = std::ssize(tokens_);
}

// ---- from other threads -------------------------------------------------------------------------

// The memory is checked again, because other programs may have taken some since the model was
// opened.
void Scheduler::reserve(int64_t n_positions) {
  const std::lock_guard lock(tick_mutex_);
  const int64_t n_blocks = n_reserved_blocks_ + blocks_for(n_positions);
  if (options_.check_memory) {
    const DecoderSpec& spec = model_.spec();
    const uint64_t wanted =
        cache_ ? cache_->bytes_to_grow(n_blocks * kKvBlock)
               : model_.executor().kv_bytes({spec.n_layers, spec.n_kv_heads, spec.head_dim,
                                             n_blocks, options_.k_dtype, options_.v_dtype});
    const uint64_t available = wanted == 0 ? 0 : model_.executor().available_memory();
    LIMPID_CHECK(
        ResourceError, available == 0 || wanted <= available,
        "a KV cache with room for {} more tokens needs {} MiB, but {} MiB are available: use "
        "a smaller context (OpenOptions::n_ctx) or fewer sequences",
        n_positions, wanted >> 20U, available >> 20U);
  }
  make_cache(n_blocks);
  n_reserved_blocks_ = n_blocks;
  publish_usage();
}

void Scheduler::make_cache(int64_t n_blocks) {
  try {
    if (!cache_) {
      cache_ = model_.make_cache(n_blocks * kKvBlock, options_.k_dtype, options_.v_dtype);
    } else {
      cache_->grow(n_blocks * kKvBlock);
    }
  } catch (const ResourceError& error) {
    throw ResourceError(error.what() + options_.plan_note);
  }
}

void Scheduler::unreserve(int64_t n_positions) noexcept {
  const auto lock = tick_mutex_.lock_once();
  n_reserved_blocks_ -= blocks_for(n_positions);
}

void Scheduler::submit(std::shared_ptr<Task> task) {
  const std::lock_guard lock(submitted_mutex_);
  task->submitted_ = true;
  submitted_.push_back(std::move(task));
}

void Scheduler::run(std::span<const std::shared_ptr<Task>> tasks,
                    const std::function<bool()>& is_enough) {
  const auto is_submitted = [](const auto& task) { return task->submitted_; };
  refuse_callback();
  for (const auto& task : tasks) submit(task);
  while (true) {
    const std::lock_guard lock(tick_mutex_);
    if (std::ranges::none_of(tasks, is_submitted) || (is_enough && is_enough())) return;
    tick_locked();
  }
}

void Scheduler::remove(Task& task) noexcept {
  const auto lock = tick_mutex_.lock_once();
  const std::lock_guard submitted_lock(submitted_mutex_);
  const auto is_it = [&](const std::shared_ptr<Task>& other) { return other.get() == &task; };
  std::erase_if(active_, is_it);
  std::erase_if(submitted_, is_it);
  leave_chunk(task);
  if (task.sequence_) cache_->remove_sequence(*task.sequence_);
  task.sequence_.reset();
  task.n_stored_ = 0;
  task.submitted_ = false;
}

void Scheduler::with_cache(const std::function<void(KvCache& cache)>& use) {
  const std::lock_guard lock(tick_mutex_);
  use(*cache_);
}

Scheduler::Usage Scheduler::usage() const {
  const std::lock_guard lock(submitted_mutex_);
  Usage usage = usage_;
  usage.n_waiting += std::ssize(submitted_);
  return usage;
}

// ---- one tick -----------------------------------------------------------------------------------

bool Scheduler::tick_locked() {
  {
    const std::lock_guard lock(submitted_mutex_);
    std::ranges::move(submitted_, std::back_inserter(active_));
    submitted_.clear();
  }
  stop_cancelled();
  drop_completed();
  if (active_.empty()) {
    publish_usage();
    return usage().n_waiting > 0;  // what the end of a cancelled task has submitted
  }
  admit();
  drop_completed();  // what could not start
  try {
    std::vector<Item> items = answers();
    if (!chunk_) begin_chunk(!items.empty());
    make_room(items);
    evaluate_tick(std::move(items));
  } catch (...) {  // no memory: the end of the last one frees some
    stop(*active_.back(), std::current_exception());
  }
  drop_completed();
  publish_usage();
  return true;
}

void Scheduler::stop_cancelled() {
  for (const auto& task : active_) {
    if (task->is_cancelled()) stop(*task, nullptr);
  }
}

int64_t Scheduler::n_running() const {
  return std::ranges::count_if(active_,
                               [](const auto& task) { return task->sequence_.has_value(); });
}

// In order of arrival, so that small tasks cannot delay a large one without end.
void Scheduler::admit() {
  int64_t n_promised = 0;  // blocks that running tasks will take
  for (const auto& task : active_) {
    try {
      if (!task->sequence_ && !start(*task, n_promised)) return;
      n_promised += n_blocks_to_answer(*task);
    } catch (...) {
      stop(*task, std::current_exception());
    }
  }
}

// A task that starts needs room for its whole prompt and one block to grow into; starting earlier
// would only lead to preemption. The first one always starts, and fails if it does not fit alone.
bool Scheduler::start(Task& task, int64_t n_promised) {
  const bool must_start = task.keeps_blocks_ || n_running() == 0;
  if (!must_start && n_running() >= options_.n_running) return false;
  task.sequence_ = cache_->add_sequence(task.mix_ ? task.mix_->variant : 0);
  adopt_prefix(task);
  if (must_start || n_promised + n_blocks_to_answer(task) <= cache_->n_free_blocks()) {
    task.on_start();
    return true;
  }
  cache_->remove_sequence(*task.sequence_);
  task.sequence_.reset();
  task.n_stored_ = task.n_adopted_ = 0;
  return false;
}

int64_t Scheduler::n_blocks_to_answer(const Task& task) const {
  const auto n_held = std::ssize(cache_->blocks(*task.sequence_));
  const int64_t n_last = std::min(task.n_wanted_ + kKvBlock, task.n_most_);
  return std::max<int64_t>(0, blocks_for(n_last) - n_held);
}

void Scheduler::adopt_prefix(Task& task) {
  const auto n = static_cast<size_t>(std::min(task.n_wanted_, task.first_row_));
  const int64_t n_before = task.n_stored_;
  cache_->truncate(*task.sequence_, n_before);
  task.n_stored_ = cache_->adopt(*task.sequence_, std::span(task.tokens_).first(n));
  task.n_adopted_ += task.n_stored_ - n_before;
}

std::vector<Scheduler::Item> Scheduler::answers() {
  std::vector<Item> items;
  for (const auto& task : active_) {
    if (!task->sequence_ || is_in_chunk(*task)) continue;
    adopt_prefix(*task);
    if (task->n_wanted_ - task->n_stored_ == 1) items.push_back(next_tokens(task, 1));
  }
  return items;
}

std::vector<std::shared_ptr<Task>> Scheduler::prompts() const {
  std::vector<std::shared_ptr<Task>> prompts;
  for (const auto& task : active_) {
    if (task->sequence_ && task->n_wanted_ - task->n_stored_ > 1) prompts.push_back(task);
  }
  std::ranges::stable_sort(prompts, {}, &Task::last_turn_);
  return prompts;
}

// Prompts of one kind share the tokens equally. Where there are not enough for all, they take
// turns:
//
//   5 prompts, 4 tokens: 2 tokens of a and b, then of c and d, then of e and a, …
void Scheduler::begin_chunk(bool has_answers) {
  std::vector<std::shared_ptr<Task>> waiting = prompts();
  if (waiting.empty()) return;
  const auto kind = kind_of(*waiting.front());
  std::erase_if(waiting, [&](const auto& task) { return kind_of(*task) != kind; });
  int64_t n_left = options_.n_batch;
  if (has_answers) {
    int64_t n_waiting = 0;
    for (const auto& task : waiting) n_waiting += task->n_wanted_ - task->n_stored_;
    const double n = speed_.chunk_tokens(options_.most_slowdown, std::min(n_waiting, n_left));
    n_left = std::clamp(static_cast<int64_t>(n), least_prompt_tokens(), n_left);
  }
  ++n_turns_;
  chunk_.emplace();
  for (size_t i = 0; i < waiting.size() && n_left > 0; ++i) {
    const int64_t share = n_left / static_cast<int64_t>(waiting.size() - i);
    chunk_->items.push_back(next_tokens(waiting[i], std::max(least_prompt_tokens(), share)));
    waiting[i]->last_turn_ = n_turns_;
    n_left -= chunk_->items.back().n_tokens;
  }
}

Scheduler::Item Scheduler::next_tokens(const std::shared_ptr<Task>& task, int64_t most) const {
  Item item{task, std::min(most, task->n_wanted_ - task->n_stored_)};
  if (task->n_stored_ >= task->first_row_) {
    if (task->result_ == PassResult::kLogits) item.n_tokens = std::min(item.n_tokens, kMostRows);
    item.outputs = StepItem::Outputs::kAll;
  } else if (task->first_row_ < task->n_stored_ + item.n_tokens) {
    item.n_tokens = task->first_row_ - task->n_stored_;
  } else if (task->n_stored_ + item.n_tokens == task->n_wanted_) {
    item.outputs = StepItem::Outputs::kLast;
  }
  return item;
}

// The task that came first goes on, unless one that has reserved its room needs the blocks. A task
// that does not even fit alone fails in the step, whose error says by how much.
void Scheduler::make_room(std::vector<Item>& answers) {
  const auto n_needed = [&](std::span<const Item> items) {
    int64_t n = 0;
    for (const Item& item : items)
      n += cache_->n_blocks_needed(*item.task->sequence_, item.n_tokens);
    return n;
  };
  while (n_needed(answers) + (chunk_ ? n_needed(chunk_->items) : 0) > cache_->n_free_blocks()) {
    const bool is_alone = n_running() == 1;
    const auto last = std::find_if(active_.rbegin(), active_.rend(), [&](const auto& task) {
      return task->sequence_ && !task->keeps_blocks_ && !is_alone;
    });
    if (last == active_.rend()) return;
    preempt(**last);
    std::erase_if(answers, [&](const Item& item) { return item.task == *last; });
  }
}

// Its blocks stay in the table until others need them, so it may find them again.
void Scheduler::preempt(Task& task) {
  leave_chunk(task);
  cache_->remove_sequence(*task.sequence_);
  task.sequence_.reset();
  task.n_stored_ = task.n_adopted_ = 0;
  const std::lock_guard lock(submitted_mutex_);
  ++usage_.n_preempted;
}

// ---- the end of a task --------------------------------------------------------------------------

void Scheduler::stop(Task& task, std::exception_ptr error) {
  leave_chunk(task);
  task.n_wanted_ = task.n_stored_;
  try {
    task.on_stop(std::move(error));
  } catch (...) {  // most likely for lack of memory; the other tasks go on
  }
}

void Scheduler::drop_completed() {
  const auto is_complete = [&](const std::shared_ptr<Task>& task) {
    if (task->n_stored_ < task->n_wanted_) return false;
    if (!task->keeps_blocks_ && task->sequence_) {
      cache_->remove_sequence(*task->sequence_);
      task->sequence_.reset();
    }
    task->submitted_ = false;
    return true;
  };
  std::erase_if(active_, is_complete);
}

void Scheduler::publish_usage() {
  const std::lock_guard lock(submitted_mutex_);
  usage_.n_running = n_running();
  usage_.n_waiting = std::ssize(active_) - usage_.n_running;
  if (!cache_) return;
  usage_.n_blocks = cache_->n_blocks();
  usage_.n_free_blocks = cache_->n_free_blocks();
  usage_.n_idle_blocks = cache_->n_idle_blocks();
}

}  // namespace limpid
