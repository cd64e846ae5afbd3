//   signal            while an InterruptGuard lives            otherwise
//   SIGINT            cancels its token; a second one ends     ends the program
//   SIGTERM           as SIGINT, with OnSigterm::kInterrupt    ends the program
//   SIGHUP            ends the program                         ends the program
//   SIGBUS            a mapped file was truncated: ends the program with its name
// To end the program is to remove temporary files and a new folder, restore the terminal, say so in
// one line, and exit.
#include "cli/signals.h"

#include <fcntl.h>
#include <termios.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <utility>

#include "base/atomic_file.h"
#include "base/mapped_file.h"
#include "base/paths.h"
#include "cli/command.h"

namespace limpid::cli {
namespace {

// Atomic, because any thread of the process may run a handler.
std::atomic<int> n_interrupts = 0;
std::atomic<const CancelToken*> token_to_cancel = nullptr;  // of the InterruptGuard that lives
std::atomic<int> signal_pipe = -1;                          // of the SignalPipe that lives
std::atomic<const char*> farewell = nullptr;
std::atomic<const NewFolder*> new_folder = nullptr;  // the one that lives
static_assert(std::atomic<int>::is_always_lock_free &&
              std::atomic<const CancelToken*>::is_always_lock_free);
std::atomic_flag is_leaving;
termios terminal_at_start{};
bool have_terminal = false;
struct sigaction bus_error_before {};

// A handler may interrupt any instruction, malloc() and printf() included, so it may call only
// functions that POSIX lists as async-signal-safe (write, unlink, tcsetattr, _exit, …) and read
// only atomic variables. That holds for all functions from here to install().
// termios has what stty shows: echo, whole lines or single keys. It does not know what escape
// sequences have set (bracketed paste); the farewell undoes that. In the background the terminal is
// another program's, and tcsetattr() would stop this one (SIGTTOU).
void restore_terminal() {
  const bool is_ours = have_terminal && tcgetpgrp(STDIN_FILENO) == getpgrp();
  if (is_ours) tcsetattr(STDIN_FILENO, TCSANOW, &terminal_at_start);
  [[maybe_unused]] ssize_t written = 0;
  if (const char* text = farewell) written = write(STDERR_FILENO, text, std::strlen(text));
}

bool clean_up() {
  while (is_leaving.test_and_set()) pause();  // another thread ends the program already
  const bool had_files = remove_temporary_files();
  if (const NewFolder* folder = new_folder) folder->remove_empty();
  restore_terminal();
  return had_files;
}

void on_end(int /*signal*/) {
  print_error_in_handler("", clean_up() ? "stopped; the unfinished file was removed" : "stopped");
  _exit(kExitInterrupted);
}

// Saves errno: the handler may run between a failed call and the look at its reason.
void write_signal(char byte) {
  const int error = errno;
  [[maybe_unused]] ssize_t written = 0;
  if (signal_pipe >= 0) written = write(signal_pipe, &byte, 1);
  errno = error;
}

// The first Ctrl-C asks for an end that the program carries out; the second does not wait for it.
void on_interrupt(int /*signal*/) {
  const int n = ++n_interrupts;
  if (const CancelToken* token = token_to_cancel) token->cancel();
  if (n >= 2) {
    clean_up();
    [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, "\n", 1);
    _exit(kExitInterrupted);
  }
  write_signal('i');
}

void on_window_or_continue(int signal) { write_signal(signal == SIGWINCH ? 'w' : 'c'); }

// A SIGBUS that a process sent has no address.
void on_bus_error(int signal, siginfo_t* info, void* /*context*/) {
  const char* path = info->si_code > 0 ? mapped_path_of(info->si_addr) : nullptr;
  if (path == nullptr) {
    sigaction(signal, &bus_error_before, nullptr);
    raise(signal);  // delivered when this handler returns
    return;
  }
  clean_up();
  print_error_in_handler(path, kBecameUnreadable);
  _exit(kExitError);
}

// A signal that is ignored stays so. No other signal interrupts the handler: one that came during
// clean_up() would wait there for ever, for the very thread that it interrupts.
void install(int signal, void (*handler)(int)) {
  struct sigaction found {};
  sigaction(signal, nullptr, &found);
  if (found.sa_handler == SIG_IGN) return;
  struct sigaction action {};
  action.sa_handler = handler;  // no SA_RESTART: a read at the prompt returns
  sigfillset(&action.sa_mask);
  sigaction(signal, &action, nullptr);
}

}  // namespace

void handle_signals() {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) install(signal, on_end);
  struct sigaction action {};
  sigfillset(&action.sa_mask);
  action.sa_sigaction = on_bus_error;
  action.sa_flags = SA_SIGINFO;
  sigaction(SIGBUS, &action, &bus_error_before);
}

// The terminal is remembered here and not at the start of the program: libedit changes it only
// while a guard lives.
InterruptGuard::InterruptGuard(CancelToken cancel, OnSigterm on_sigterm)
    : cancel_(std::move(cancel)) {
  n_interrupts = 0;
  have_terminal = tcgetattr(STDIN_FILENO, &terminal_at_start) == 0;
  token_to_cancel = &cancel_;
  install(SIGINT, on_interrupt);
  if (on_sigterm == OnSigterm::kInterrupt) install(SIGTERM, on_interrupt);
}

InterruptGuard::~InterruptGuard() {
  for (const int signal : {SIGINT, SIGTERM}) install(signal, on_end);
  token_to_cancel = nullptr;
}

bool InterruptGuard::interrupted() const { return n_interrupts > 0; }

void InterruptGuard::clear() {
  n_interrupts = 0;
  cancel_.reset();
}

NewFolder::NewFolder(const std::string& path) {
  for (std::filesystem::path part = path; !part.empty() && !is_there(part);
       part = part.parent_path()) {
    paths_.push_back(part.string());
  }
  new_folder = this;
}

NewFolder::~NewFolder() {
  new_folder = nullptr;
  remove_empty();
}

// The system refuses to remove a folder that is not empty. An interrupted program may not have made
// all of them.
void NewFolder::remove_empty() const noexcept {
  for (const std::string& path : paths_) {
    if (rmdir(path.c_str()) != 0 && errno != ENOENT) return;
  }
}

SignalPipe::SignalPipe(int flags) {
  LIMPID_CHECK(ResourceError, pipe2(ends_, flags | O_CLOEXEC) == 0, "cannot make a pipe");
  signal_pipe = ends_[1];
  struct sigaction action {};
  action.sa_handler = on_window_or_continue;
  action.sa_flags = SA_RESTART;
  for (const int signal : {SIGWINCH, SIGCONT}) sigaction(signal, &action, nullptr);
}

SignalPipe::~SignalPipe() {
  for (const int signal : {SIGWINCH, SIGCONT}) std::signal(signal, SIG_DFL);
  signal_pipe = -1;
  for (const int end : ends_) close(end);
}

char SignalPipe::next() const {
  char byte = 0;
  return read(read_end(), &byte, 1) == 1 ? byte : '\0';
}

void set_farewell(const char* escape_sequences) { farewell = escape_sequences; }

}  // namespace limpid::cli
