// Output: data on stdout, everything else on stderr. Characters that a terminal would obey instead
// of show (terminal_text.h) are escaped here, and only here.
#pragma once

#include <cstdint>
#include <cstdio>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "base/json_text.h"
#include "base/stopwatch.h"

namespace limpid::cli {

// Writes `data` byte for byte unless stdout is a terminal. `style` is an escape sequence for it
// (TerminalStyle), or "". Throws ResourceError when that fails (disk full).
void write_out(std::string_view data, std::string_view style = {});
void flush_out();

// Keys stay in the order in which they are added.
using Json = nlohmann::ordered_json;
// Writes dump_json's text to stdout, and a newline.
void write_json(const Json& json, int indent = -1);

// "limpid: …" on stderr, in one line: newlines in `message` become blanks.
void print_error(std::string_view message);
// The same with `path` and then `problem`, for a signal handler. Async-signal-safe.
void print_error_in_handler(std::string_view path, std::string_view problem) noexcept;
// A line of log on stderr.
void print_log(std::string_view message);
// From now on each line of log is a JSON object: {"time": "2026-11-23T14:30:32.125Z", "message":
// …}.
void set_json_log();
// A line of log about something that happens often; line breaks in it become \n. As JSON it is
// `name`, as the message, with `members`.
void print_event(std::string_view line, std::string_view name, const Json& members);

// How text looks on a person's terminal: escape sequences (ECMA-48, SGR), or "" where nothing may
// be styled. That is where `descriptor` is not a terminal, NO_COLOR is set and not empty
// (no-color.org), or TERM is unset or `dumb`.
class TerminalStyle {
 public:
  explicit TerminalStyle(int descriptor);

  [[nodiscard]] std::string_view question() const { return styled_ ? "\x1b[1;36m" : ""; }
  [[nodiscard]] std::string_view reset() const { return styled_ ? "\x1b[0m" : ""; }
  [[nodiscard]] std::string_view note() const { return styled_ ? "\x1b[2m" : ""; }
  [[nodiscard]] std::string_view name() const { return styled_ ? "\x1b[1m" : ""; }
  [[nodiscard]] std::string_view positive() const { return styled_ ? "\x1b[34m" : ""; }
  [[nodiscard]] std::string_view negative() const { return styled_ ? "\x1b[33m" : ""; }
  [[nodiscard]] std::string_view alarm() const { return styled_ ? "\x1b[1;31m" : ""; }

 private:
  bool styled_;
};

// Whether TERM names a terminal that understands escape sequences.
bool terminal_has_escapes();

// A line on stderr about the conversation, not part of it.
void print_note(std::string_view text);

bool stdin_is_terminal();
bool stdout_is_terminal();
bool stderr_is_terminal();

// How many characters fit in a line of the terminal at `descriptor`; 80 where there is none.
size_t terminal_columns(int descriptor);

// "1 file", "2 files".
std::string count(uint64_t n, std::string_view noun);

// "1.2 GB", decimal as disks and bandwidths are counted.
std::string format_bytes(uint64_t n_bytes);

struct CloseFile {
  void operator()(std::FILE* file) const { std::fclose(file); }
};
using OpenFile = std::unique_ptr<std::FILE, CloseFile>;

// A file's bytes; "-" is stdin. Throws ResourceError.
std::string read_text(const std::string& path);

// "title [###...]  30% note" in fewer than `n_columns` characters: the bar gets shorter, then the
// note goes, then the bar, then the percentage, then the end of the title.
std::string progress_line(std::string_view title, double share, std::string_view note,
                          size_t n_columns);

// One line on a terminal's stderr that fills; nothing elsewhere.
class ProgressBar {
 public:
  explicit ProgressBar(std::string title);
  ~ProgressBar();  // wipes the line
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;

  // `note` follows the bar. Draws at most ten times a second.
  void show(double done, double total, std::string_view note = {});
  // A callback of progress for the library, which shows "1.2 GB of 3.4 GB" and never cancels. The
  // bar must outlive it.
  std::function<bool(uint64_t done, uint64_t total)> of_bytes();
  void wipe();

 private:
  std::string title_;
  bool live_;
  bool drawn_ = false;
  Stopwatch since_drawn_;
};

}  // namespace limpid::cli
