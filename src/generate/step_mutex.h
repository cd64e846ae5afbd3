// A mutex for the steps of a model, which refuses a thread that holds it already.
#pragma once

#include <atomic>
#include <mutex>
#include <thread>

#include "base/check.h"

namespace limpid {

// Callbacks run during a step: of texts, of logits, of samplers. One that evaluates with the same
// model would wait for ever, for the step in which it runs. To be locked by std::lock_guard.
class StepMutex {
 public:
  // Both throw ArgumentError where this thread has locked it.
  void refuse_owner() const {
    LIMPID_CHECK(ArgumentError, !is_mine(),
                 "a callback cannot evaluate with the model that calls it: evaluate after the call "
                 "that took the callback has returned");
  }
  void lock() {
    refuse_owner();
    mutex_.lock();
    owner_ = std::this_thread::get_id();
  }
  void unlock() {
    owner_ = std::thread::id();
    mutex_.unlock();
  }
  // For destructors, which must not throw: one that runs in a callback uses the lock of the step.
  std::unique_lock<std::mutex> lock_once() {
    return is_mine() ? std::unique_lock<std::mutex>() : std::unique_lock(mutex_);
  }

 private:
  bool is_mine() const { return owner_ == std::this_thread::get_id(); }

  std::mutex mutex_;
  std::atomic<std::thread::id> owner_{};
};

}  // namespace limpid
