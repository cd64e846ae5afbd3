#include "cli/output.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>

#include "base/check.h"

namespace limpid::cli {
namespace {

double seconds_now() {
  using Clock = std::chrono::steady_clock;
  return std::chrono::duration<double>(Clock::now().time_since_epoch()).count();
}

struct CloseFile {
  void operator()(std::FILE* file) const { std::fclose(file); }
};

// Holds Ctrl-C back from this thread for a moment: a write that it interrupts fails, and what stdio
// had kept is lost.
class HoldInterrupts {
 public:
  HoldInterrupts() {
    sigset_t interrupt;
    sigemptyset(&interrupt);
    sigaddset(&interrupt, SIGINT);
    pthread_sigmask(SIG_BLOCK, &interrupt, &before_);
  }
  HoldInterrupts(const HoldInterrupts&) = delete;
  HoldInterrupts& operator=(const HoldInterrupts&) = delete;
  ~HoldInterrupts() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

 private:
  sigset_t before_;
};

}  // namespace

void write_out(std::string_view data) {
  const HoldInterrupts hold;
  const size_t written = std::fwrite(data.data(), 1, data.size(), stdout);
  LIMPID_CHECK(ResourceError, written == data.size(), "cannot write to standard output: {}",
               std::strerror(errno));
}

void flush_out() {
  const HoldInterrupts hold;
  LIMPID_CHECK(ResourceError, std::fflush(stdout) == 0, "cannot write to standard output: {}",
               std::strerror(errno));
}

void print_error(std::string_view message) {
  std::string line(message);
  std::replace(line.begin(), line.end(), '\n', ' ');
  fmt::print(stderr, "limpid: {}\n", line);
}

void print_log(std::string_view message) { fmt::print(stderr, "{}\n", message); }

bool stdin_is_terminal() { return isatty(STDIN_FILENO) != 0; }
bool stdout_is_terminal() { return isatty(STDOUT_FILENO) != 0; }
bool stderr_is_terminal() { return isatty(STDERR_FILENO) != 0; }

std::string format_bytes(uint64_t n_bytes) {
  const auto value = static_cast<double>(n_bytes);
  if (value >= 1e9) return fmt::format("{:.2f} GB", value / 1e9);
  if (value >= 1e6) return fmt::format("{:.1f} MB", value / 1e6);
  if (value >= 1e3) return fmt::format("{:.1f} kB", value / 1e3);
  return fmt::format("{} B", n_bytes);
}

std::string read_text(const std::string& path) {
  const bool from_stdin = path == "-";
  LIMPID_CHECK(ResourceError, from_stdin || !std::filesystem::is_directory(path),
               "{} is a folder, not a file", path);
  std::unique_ptr<std::FILE, CloseFile> opened;
  if (!from_stdin) opened.reset(std::fopen(path.c_str(), "rb"));
  std::FILE* file = from_stdin ? stdin : opened.get();
  LIMPID_CHECK(ResourceError, file != nullptr, "cannot open {}: {}", path, std::strerror(errno));
  std::string text;
  char chunk[1 << 16];
  size_t n_read = 0;
  while ((n_read = std::fread(chunk, 1, sizeof chunk, file)) > 0) text.append(chunk, n_read);
  LIMPID_CHECK(ResourceError, std::ferror(file) == 0, "cannot read {}: {}",
               from_stdin ? "standard input" : path, std::strerror(errno));
  return text;
}

ProgressBar::ProgressBar(std::string title)
    : title_(std::move(title)), live_(stderr_is_terminal()) {}

ProgressBar::~ProgressBar() { wipe(); }

void ProgressBar::show(uint64_t done, uint64_t total, std::string_view note) {
  if (!live_ || total == 0) return;
  const double now = seconds_now();
  if (drawn_ && now - last_ < 0.1) return;
  last_ = now;
  drawn_ = true;
  constexpr size_t kCells = 30;
  const double share = std::min(1.0, static_cast<double>(done) / static_cast<double>(total));
  const auto filled = static_cast<size_t>(share * kCells);
  fmt::print(stderr, "\r{} [{}{}] {:3.0f}% {}\x1b[K", title_, std::string(filled, '#'),
             std::string(kCells - filled, '.'), share * 100, note);
  std::fflush(stderr);
}

void ProgressBar::wipe() {
  if (!drawn_) return;
  fmt::print(stderr, "\r\x1b[K");
  std::fflush(stderr);
  drawn_ = false;
}

}  // namespace limpid::cli
