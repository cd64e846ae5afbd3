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

// Sets the terminal as it was when the last InterruptGuard began, and writes the farewell.
// Async-signal-safe.
void restore_terminal() noexcept;

// Each Ctrl-C writes the byte 'i' to this descriptor, so that a poll() ends; -1: to none.
void set_interrupt_pipe(int descriptor);

// What puts a terminal back that was told more than termios knows; written to stderr by
// restore_terminal. A literal, or null.
void set_farewell(const char* escape_sequences);

}  // namespace limpid::cli
