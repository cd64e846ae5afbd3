#include "cli/line_reader.h"

#include <fcntl.h>
#include <histedit.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <clocale>
#include <cstdio>
#include <cstring>
#include <cwchar>
#include <iostream>
#include <utility>

#include "base/check.h"
#include "cli/line_history.h"
#include "cli/output.h"
#include "cli/signals.h"

// The way of a key:
//
//   terminal -> read_key() -> libedit, which edits the line -> el_gets() -> next()
//   Ctrl-C, window size, Ctrl-Z -> handler -> pipe -> read_key(), between two keys
//
// libedit asks for a key and waits, so all other events must reach it through read_key(), which
// polls the terminal and the pipe together.
namespace limpid::cli {
namespace {

// Lines of a file or a pipe. A carriage return before the newline does not count.
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

// A terminal in this mode puts kPasteBegin and kPasteEnd around a paste (xterm's
// "bracketed paste").
constexpr const char* kPasteOn = "\x1b[?2004h";
constexpr const char* kPasteOff = "\x1b[0m\x1b[?2004l";
constexpr const char* kPasteBegin = "\x1b[200~";
constexpr std::wstring_view kPasteEnd = L"\x1b[201~";
// Around what libedit must not count when it computes columns.
constexpr wchar_t kUncounted = L'\1';

// Lines that a person edits with libedit, which gets its characters from read_key().
class TerminalReader : public LineReader {
 public:
  TerminalReader() : out_(stdout_is_terminal() ? stdout : stderr), style_(fileno(out_)) {
    // libedit edits characters, not bytes, in a UTF-8 locale.
    const char* locale = std::setlocale(LC_CTYPE, "");
    if (locale == nullptr || std::string_view(locale) == "C") std::setlocale(LC_CTYPE, "C.UTF-8");
    // The prompt goes to the terminal even when the answers go elsewhere.
    edit_ = el_init("limpid", stdin, out_, stderr);
    LIMPID_CHECK(ResourceError, edit_ != nullptr, "cannot edit lines on this terminal; try a pipe");
    el_set(edit_, EL_CLIENTDATA, this);
    el_wset(edit_, EL_PROMPT_ESC, show_prompt, kUncounted);
    el_set(edit_, EL_EDITOR, "emacs");
    el_set(edit_, EL_HIST, history, history_.get());
    el_wset(edit_, EL_GETCFN, read_key);
    el_set(edit_, EL_ADDFN, "limpid-paste", "inserts what is pasted", insert_paste);
    el_set(edit_, EL_ADDFN, "limpid-newline", "begins another line", insert_newline);
    el_set(edit_, EL_BIND, kPasteBegin, "limpid-paste", nullptr);
    el_set(edit_, EL_BIND, "\x1b\n", "limpid-newline", nullptr);
    el_set(edit_, EL_BIND, "\x1b\r", "limpid-newline", nullptr);
    el_set(edit_, EL_BIND, "^R", "em-inc-search-prev", nullptr);
    // While no line is edited: neither echo nor waiting for a whole line. What is typed then stays
    // in the terminal's queue until the next line is edited.
    el_set(edit_, EL_SETTY, "-x", "-echo", "-icanon", "-icrnl", "-inlcr", nullptr);
    // So that a pasted \r\n is one newline:
    el_set(edit_, EL_SETTY, "-d", "-icrnl", "-inlcr", nullptr);
    if (terminal_has_escapes()) {
      set_farewell(kPasteOff);
      write_terminal(kPasteOn);
    }
  }
  ~TerminalReader() override {
    if (terminal_has_escapes()) write_terminal(kPasteOff);
    set_farewell(nullptr);
    el_end(edit_);
  }
  TerminalReader(const TerminalReader&) = delete;
  TerminalReader& operator=(const TerminalReader&) = delete;

