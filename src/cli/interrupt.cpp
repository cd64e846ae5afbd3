#include "cli/interrupt.h"

#include <termios.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <utility>

#include "cli/command.h"

namespace limpid::cli {
namespace {

// Atomic, since any thread of the process may run the handler.
std::atomic<int> n_interrupts = 0;
std::atomic<const CancelToken*> token_to_cancel = nullptr;
std::atomic<int> interrupt_pipe = -1;
std::atomic<const char*> farewell = nullptr;
static_assert(std::atomic<int>::is_always_lock_free &&
              std::atomic<const CancelToken*>::is_always_lock_free);
termios terminal_at_start{};
bool have_terminal = false;

// Everything here is async-signal-safe.
void on_interrupt(int /*signal*/) {
  const int n = ++n_interrupts;
  if (const CancelToken* token = token_to_cancel) token->cancel();
  [[maybe_unused]] ssize_t written = 0;
  if (n < 2) {
    const int error = errno;
    if (interrupt_pipe >= 0) written = write(interrupt_pipe, "i", 1);
    errno = error;
    return;
  }
  restore_terminal();
  written = write(STDERR_FILENO, "\n", 1);
  _exit(kExitInterrupted);
}

}  // namespace

InterruptGuard::InterruptGuard(CancelToken cancel) : cancel_(std::move(cancel)) {
  n_interrupts = 0;
  token_to_cancel = &cancel_;
  have_terminal = tcgetattr(STDIN_FILENO, &terminal_at_start) == 0;
  struct sigaction action {};
  action.sa_handler = on_interrupt;  // no SA_RESTART: a read at the prompt returns
  sigaction(SIGINT, &action, nullptr);
}

InterruptGuard::~InterruptGuard() {
  std::signal(SIGINT, SIG_DFL);
  token_to_cancel = nullptr;
}

bool InterruptGuard::interrupted() const { return n_interrupts > 0; }

void InterruptGuard::clear() {
  n_interrupts = 0;
  cancel_.reset();
}

void restore_terminal() noexcept {
  if (have_terminal) tcsetattr(STDIN_FILENO, TCSANOW, &terminal_at_start);
  [[maybe_unused]] ssize_t written = 0;
  if (const char* text = farewell) written = write(STDERR_FILENO, text, std::strlen(text));
}

void set_interrupt_pipe(int descriptor) { interrupt_pipe = descriptor; }
void set_farewell(const char* escape_sequences) { farewell = escape_sequences; }

}  // namespace limpid::cli
