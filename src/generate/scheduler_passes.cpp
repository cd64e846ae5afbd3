// The passes over the weights of a tick.
#include <algorithm>
#include <cmath>
#include <utility>

#include "base/stopwatch.h"
#include "generate/scheduler.h"

namespace limpid {

// A pass has one kind of result and one mix of adapters.
std::pair<PassResult, uint64_t> Scheduler::kind_of(const Task& task) {
  return {task.result_, task.mix_ ? task.mix_->variant : 0};
}

// Within a pass the items keep their order: those that generate come before the prompts.
bool Scheduler::evaluate_in_passes(std::vector<Item> items) {
  bool succeeds = true;
  std::ranges::stable_sort(items, {}, [](const Item& item) { return kind_of(*item.task); });
  for (auto begin = items.begin(); begin != items.end();) {
    const auto end = std::find_if(begin, items.end(), [&](const Item& item) {
      return kind_of(*item.task) != kind_of(*begin->task);
    });
    succeeds &= evaluate({begin, end});
    begin = end;
  }
  return succeeds;
}

// A step that fails has changed nothing, so each task can try alone: only the one that causes the
// error ends.
bool Scheduler::evaluate(std::span<const Item> items, const PausedStep* paused) {
  if (items.empty()) return true;
  Rows rows;
  try {
    rows = run_step(items, paused);
  } catch (...) {
    if (items.size() == 1) {
      stop(*items.front().task, std::current_exception());
    } else {
      for (const Item& item : items) evaluate({&item, 1});
    }
    return false;
  }
  count_pass(items);
  deliver(items, rows);
  return true;
}

std::vector<StepItem> Scheduler::step_items(std::span<const Item> items) {
  std::vector<StepItem> result;
  for (const auto& [task, n_tokens, outputs] : items) {
    const auto waiting = std::span(task->tokens_).subspan(static_cast<size_t>(task->n_stored_));
    result.push_back({*task->sequence_, waiting.first(static_cast<size_t>(n_tokens)), outputs});
  }
  return result;
}

std::span<const double> Scheduler::factors_of(std::span<const Item> items) {
  const auto& mix = items.front().task->mix_;
  return mix ? std::span<const double>(mix->factors) : std::span<const double>();
}

Scheduler::Rows Scheduler::run_step(std::span<const Item> items, const PausedStep* paused) {
  const std::vector<StepItem> step = step_items(items);
  const StepOptions options{items.front().task->result_, factors_of(items), paused};
  const int64_t n_best = n_best_of(items);
  if (n_best == 0) {
    const bool hidden = options.result == PassResult::kHidden;
    return {static_cast<size_t>(hidden ? model_.spec().d_model : model_.spec().vocab_size),
            model_.step(*cache_, step, options)};
  }
  Rows rows{static_cast<size_t>(n_best)};
  const Model::BestLogits best = model_.step_best(*cache_, step, n_best, options);
  for (size_t i = 0; i < best.ids.size(); ++i) rows.best.push_back({best.ids[i], best.logits[i]});
  return rows;
}

int64_t Scheduler::n_best_of(std::span<const Item> items) const {
  int64_t n = 0;
  for (const Item& item : items) {
    if (item.outputs == StepItem::Outputs::kNone) continue;
    if (item.task->n_best_ == 0 || item.task->result_ != PassResult::kLogits) return 0;
    n = std::max(n, item.task->n_best_);
  }
  return n <= std::min(model_.executor().most_best(), model_.spec().vocab_size) ? n : 0;
}

void Scheduler::deliver(std::span<const Item> items, const Rows& rows) {
  size_t at = 0;
  for (const Item& item : items) {
    Task& task = *item.task;
    const int64_t n_rows = item.n_rows();
    task.n_stored_ += item.n_tokens;
    const size_t end = at + static_cast<size_t>(n_rows) * rows.width;
    try {
      if (n_rows == 0) task.on_progress();
      for (int64_t position = task.n_stored_ - n_rows; at < end; ++position, at += rows.width) {
        if (rows.best.empty()) {
          task.on_row(position, {rows.whole.subspan(at, rows.width), {}});
        } else {
          task.on_row(position, {{}, std::span(rows.best).subspan(at, rows.width)});
        }
      }
    } catch (...) {
      stop(task, std::current_exception());
    }
    at = end;
  }
}

void Scheduler::count_pass(std::span<const Item> items) {
  const std::lock_guard lock(submitted_mutex_);
  ++usage_.n_passes;
  usage_.n_in_passes += std::ssize(items);
}

// ---- prompts beside answers ---------------------------------------------------------------------

int64_t Scheduler::Pass::n_tokens() const {
  int64_t n = 0;
  for (const Item& item : items) n += item.n_tokens;
  return n;
}

void Scheduler::evaluate_tick(std::vector<Item> answers) {
  const Stopwatch stopwatch;
  if (!chunk_) {
    const bool is_idle = answers.empty();
    if (evaluate_in_passes(std::move(answers)) && !is_idle)
      speed_.learn_answers(stopwatch.seconds());
    return;
  }
  const int64_t n_layers = layers_of_tick(!answers.empty());
  const auto kind = kind_of(*chunk_->items.front().task);
  const auto others = std::ranges::stable_partition(
      answers, [&](const Item& item) { return kind_of(*item.task) == kind; });
  evaluate_in_passes({others.begin(), others.end()});
  answers.erase(others.begin(), others.end());
  evaluate_beside({std::move(answers)}, n_layers);
}

// A prompt makes progress, however slow it makes the others: the smallest chunk passes through all
// layers. Otherwise the layers that are left are divided evenly among the ticks that they will
// take.
int64_t Scheduler::layers_of_tick(bool has_answers) const {
  const int64_t n_left = model_.spec().n_layers - chunk_->step.n_layers;
  const int64_t n_tokens = chunk_->n_tokens();
  if (!has_answers || n_tokens <= least_prompt_tokens()) return n_left;
  const double fitting = speed_.layers_of_tick(options_.most_slowdown, n_tokens);
  const double n_ticks = std::round(static_cast<double>(n_left) / std::max(fitting, 1.0));
  return static_cast<int64_t>(std::ceil(static_cast<double>(n_left) / std::max(n_ticks, 1.0)));
}

bool Scheduler::advance(Pass& pass, int64_t end) {
  if (pass.items.empty() || pass.step.n_layers == end) return true;
  try {
    model_.step_layers(*cache_, step_items(pass.items), end - pass.step.n_layers, pass.step,
                       factors_of(pass.items));
    return true;
  } catch (...) {
    for (const Item& item : pass.items) evaluate({&item, 1});
    return false;
  }
}

// The residual streams of both, one after the other.
Scheduler::Pass Scheduler::join(Pass first, const Pass& second) {
  const auto append = [](auto& to, const auto& from) {
    to.insert(to.end(), from.begin(), from.end());
  };
  append(first.items, second.items);
  append(first.step.stream, second.step.stream);
  first.step.n_layers = second.step.n_layers;
  return first;
}

// The answers pass through the layers before the chunk's next ones alone, then through these
// together with the chunk, then through the rest.
void Scheduler::evaluate_beside(Pass answers, int64_t n_layers) {
  const int64_t end = chunk_->step.n_layers + n_layers;
  const bool is_end = end == model_.spec().n_layers;
  const Stopwatch stopwatch;
  bool succeeds = advance(answers, chunk_->step.n_layers);
  if (!succeeds) answers = {};  // they have their tokens

  Pass chunk = *std::exchange(chunk_, std::nullopt);
  Pass both = join(answers, chunk);
  const Stopwatch together;
  const bool goes_on = is_end ? evaluate(both.items, &both.step) : advance(both, end);
  const double seconds = together.seconds();
  if (!goes_on) return;
  speed_.learn_prompts(seconds, chunk.n_tokens(), n_layers);

  if (!is_end) {
    const std::vector<float>& stream = both.step.stream;
    const auto first_of_chunk = stream.begin() + answers.n_tokens() * model_.spec().d_model;
    answers.step = {end, {stream.begin(), first_of_chunk}};
    chunk.step = {end, {first_of_chunk, stream.end()}};
    chunk_ = std::move(chunk);
    succeeds &= evaluate(answers.items, &answers.step);
  }
  const int64_t n_others = model_.spec().n_layers - n_layers;
  if (succeeds && !answers.items.empty() && n_others > 0)
    speed_.learn_answers_beside(stopwatch.seconds() - seconds, n_others);
}

bool Scheduler::is_in_chunk(const Task& task) const {
  return chunk_ && std::ranges::any_of(chunk_->items,
                                       [&](const Item& item) { return item.task.get() == &task; });
}

// The others go on: no row of the residual stream depends on another sequence.
void Scheduler::leave_chunk(const Task& task) {
  if (!is_in_chunk(task)) return;
  const int64_t d_model = model_.spec().d_model;
  std::vector<float>& stream = chunk_->step.stream;
  auto rows = stream.begin();
  auto item = chunk_->items.begin();
  for (; item->task.get() != &task; ++item)
    if (!stream.empty()) rows += item->n_tokens * d_model;
  if (!stream.empty()) stream.erase(rows, rows + item->n_tokens * d_model);
  chunk_->items.erase(item);
  if (chunk_->items.empty()) chunk_.reset();
  if (task.sequence_) cache_->truncate(*task.sequence_, cache_->length(*task.sequence_));
}

}  // namespace limpid