  std::optional<std::string> next(const char* prompt) override {
    while (signals_.next() != 0) {  // came between two lines; libedit asks for the size
    }
    const std::string_view style = style_.question();
    prompt_ = style.empty() ? L"" : L"\1" + std::wstring(style.begin(), style.end()) + L"\1";
    prompt_ += std::wstring(prompt, prompt + std::strlen(prompt));
    prompt_width_ = static_cast<int>(std::strlen(prompt));
    int n_read = 0;
    const char* line = el_gets(edit_, &n_read);
    write_terminal(style_.reset());
    if (line == nullptr || n_read <= 0) {  // libedit stays in the line
      write_terminal("\n");
      return std::nullopt;
    }
    std::string text(line, static_cast<size_t>(n_read));
    while (!text.empty() && (text.back() == '\n' || text.back() == '\r')) text.pop_back();
    return text;
  }
  void remember(const std::string& turn) override { history_.add(turn); }
  [[nodiscard]] bool is_person() const override { return true; }

 private:
  static TerminalReader& of(EditLine* edit) {
    void* self = nullptr;
    el_get(edit, EL_CLIENTDATA, &self);
    return *static_cast<TerminalReader*>(self);
  }
  static wchar_t* show_prompt(EditLine* edit) { return of(edit).prompt_.data(); }

  // Reads a byte of the terminal: 1, or 0 at the end of input, or -1 when Ctrl-C came.
  int read_byte(char& byte) {
    while (true) {
      pollfd sources[] = {{STDIN_FILENO, POLLIN, 0}, {signals_.read_end(), POLLIN, 0}};
      if (poll(sources, 2, -1) < 0) continue;  // a signal, which the pipe will tell
      if (sources[1].revents != 0) {
        const char signal = signals_.next();
        if (signal == 'i') return -1;
        if (signal == 'w') draw_anew();
        if (signal == 'c') resume();
        continue;
      }
      const ssize_t n_read = read(STDIN_FILENO, &byte, 1);
      if (n_read >= 0 || errno != EINTR) return static_cast<int>(n_read);
    }
  }

  // libedit's source of characters, with the results of read_byte(). A byte that cuts a character
  // short is the next key: Enter after the é of Latin-1 ends the line.
  static int read_key(EditLine* edit, wchar_t* key) {
    TerminalReader& self = of(edit);
    std::mbstate_t state{};
    for (bool is_begun = false;; is_begun = true) {
      char byte = std::exchange(self.unread_, '\0');
      const int n_read = byte != '\0' ? 1 : self.read_byte(byte);
      if (n_read <= 0) return n_read;
      const size_t length = std::mbrtowc(key, &byte, 1, &state);
      if (length == static_cast<size_t>(-2)) continue;  // more bytes of the character follow
      if (length == static_cast<size_t>(-1)) {
        *key = L'\xFFFD';
        if (is_begun) self.unread_ = byte;
      }
      return 1;
    }
  }

  // Terminals send a carriage return for each newline of what is pasted.
  static unsigned char insert_paste(EditLine* edit, int /*key*/) {
    std::wstring text;
    while (!text.ends_with(kPasteEnd)) {
      wchar_t key = 0;
      if (el_wgetc(edit, &key) != 1) return CC_EOF;
      text += key;
    }
    text.resize(text.size() - kPasteEnd.size());
    std::wstring shown;
    for (size_t i = 0; i < text.size(); ++i) {
      const bool newline_follows = i + 1 < text.size() && text[i + 1] == L'\n';
      if (text[i] == L'\t') {
        shown += L"    ";  // libedit shows a tab as wide as the column says, which a resize changes
      } else if (text[i] != L'\r') {
        shown += text[i];
      } else if (!newline_follows) {
        shown += L'\n';
      }
    }
    if (!shown.empty()) el_winsertstr(edit, shown.c_str());
    return CC_REFRESH;
  }

  static unsigned char insert_newline(EditLine* edit, int /*key*/) {
    el_winsertstr(edit, L"\n");
    return CC_REFRESH;
  }

  // After Ctrl-Z the shell has left the terminal in its own mode, and has written to it.
  void resume() {
    el_set(edit_, EL_PREP_TERM, 0);
    el_set(edit_, EL_PREP_TERM, 1);
    write_terminal("\n" + std::string(style_.question()));
    el_set(edit_, EL_REFRESH);
  }

