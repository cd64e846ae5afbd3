// Standard output gets only the result of a command, so that it can be piped; bars, notes and
// errors go to standard error. Characters that a terminal would obey are escaped on standard error
// always, and on standard output if that is a terminal: a file or a pipe gets every byte unchanged.
#include "cli/output.h"

#include <fmt/chrono.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/check.h"
#include "base/paths.h"
#include "base/text.h"
#include "base/utf8.h"
#include "cli/flags.h"
#include "cli/terminal_text.h"

namespace limpid::cli {
namespace {

std::atomic<bool> bar_is_drawn = false;  // of a ProgressBar
std::atomic<bool> log_is_json = false;

// Standard output without stdio. stdio loses what it has kept when Ctrl-C interrupts its write, and
// if Ctrl-C were held back, a program could not be interrupted while its pipe is full.
class Output {
 public:
  ~Output() {
    try {
      flush();
    } catch (const ResourceError&) {  // the program ends with an error already
    }
  }

  void add(std::string_view data) {
    constexpr size_t kMost = 4096;
    if (kept_.size() + data.size() > kMost) flush();
    if (data.size() > kMost) return write(data);
    kept_ += data;
  }
  void flush() { write(std::exchange(kept_, {})); }

 private:
  static void write(std::string_view data) {
    while (!data.empty()) {
      const ssize_t n = ::write(STDOUT_FILENO, data.data(), data.size());
      LIMPID_CHECK(ResourceError, n >= 0 || errno == EINTR, "cannot write to standard output: {}",
                   std::strerror(errno));
      data.remove_prefix(static_cast<size_t>(std::max<ssize_t>(n, 0)));
    }
  }

  std::string kept_;
};

Output output;

// A message that standard error does not take is lost (a log on a full disk, 2>&-): there is no
// other place for it, and the work can go on.
void write_error(std::string_view text) { std::fwrite(text.data(), 1, text.size(), stderr); }

// UTC, to a millisecond.
std::string time_of_log() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  const auto milliseconds = std::chrono::duration_cast<std::chrono::milliseconds>(now).count();
  const auto time = fmt::gmtime(static_cast<std::time_t>(milliseconds / 1000));
  return fmt::format("{:%Y-%m-%dT%H:%M:%S}.{:03}Z", time, milliseconds % 1000);
}

// One write for a line, so that the lines of several threads do not mix.
void print_json_log(std::string_view message, const Json& members) {
  Json json = {{"time", time_of_log()}, {"message", message}};
  json.update(members);
  write_error(dump_json(json) + "\n");
}

}  // namespace

void write_out(std::string_view data, std::string_view style) {
  static const bool to_terminal = stdout_is_terminal();
  std::string shown;
  if (to_terminal) {
    shown = for_terminal(data);
    if (!style.empty()) shown = fmt::format("{}{}\x1b[0m", style, shown);
    data = shown;
  }
  output.add(data);
  if (to_terminal && data.find('\n') != data.npos) output.flush();
}

void flush_out() { output.flush(); }

void write_json(const Json& json, int indent) { write_out(dump_json(json, indent) + "\n"); }

// One line, so that scripts and logs can take a line as an error.
void print_error(std::string_view message) {
  write_error(fmt::format("limpid: {}\n", for_terminal(replaced(message, "\n", " "))));
}

// Fills a buffer on the stack and writes it at once: neither malloc nor stdio may be used here.
// Characters that a terminal would obey become question marks.
void print_error_in_handler(std::string_view path, std::string_view problem) noexcept {
  char line[4096];
  size_t n = 0;
  const auto add = [&](std::string_view text) {
    for (const char c : text.substr(0, sizeof line - n)) line[n++] = c;
  };
  if (bar_is_drawn) add("\r\x1b[K");
  add("limpid: ");
  while (!path.empty() && n + problem.size() + 8 < sizeof line) {
    const auto [code, size] = unicode::decode(path);
    add(is_harmless(code) && code >= ' ' ? path.substr(0, size) : "?");
    path.remove_prefix(size);
  }
  add(problem);
  add("\n");
  [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, line, n);
}

void set_json_log() { log_is_json = true; }

// A path that a client asks for may hold a line break (%0A), after which the client could write a
// line of log of its own.
void print_event(std::string_view line, std::string_view name, const Json& members) {
  if (log_is_json) return print_json_log(name, members);
  print_log(replaced(line, "\n", "\\n"));
}

void print_log(std::string_view message) {
  if (log_is_json) return print_json_log(message, Json::object());
  write_error(for_terminal(message) + "\n");
}

bool terminal_has_escapes() {
  const std::string term = environment("TERM");
  return !term.empty() && term != "dumb";
}

TerminalStyle::TerminalStyle(int descriptor)
    : styled_(isatty(descriptor) != 0 && terminal_has_escapes() &&
              environment("NO_COLOR").empty()) {}

void print_note(std::string_view text) {
  const TerminalStyle style(STDERR_FILENO);
  write_error(fmt::format("{}{}{}\n", style.note(), for_terminal(text), style.reset()));
}

