// Signals: Ctrl-C stops an answer or ends the program. A program that ends early restores the
// terminal and leaves no unfinished file.
#pragma once

#include <stdexcept>
#include <string>
#include <vector>

#include "limpid/cancel.hpp"

namespace limpid::cli {

// From now on
// - SIGINT (Ctrl-C), SIGTERM and SIGHUP end the program with one line and exit code 130;
// - SIGBUS in a mapped file, which comes when the file is truncated while the program reads it,
//   ends it with one line that names the file and exit code 1. Any other SIGBUS does what it did
//   before.
// Temporary files are removed and the terminal is restored first. A signal that is ignored when the
// program starts (nohup) stays ignored.
void handle_signals();

// The exception for work that Ctrl-C ended. main() prints what() and exits with 130.
class Interrupted : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// What SIGTERM does. kInterrupt: the same as Ctrl-C, for work that must clean up more than
// temporary files.
enum class OnSigterm { kEnd, kInterrupt };

// While an object exists (one at a time), Ctrl-C sets its cancel token and does not end the
// program. A second Ctrl-C before clear() ends the program.
class InterruptGuard {
 public:
  explicit InterruptGuard(CancelToken cancel = {}, OnSigterm on_sigterm = OnSigterm::kEnd);
  ~InterruptGuard();
  InterruptGuard(const InterruptGuard&) = delete;
  InterruptGuard& operator=(const InterruptGuard&) = delete;

  [[nodiscard]] bool interrupted() const;  // since the start, or the last clear()
  void clear();

 private:
  CancelToken cancel_;
};

// While one lives (one at a time), the folder `path` and the folders above it that were not there
// are for output of this program. Those that are still empty at the end, or when a signal ends the
// program, are removed.
class NewFolder {
 public:
  explicit NewFolder(const std::string& path);
  ~NewFolder();
  NewFolder(const NewFolder&) = delete;
  NewFolder& operator=(const NewFolder&) = delete;

  void remove_empty() const noexcept;  // async-signal-safe

 private:
  std::vector<std::string> paths_;  // that were not there, the deepest first
};

// While one lives (one at a time), signals are bytes in it: 'i' for each Ctrl-C under an
// InterruptGuard, 'w' for a new size of the terminal's window, and 'c' for going on after Ctrl-Z.
// So a thread which waits for several things at once can wait for a signal too. A flag would not
// do: a signal that comes just before poll() sets it too late to be seen and does not end the wait.
class SignalPipe {
 public:
  // `flags` of pipe2(). Throws ResourceError.
  explicit SignalPipe(int flags = 0);
  ~SignalPipe();
  SignalPipe(const SignalPipe&) = delete;
  SignalPipe& operator=(const SignalPipe&) = delete;

  [[nodiscard]] int read_end() const { return ends_[0]; }
  // The next signal. 0 when a signal of another kind ends the wait for it, and with O_NONBLOCK
  // where none has come.
  [[nodiscard]] char next() const;

 private:
  int ends_[2] = {-1, -1};
};

// The escape sequences that undo what was set on the terminal beyond termios. They go to stderr
// when the terminal is restored. A literal, or null.
void set_farewell(const char* escape_sequences);

}  // namespace limpid::cli
