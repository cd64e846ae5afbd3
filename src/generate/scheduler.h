// Evaluates many sequences with one model and one KV cache.
//
// A pass over the weights costs the same memory traffic for one token as for sixteen, and decoding
// is bound by that traffic. So each `tick` is one pass for all sequences that wait for a token,
// together with a part of the prompts (continuous batching: Yu et al. 2022, "Orca"; chunked
// prompts: Agrawal et al. 2023, "Sarathi", arXiv:2308.16369):
//
//   tick  sequence 0         sequence 1
//   1     prompt [0, 256)    prompt [0, 212)      n_batch = 512 tokens, in equal shares
//   2     prompt [256, 300)  token 1
//   3     token 1            token 2
//
// A long prompt beside answers would make such a tick too long, and few tokens at a time cost more
// than many: each weight is unpacked and each key is read for fewer tokens. So a chunk of tokens
// passes through some of the layers in each tick, together with the answers (layered prefill: Lee
// et al. 2025, arXiv:2510.08055):
//
//   tick  sequence 0             sequence 1
//   4     token 2, layers 0-15   prompt [0, 20), layers 0-5
//   5     token 3, layers 0-15   prompt [0, 20), layers 6-10
//   6     token 4, layers 0-15   prompt [0, 20), layers 11-15
//
// Sequences that use other weights (AdapterMix) or want another result share a tick, each kind with
// a pass of its own.
//
// A result never depends on the other sequences of the pass: the executor sums each output element
// in an order that does not depend on the number of rows, and the KV cache shares only what is
// equal to the bit.
#pragma once

#include <algorithm>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "generate/step_mutex.h"
#include "generate/step_speed.h"
#include "limpid/cancel.hpp"
#include "limpid/sampler.hpp"
#include "model/adapter_mix.h"
#include "model/kv_cache.h"
#include "model/model.h"

namespace limpid {

// What a step gives for a token: its logits [vocab_size] or its hidden state [d_model]; or only the
// best logits, best first. A logit that is not finite counts as the best.
struct StepRow {
  std::span<const float> whole{};
  std::span<const Candidate> best{};  // empty if `whole` is not
};

// A sequence of tokens that the scheduler evaluates: tokens [n_stored, n_wanted) are waiting. While
// a task is submitted only the thread that ticks may touch it; otherwise only its owner.
class Task {
 public:
  Task() = default;
  Task(const Task&) = delete;
  Task& operator=(const Task&) = delete;
  virtual ~Task() = default;

  // The most positions of the KV cache that the task will need.
  int64_t n_positions() const { return n_most_; }

 protected:
  friend class Scheduler;

  // The work begins, for the first time or after a preemption. An exception ends only this task,
  // with a call of on_stop.
  virtual void on_start() {}
  // More waiting tokens are in the cache, and others still wait.
  virtual void on_progress() {}
  // The row of tokens[position], valid during the call. Called for the last wanted token, and for
  // each one from `first_row_` on. A task with n_best_ > 0 gets only the best logits, at least
  // n_best_ of them, where that is cheaper. May add tokens or replace them. An exception ends only
  // this task, with a call of on_stop.
  virtual void on_row(int64_t position, const StepRow& row) = 0;
  // The task was cancelled (no error) or failed before all wanted tokens were evaluated. An
  // exception has no effect.
  virtual void on_stop(std::exception_ptr error) = 0;
  // Whether the work can end before it is complete.
  virtual bool is_cancelled() const { return false; }

  // Replaces the tokens and wants all of them. The common prefix stays evaluated.
  void assign_tokens(std::vector<TokenId> tokens);

  static constexpr int64_t kNoRows = INT64_MAX;

