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

// Each Ctrl-C writes the byte 'i' to this descriptor, so that a poll() ends; -1: to none.
void set_interrupt_pipe(int descriptor);

// What puts a terminal back that was told more than termios knows; written to stderr when the
// second Ctrl-C leaves. A literal, or null.
void set_farewell(const char* escape_sequences);

}  // namespace limpid::cli
