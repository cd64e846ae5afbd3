#include "cli/bus_error.h"

#include <unistd.h>

#include <atomic>
#include <csignal>

#include "base/atomic_file.h"
#include "base/mapped_path.h"
#include "cli/command.h"
#include "cli/interrupt.h"
#include "cli/output.h"

namespace limpid::cli {
namespace {

struct sigaction before {};
std::atomic_flag is_leaving;

// Everything here is async-signal-safe. A SIGBUS that a process sent has no address.
void on_bus_error(int signal, siginfo_t* info, void* /*context*/) {
  const char* path = info->si_code > 0 ? mapped_path_of(info->si_addr) : nullptr;
  if (path == nullptr) {
    sigaction(signal, &before, nullptr);
    raise(signal);  // delivered when this handler returns
    return;
  }
  while (is_leaving.test_and_set()) pause();  // another thread writes the line
  remove_temporary_files();
  restore_terminal();
  print_error_in_handler(path, kBecameUnreadable);
  _exit(kExitError);
}

}  // namespace

void handle_bus_errors() {
  struct sigaction action {};
  action.sa_sigaction = on_bus_error;
  action.sa_flags = SA_SIGINFO;
  sigaction(SIGBUS, &action, &before);
}

}  // namespace limpid::cli