  std::vector<TokenId> tokens_;
  int64_t n_stored_ = 0;         // their keys and values are in the cache
  int64_t n_wanted_ = 0;         // evaluate up to here
  int64_t first_row_ = kNoRows;  // from this position on every token's logits are wanted
  PassResult result_ = PassResult::kLogits;
  int64_t n_best_ = 0;          // so many of the best logits are enough; 0: all are wanted
  int64_t n_most_ = INT64_MAX;  // see n_positions()
  std::shared_ptr<const AdapterMix> mix_{};  // null: the model as it was opened
  // The blocks stay when all is evaluated, until Scheduler::remove, and are never taken away in
  // between. The owner has reserved room for them.
  bool keeps_blocks_ = false;
  int64_t n_adopted_ = 0;  // tokens that were found in the cache instead of being evaluated

 private:
  std::optional<SequenceId> sequence_;  // while it may have blocks
  bool submitted_ = false;
  int64_t last_turn_ = 0;  // when a part of its prompt was evaluated last
};

struct SchedulerOptions {
  int64_t n_batch = 512;          // most prompt tokens in a tick
  int64_t n_running = INT64_MAX;  // most tasks that have blocks; the others wait
  // While sequences wait for a token, prompts make a tick at most about this many times longer.
  double most_slowdown = 4;
  DType k_dtype = DType::kF16;
  DType v_dtype = DType::kF16;
  bool check_memory = true;  // before the cache grows
  std::string plan_note{};   // the end of a message about memory
};

class Scheduler {
 public:
  Scheduler(Model& model, const SchedulerOptions& options)
      : model_(model), options_(options), speed_(model.spec().n_layers) {}

  // Changes SchedulerOptions::n_running and most_slowdown.
  void set_limits(int64_t n_running, double most_slowdown) {
    const std::lock_guard lock(tick_mutex_);
    options_.n_running = n_running;
    options_.most_slowdown = most_slowdown;
  }

  // What the counters of a server show.
  struct Usage {
    int64_t n_running = 0;  // tasks that have blocks
    int64_t n_waiting = 0;
    int64_t n_blocks = 0;
    int64_t n_free_blocks = 0;  // includes blocks that are kept for prefixes only
    int64_t n_idle_blocks = 0;  // of prefixes that no task uses
    // Since the start:
    int64_t n_preempted = 0;  // times
    int64_t n_passes = 0;     // over the weights
    int64_t n_in_passes = 0;  // sequences of each pass, in sum
  };

  // Reserves room for a sequence of `n_positions`, in addition to earlier reservations. The cache
  // grows if necessary. `unreserve` releases the room. Throws ResourceError.
  void reserve(int64_t n_positions);
  void unreserve(int64_t n_positions) noexcept;

  // All functions may be called from any thread; ticks run one at a time. There must be room
  // reserved for a task before it is submitted.
  //
  // The task's waiting tokens are evaluated by the ticks that follow.
  void submit(std::shared_ptr<Task> task);
  // One pass over the weights. Returns false when nothing is submitted. Does not throw: errors go
  // to the tasks.
  bool tick() {
    const std::lock_guard lock(tick_mutex_);
    return tick_locked();
  }
  // Submits the tasks, and ticks (or waits while another thread does) until all of them are
  // complete or stopped, or `is_enough` says so. A tick of another thread runs these tasks too.
  // Throws ArgumentError, and submits nothing, in a callback of a tick, as refuse_callback() does.
  void run(std::span<const std::shared_ptr<Task>> tasks,
           const std::function<bool()>& is_enough = {});
  void refuse_callback() const { tick_mutex_.refuse_owner(); }
  // Removes a task, submitted or not, and releases its blocks, without a call of its methods. Later
  // prompts may still find its prefix. In a callback of a tick: only a task that is not submitted.
  void remove(Task& task) noexcept;
  // Calls `use` between two ticks. There must be room reserved.
  void with_cache(const std::function<void(KvCache& cache)>& use);
  // As of the end of the last tick.
  Usage usage() const;

 private:
  struct Item {
    std::shared_ptr<Task> task;
    int64_t n_tokens = 0;
    StepItem::Outputs outputs = StepItem::Outputs::kNone;
    int64_t n_rows() const {  // of outputs
      if (outputs == StepItem::Outputs::kAll) return n_tokens;
      return outputs == StepItem::Outputs::kLast ? 1 : 0;
    }
  };

