// Ctrl-C: the first stops what is being said, the second leaves the program.
#pragma once

namespace limpid::cli {

// While one lives, Ctrl-C is counted instead of ending the program; a second one before clear()
// leaves with exit code 130 and the terminal as it was.
class InterruptGuard {
 public:
  InterruptGuard();
  ~InterruptGuard();
  InterruptGuard(const InterruptGuard&) = delete;
  InterruptGuard& operator=(const InterruptGuard&) = delete;

  [[nodiscard]] bool interrupted() const;
  void clear();
};

}  // namespace limpid::cli
