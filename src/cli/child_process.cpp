#include "cli/child_process.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>

#include "base/check.h"

namespace limpid::cli {
namespace {

std::vector<char*> pointers(std::vector<std::string>& words) {
  std::vector<char*> result;
  result.reserve(words.size() + 1);
  for (std::string& word : words) result.push_back(word.data());
  result.push_back(nullptr);
  return result;
}

}  // namespace

// posix_spawn instead of fork: it does not copy the page tables of a process that maps gigabytes.
ChildProcess::ChildProcess(const std::vector<std::string>& words, const std::string& log,
                           const std::vector<std::string>& extra_environment) {
  std::vector<std::string> arguments = words;
  std::vector<std::string> environment = extra_environment;  // the first of two equal names counts
  for (char** entry = environ; *entry != nullptr; ++entry) environment.emplace_back(*entry);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, log.c_str(),
                                   O_WRONLY | O_CREAT | O_TRUNC, 0644);
  posix_spawn_file_actions_adddup2(&actions, STDOUT_FILENO, STDERR_FILENO);
  const int error = posix_spawnp(&pid_, words.front().c_str(), &actions, nullptr,
                                 pointers(arguments).data(), pointers(environment).data());
  posix_spawn_file_actions_destroy(&actions);
  LIMPID_CHECK(ResourceError, error == 0, "cannot start {}: {}", words.front(),
               std::strerror(error));
}

ChildProcess::~ChildProcess() {
  if (exit_code_) return;
  kill(pid_, SIGTERM);
  wait();
}

int ChildProcess::settle(int status) {
  exit_code_ = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return *exit_code_;
}

std::optional<int> ChildProcess::poll() {
  int status = 0;
  if (!exit_code_ && waitpid(pid_, &status, WNOHANG) == pid_) settle(status);
  return exit_code_;
}

int ChildProcess::wait() {
  if (exit_code_) return *exit_code_;
  int status = 0;
  while (waitpid(pid_, &status, 0) < 0) {
    if (errno != EINTR) return settle(0x7f00);
  }
  return settle(status);
}

}  // namespace limpid::cli
