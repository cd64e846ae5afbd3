// Ctrl-C: the first stops what is being said, the second leaves the program.
#pragma once

#include "limpid/cancel.hpp"

namespace limpid::cli {

// While one lives (one at a time), Ctrl-C sets its cancel token instead of ending the program; a
// second one before clear() leaves with exit code 130 and the terminal as it was.
class InterruptGuard {
 public:
  explicit InterruptGuard(CancelToken cancel = {});
  ~InterruptGuard();
  InterruptGuard(const InterruptGuard&) = delete;
  InterruptGuard& operator=(const InterruptGuard&) = delete;

  [[nodiscard]] bool interrupted() const;  // since the start, or the last clear()
  void clear();

 private:
  CancelToken cancel_;
};

}  // namespace limpid::cli
