#include "cli/line_reader.h"

#include <histedit.h>

#include <clocale>
#include <cstdio>
#include <iostream>

#include "base/check.h"
#include "cli/output.h"

namespace limpid::cli {
namespace {

constexpr int kHistoryLines = 1000;

class PipeReader : public LineReader {
 public:
  std::optional<std::string> next(const char* /*prompt*/) override {
    std::string line;
    if (!std::getline(std::cin, line)) return std::nullopt;
    if (!line.empty() && line.back() == '\r') line.pop_back();
    return line;
  }
  [[nodiscard]] bool is_person() const override { return false; }
};

// libedit wants a function for the prompt.
const char* current_prompt = "> ";
char* show_prompt(EditLine* /*edit*/) { return const_cast<char*>(current_prompt); }

class TerminalReader : public LineReader {
 public:
  TerminalReader() {
    // libedit edits characters, not bytes, in a UTF-8 locale.
    const char* locale = std::setlocale(LC_CTYPE, "");
    if (locale == nullptr || std::string_view(locale) == "C") std::setlocale(LC_CTYPE, "C.UTF-8");
    // The prompt belongs to the terminal, also when the answers go elsewhere.
    edit_ = el_init("limpid", stdin, stdout_is_terminal() ? stdout : stderr, stderr);
    history_ = history_init();
    LIMPID_CHECK(ResourceError, edit_ != nullptr && history_ != nullptr,
                 "cannot edit lines on this terminal; try a pipe");
    HistEvent event;
    history(history_, &event, H_SETSIZE, kHistoryLines);
    history(history_, &event, H_SETUNIQUE, 1);
    el_set(edit_, EL_PROMPT, show_prompt);
    el_set(edit_, EL_EDITOR, "emacs");
    el_set(edit_, EL_HIST, history, history_);
  }
  ~TerminalReader() override {
    if (history_ != nullptr) history_end(history_);
    if (edit_ != nullptr) el_end(edit_);
  }
  TerminalReader(const TerminalReader&) = delete;
  TerminalReader& operator=(const TerminalReader&) = delete;

  std::optional<std::string> next(const char* prompt) override {
    current_prompt = prompt;
    int n_read = 0;
    const char* line = el_gets(edit_, &n_read);
    if (line == nullptr || n_read <= 0) return std::nullopt;
    std::string text(line, static_cast<size_t>(n_read));
    while (!text.empty() && (text.back() == '\n' || text.back() == '\r')) text.pop_back();
    HistEvent event;
    if (!text.empty()) history(history_, &event, H_ENTER, text.c_str());
    return text;
  }
  [[nodiscard]] bool is_person() const override { return true; }

 private:
  EditLine* edit_ = nullptr;
  History* history_ = nullptr;
};

}  // namespace

std::unique_ptr<LineReader> make_line_reader() {
  if (stdin_is_terminal()) return std::make_unique<TerminalReader>();
  return std::make_unique<PipeReader>();
}

}  // namespace limpid::cli