  // Items of one kind, of which some layers have been evaluated.
  struct Pass {
    std::vector<Item> items{};
    PausedStep step{};
    int64_t n_tokens() const;
  };

  void make_cache(int64_t n_blocks);
  bool tick_locked();
  void stop_cancelled();
  // Gives waiting tasks a sequence, in order of arrival, while there is room.
  void admit();
  bool start(Task& task, int64_t n_promised);
  // The blocks that the task still needs to begin its answer.
  int64_t n_blocks_to_answer(const Task& task) const;
  // Takes what is known of the prompt from the cache.
  void adopt_prefix(Task& task);
  // Evaluates `answers`, and some layers of the chunk.
  void evaluate_tick(std::vector<Item> answers);
  // The next token of each sequence that waits for one.
  std::vector<Item> answers();
  // Tasks that wait for more than one token. The one whose turn was the longest ago comes first.
  std::vector<std::shared_ptr<Task>> prompts() const;
  // Chooses the next tokens of prompts.
  void begin_chunk(bool has_answers);
  Item next_tokens(const std::shared_ptr<Task>& task, int64_t most) const;
  // Preempts the tasks that were submitted last, until enough blocks are free for the chunk and the
  // answers that remain.
  void make_room(std::vector<Item>& answers);
  void preempt(Task& task);
  // These return whether the passes succeeded as they were. After an error, each item is evaluated
  // anew and alone, to see which one causes it.
  bool evaluate_in_passes(std::vector<Item> items);
  bool evaluate(std::span<const Item> items, const PausedStep* paused = nullptr);
  // Evaluates up to the layer `end`, which is not the last one.
  bool advance(Pass& pass, int64_t end);
  static Pass join(Pass first, const Pass& second);
  // Evaluates the next layers of the chunk, and all layers of answers of its kind.
  void evaluate_beside(Pass answers, int64_t n_layers);
  int64_t layers_of_tick(bool has_answers) const;
  // Of a prompt in a tick, however slow they make the others.
  int64_t least_prompt_tokens() const { return std::min<int64_t>(2, options_.n_batch); }
  bool is_in_chunk(const Task& task) const;
  // Takes a task that ends or loses its blocks out of the chunk.
  void leave_chunk(const Task& task);
  // How many of the best logits are enough for all items; 0: all of them, or that costs no less.
  int64_t n_best_of(std::span<const Item> items) const;
  // What a step gives for its outputs: all of each row, or the best of it.
  struct Rows {
    size_t width = 0;
    std::span<const float> whole{};  // [n_outputs, width]
    std::vector<Candidate> best{};   // likewise
  };
  Rows run_step(std::span<const Item> items, const PausedStep* paused);
  static std::vector<StepItem> step_items(std::span<const Item> items);
  static std::pair<PassResult, uint64_t> kind_of(const Task& task);
  static std::span<const double> factors_of(std::span<const Item> items);
  void deliver(std::span<const Item> items, const Rows& rows);
  void count_pass(std::span<const Item> items);
  void stop(Task& task, std::exception_ptr error);
  void drop_completed();
  void publish_usage();
  int64_t n_running() const;

  Model& model_;
  SchedulerOptions options_;

  mutable std::mutex submitted_mutex_;  // of these two; never held during a tick
  std::vector<std::shared_ptr<Task>> submitted_;
  Usage usage_;  // a pass is counted before its results are delivered

  StepMutex tick_mutex_;  // of all that follows, and of the model
  std::unique_ptr<KvCache> cache_;
  int64_t n_reserved_blocks_ = 0;
  std::vector<std::shared_ptr<Task>> active_;  // in order of arrival
  std::optional<Pass> chunk_;                  // of prompts
  int64_t n_turns_ = 0;
  StepSpeed speed_;
};

}  // namespace limpid