  // After the window changed its size. Most terminals then break again the lines that they broke
  // themselves, but not where a program moved to the next row, as libedit does after a row that
  // ends with spaces. So libedit draws into nothing, only to know where things are, and the text is
  // written here in one piece, which leaves all the breaking to the terminal.
  void draw_anew() {
    if (!terminal_has_escapes()) return;
    const LineInfoW* line = el_wline(edit_);
    const std::wstring text(line->buffer, line->lastchar);
    const auto cursor = static_cast<size_t>(line->cursor - line->buffer);
    winsize window{};
    ioctl(fileno(out_), TIOCGWINSZ, &window);
    const TextPlace now = place_after(text.substr(0, cursor), prompt_width_, window.ws_col);
    const TextPlace end = place_after(text, prompt_width_, window.ws_col);
    draw_into_nothing();
    write_terminal(up(now.row) + "\r\x1b[J" + std::string(style_.question()));
    std::string drawn(prompt_.end() - prompt_width_, prompt_.end());
    int start = prompt_width_;
    for (size_t from = 0; from <= text.size(); start = 0) {
      const size_t newline = std::min(text.find(L'\n', from), text.size());
      const std::wstring part = text.substr(from, newline - from);
      for (const wchar_t character : part) append_shown(character, drawn);
      // A terminal waits at the right margin for one more character before it goes to the next row.
      if (!part.empty() && place_after(part, start, window.ws_col).column == 0) drawn += " \r";
      if (newline < text.size()) drawn += "\r\n";
      from = newline + 1;
    }
    drawn += up(end.row - now.row) + "\r";
    if (now.column > 0) drawn += fmt::format("\x1b[{}C", now.column);
    write_terminal(drawn);
  }

  void draw_into_nothing() {
    const OpenFile nothing(std::fopen("/dev/null", "w"));
    if (nothing == nullptr) return;
    el_set(edit_, EL_SETFP, 1, nothing.get());
    el_resize(edit_);
    el_set(edit_, EL_REFRESH);
    el_set(edit_, EL_SETFP, 1, out_);
  }

  static std::string up(int rows) { return rows > 0 ? fmt::format("\x1b[{}A", rows) : ""; }

  // As libedit shows it, in as many columns as place_after counts.
  static void append_shown(wchar_t character, std::string& shown) {
    if (character < L' ' || character == 0x7F) {
      shown += {'^', static_cast<char>(character ^ 0x40)};
    } else {
      char bytes[MB_LEN_MAX];
      std::mbstate_t state{};
      const size_t n_bytes = std::wcrtomb(bytes, character, &state);
      if (n_bytes != static_cast<size_t>(-1)) shown.append(bytes, n_bytes);
    }
  }

  void write_terminal(std::string_view text) const {
    std::fwrite(text.data(), 1, text.size(), out_);
    std::fflush(out_);
  }

  std::FILE* out_;
  TerminalStyle style_;
  SignalPipe signals_{O_NONBLOCK};  // of those that come while libedit waits for a key
  LineHistory history_{chat_history_path()};
  EditLine* edit_ = nullptr;
  std::wstring prompt_;
  int prompt_width_ = 0;  // columns
  char unread_ = '\0';    // a byte that read_key() gives next
};

}  // namespace

// Counts as a terminal does: a character that does not fit goes to the next row as a whole.
TextPlace place_after(std::wstring_view text, int start, int columns) {
  TextPlace place{0, start};
  for (const wchar_t character : text) {
    if (character == L'\n') {
      place = {place.row + 1, 0};
      continue;
    }
    const bool is_control = character < L' ' || character == 0x7F;  // shown as ^X
    const int width = is_control ? 2 : std::max(wcwidth(character), 0);
    if (columns > 0 && place.column + width > columns) place = {place.row + 1, 0};
    place.column += width;
    if (place.column == columns) place = {place.row + 1, 0};
  }
  return place;
}

std::unique_ptr<LineReader> make_line_reader() {
  if (stdin_is_terminal()) return std::make_unique<TerminalReader>();
  return std::make_unique<PipeReader>();
}

}  // namespace limpid::cli