bool stdin_is_terminal() { return isatty(STDIN_FILENO) != 0; }
bool stdout_is_terminal() { return isatty(STDOUT_FILENO) != 0; }
bool stderr_is_terminal() { return isatty(STDERR_FILENO) != 0; }

std::string count(uint64_t n, std::string_view noun) {
  return fmt::format("{} {}{}", n, noun, n == 1 ? "" : "s");
}

// 98362432 -> "98.4 MB"
std::string format_bytes(uint64_t n_bytes) {
  const auto value = static_cast<double>(n_bytes);
  if (value >= 1e9) return fmt::format("{:.2f} GB", value / 1e9);
  if (value >= 1e6) return fmt::format("{:.1f} MB", value / 1e6);
  if (value >= 1e3) return fmt::format("{:.1f} kB", value / 1e3);
  return fmt::format("{} B", n_bytes);
}

std::string read_text(const std::string& path) {
  const bool from_stdin = path == "-";
  LIMPID_CHECK(ResourceError, from_stdin || !is_folder(path), "{} is a folder, not a file", path);
  const OpenFile opened(from_stdin ? nullptr : std::fopen(path.c_str(), "rb"));
  std::FILE* file = from_stdin ? stdin : opened.get();
  LIMPID_CHECK(ResourceError, file != nullptr, "cannot open {}: {}", shown_path(path),
               std::strerror(errno));
  std::string text;
  char chunk[1 << 16];
  // Less than was asked for is the end. At a terminal another read would wait for one more Ctrl-D.
  for (size_t n_read = sizeof chunk; n_read == sizeof chunk;) {
    n_read = std::fread(chunk, 1, sizeof chunk, file);
    text.append(chunk, n_read);
  }
  LIMPID_CHECK(ResourceError, std::ferror(file) == 0, "cannot read {}: {}",
               from_stdin ? "standard input" : path, std::strerror(errno));
  return text;
}

// Asks the terminal each time, because the window may have changed its size.
size_t terminal_columns(int descriptor) {
  constexpr size_t kUsual = 80;
  winsize size{};
  const bool known = ioctl(descriptor, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
  return known ? size.ws_col : kUsual;
}

// The same line on terminals that get narrower:
//   downloading [############..................]  40% 1.2 GB of 3.0 GB
//   downloading [####......]  40% 1.2 GB of 3.0 GB
//   downloading [######..........]  40%
//   downloading  40%
//
// The bar takes the columns that title, percentage and note leave. Where fewer than five cells are
// left for it, the note goes, then the bar.
std::string progress_line(std::string_view title, double share, std::string_view note,
                          size_t n_columns) {
  constexpr size_t kMostCells = 30;
  constexpr size_t kFewestCells = 5;
  constexpr size_t kAround = 9;                           // " [" and "] 100% "
  const size_t most = n_columns > 0 ? n_columns - 1 : 0;  // the cursor stays in the line
  const auto n_cells = [&](std::string_view text) -> size_t {
    const size_t taken = n_characters(title) + kAround + n_characters(text);
    return taken >= most ? 0 : std::min(kMostCells, most - taken);
  };
  if (n_cells(note) < kFewestCells) note = {};
  const size_t n = n_cells(note);
  const std::string percent = fmt::format("{:3.0f}%", share * 100);
  if (n >= kFewestCells) {
    const auto filled = static_cast<size_t>(share * static_cast<double>(n));
    return fmt::format("{} [{}{}] {} {}", title, std::string(filled, '#'),
                       std::string(n - filled, '.'), percent, note);
  }
  std::string line = fmt::format("{} {}", title, percent);
  while (n_characters(line) > most) line.pop_back();
  return line;
}

ProgressBar::ProgressBar(std::string title)
    : title_(std::move(title)), live_(stderr_is_terminal()) {}

ProgressBar::~ProgressBar() { wipe(); }

// "\r" goes back to the beginning of the line, and "\x1b[K" erases what is left of an older, longer
// one.
void ProgressBar::show(double done, double total, std::string_view note) {
  if (!live_ || total == 0) return;
  if (drawn_ && since_drawn_.seconds() < 0.1) return;
  since_drawn_ = {};
  bar_is_drawn = drawn_ = true;
  const double share = std::min(1.0, done / total);
  const std::string line = progress_line(title_, share, note, terminal_columns(STDERR_FILENO));
  write_error(fmt::format("\r{}\x1b[K", for_terminal(line)));
  std::fflush(stderr);
}

std::function<bool(uint64_t, uint64_t)> ProgressBar::of_bytes() {
  return [this](uint64_t done, uint64_t total) {
    show(done, total, fmt::format("{} of {}", format_bytes(done), format_bytes(total)));
    return true;
  };
}

void ProgressBar::wipe() {
  if (!drawn_) return;
  write_error("\r\x1b[K");
  std::fflush(stderr);
  bar_is_drawn = drawn_ = false;
}

}  // namespace limpid::cli
