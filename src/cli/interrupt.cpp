#include "cli/interrupt.h"

#include <termios.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <utility>

#include "cli/command.h"

namespace limpid::cli {
namespace {

// Atomic, since any thread of the process may run the handler.
std::atomic<int> n_interrupts = 0;
std::atomic<const CancelToken*> token_to_cancel = nullptr;
static_assert(std::atomic<int>::is_always_lock_free &&
              std::atomic<const CancelToken*>::is_always_lock_free);
termios terminal_at_start{};
bool have_terminal = false;

// Everything here is async-signal-safe.
void on_interrupt(int /*signal*/) {
  const int n = ++n_interrupts;
  if (const CancelToken* token = token_to_cancel) token->cancel();
  if (n < 2) return;
  if (have_terminal) tcsetattr(STDIN_FILENO, TCSANOW, &terminal_at_start);
  [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, "\n", 1);
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

}  // namespace limpid::cli
