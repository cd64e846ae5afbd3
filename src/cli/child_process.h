// A program that runs beside this one.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

namespace limpid::cli {

class ChildProcess {
 public:
  // Starts words[0] (looked up in PATH) with no input and its output in the file `log`;
  // `extra_environment` holds "NAME=value". Throws ResourceError when it cannot be started.
  ChildProcess(const std::vector<std::string>& words, const std::string& log,
               const std::vector<std::string>& extra_environment = {});
  ~ChildProcess();  // ends it if it still runs
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  // The exit code once it has ended (128 + signal if a signal ended it).
  std::optional<int> poll();
  int wait();

 private:
  int settle(int status);

  pid_t pid_ = -1;
  std::optional<int> exit_code_;
};

}  // namespace limpid::cli
