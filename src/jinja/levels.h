// Bounds the recursion of the walk over the tree.
#pragma once

#include "jinja/interpreter.h"

namespace limpid::jinja {

class Interpreter::Level {
 public:
  explicit Level(Interpreter& interpreter) : depth_(interpreter.depth_) {
    if (++depth_ > kLevelsPerDepth * interpreter.budget_.max_depth()) {
      --depth_;
      throw Fault("the template is nested too deeply");
    }
  }
  ~Level() { --depth_; }
  Level(const Level&) = delete;
  Level& operator=(const Level&) = delete;

 private:
  static constexpr int64_t kLevelsPerDepth = 10;
  int64_t& depth_;
};

}  // namespace limpid::jinja
