// Where things go: data on stdout, everything else on stderr.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace limpid::cli {

// Throws ResourceError when stdout cannot take it (disk full).
void write_out(std::string_view data);
void flush_out();

// "limpid: …" on stderr, in one line whatever `message` holds.
void print_error(std::string_view message);
// A line of log on stderr.
void print_log(std::string_view message);

bool stdin_is_terminal();
bool stdout_is_terminal();
bool stderr_is_terminal();

// "1.2 GB", decimal as disks and bandwidths are counted.
std::string format_bytes(uint64_t n_bytes);

// A file's bytes; "-" is stdin. Throws ResourceError.
std::string read_text(const std::string& path);

// One line on a terminal's stderr that fills; nothing elsewhere.
class ProgressBar {
 public:
  explicit ProgressBar(std::string title);
  ~ProgressBar();  // wipes the line
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;

  // `note` stands behind the bar. Draws at most ten times a second.
  void show(uint64_t done, uint64_t total, std::string_view note = {});
  void wipe();

 private:
  std::string title_;
  bool live_;
  bool drawn_ = false;
  double last_ = 0;
};

}  // namespace limpid::cli
