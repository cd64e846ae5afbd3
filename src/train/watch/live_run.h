// Connects a training with those who watch it. The training offers a snapshot of each step; the
// watchers ask for the newest one, and say how the training goes on. It knows neither models nor
// HTTP.
//
// While nobody asks and the run is not paused, a step costs the training one atomic load.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

namespace limpid {

class LiveRun {
 public:
  struct Control {
    bool paused = false;
    // A limit that applies while a page is open; 0: none.
    double steps_per_second = 0;
    double learning_rate = 0;  // the training decides how to use it
  };
  // Gives the snapshot of the current step as JSON. Called on the training's thread only.
  using Snapshot = std::function<std::string()>;
  // Called once, with an object {"version", "finished", "paused", "steps_per_second",
  // "learning_rate", "snapshot"}; on the training's thread or, after the end, at once.
  using Answer = std::function<void(const std::string& json)>;

  LiveRun() = default;
  explicit LiveRun(const Control& control) : control_(control) {}

  // ---- for viewers, on any thread

  // Answers with the first state that is newer than `version`, or with the next state if `version`
  // is -1. Steps and commands make new states.
  void ask(int64_t version, Answer answer);
  // Obeys a JSON object with some of "paused" (bool), "steps" (how many a paused run goes on),
  // "steps_per_second" and "learning_rate". Throws ArgumentError for anything else.
  // Changes nothing after the end.
  void command(std::string_view json);
  // Returns whether a question was asked since the run was made.
  bool was_asked() const { return was_asked_; }

  // ---- for the training's thread

  // Answers the questions about this step, and waits as long as the run is paused or too fast.
  // Waiting ends when `cancelled` returns true. Returns whether control() may have changed.
  bool step(const Snapshot& snapshot, const std::function<bool()>& cancelled) {
    return is_busy_.load(std::memory_order_relaxed) && attend(snapshot, cancelled);
  }
  Control control() const;
  // Makes the last state, which later questions get too. If somebody looks, waits up to five
  // seconds for the state to be fetched.
  void finish(const Snapshot& snapshot);

 private:
  using Clock = std::chrono::steady_clock;
  struct Question {
    int64_t version;
    Answer answer;
  };

  bool attend(const Snapshot& snapshot, const std::function<bool()>& cancelled);
  void answer_questions(std::unique_lock<std::mutex>& lock, const Snapshot& snapshot);
  std::string state(const std::string& snapshot) const;
  bool is_watched() const;

  std::atomic<bool> is_busy_ = false;  // somebody looks, or the run is paused
  std::atomic<bool> was_asked_ = false;
  mutable std::mutex mutex_;  // guards what follows
  std::condition_variable changed_;
  Control control_;
  std::vector<Question> questions_;
  int64_t version_ = 0;
  int64_t n_steps_left_ = 0;  // of a paused run
  bool is_finished_ = false;
  bool is_fetched_ = false;  // the last state
  std::string last_snapshot_;
  Clock::time_point asked_at_;
  Clock::time_point next_step_;  // not before
};

}  // namespace limpid
