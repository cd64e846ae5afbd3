// The next line of a person (edited, with history) or of a pipe.
#pragma once

#include <memory>
#include <optional>
#include <string>

namespace limpid::cli {

class LineReader {
 public:
  virtual ~LineReader() = default;
  // Without its newline; nothing at the end of input. `prompt` is shown to a person only.
  virtual std::optional<std::string> next(const char* prompt) = 0;
  [[nodiscard]] virtual bool is_person() const = 0;
};

// Chooses by whether standard input is a terminal.
std::unique_ptr<LineReader> make_line_reader();

}  // namespace limpid::cli
