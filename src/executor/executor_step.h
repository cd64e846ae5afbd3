// One step of an executor.
#pragma once

#include "executor/executor.h"

namespace limpid {

// Begins a step, and ends it even when an op throws.
class ExecutorStep {
 public:
  explicit ExecutorStep(Executor& executor) : executor_(executor) { executor_.begin_step(); }
  ExecutorStep(const ExecutorStep&) = delete;
  ExecutorStep& operator=(const ExecutorStep&) = delete;
  ~ExecutorStep() { executor_.end_step(); }

 private:
  Executor& executor_;
};

}  // namespace limpid
