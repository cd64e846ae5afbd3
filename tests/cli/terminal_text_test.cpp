// What reaches a terminal: characters that it shows, and one line when a mapped file goes away.
#include "cli/terminal_text.h"

#include <gtest/gtest.h>

#include <csignal>
#include <filesystem>

#include "base/atomic_file.h"
#include "base/mapped_file.h"
#include "checkpoint/temp_file.h"
#include "cli/signals.h"

namespace limpid::cli {
namespace {

namespace fs = std::filesystem;

TEST(TerminalText, WhatATerminalShowsPasses) {
  // Hebrew, Persian with a joiner, an emoji of three people, a tilde on an n, the last code point.
  for (const char* text : {"", "a\n\tb", "a\r\nb", "שלום\u200f", "می\u200cخواهم",
                           "👩‍👩‍👧", "n\u0303", "\U0010FFFF"})
    EXPECT_EQ(for_terminal(text), text);
}

TEST(TerminalText, WhatATerminalObeysIsEscaped) {
  EXPECT_EQ(for_terminal("\x1b]0;title\a"), "\\u001b]0;title\\u0007");
  EXPECT_EQ(for_terminal("a\rb\x7f"), "a\\u000db\\u007f");
  EXPECT_EQ(for_terminal(std::string_view("\0", 1)), "\\u0000");
  EXPECT_EQ(for_terminal("\u009b31m"), "\\u009b31m");
  EXPECT_EQ(for_terminal("safe\u202egnp.exe\u2066"), "safe\\u202egnp.exe\\u2066");
}

TEST(TerminalText, EveryControlAndNothingElseIsEscaped) {
  const auto utf8 = [](uint32_t code) {
    if (code < 0x80) return std::string{static_cast<char>(code)};
    return std::string{static_cast<char>(0xC0U | code >> 6U),
                       static_cast<char>(0x80U | (code & 0x3FU))};
  };
  for (uint32_t code = 0; code < 0x100; ++code) {  // ISO 8859-1: controls are 00-1F and 7F-9F
    const bool control = code < 0x20 || (code >= 0x7F && code <= 0x9F);
    const bool passes = !control || code == '\n' || code == '\t';
    EXPECT_EQ(for_terminal(utf8(code)) == utf8(code), passes) << code;
  }
}

TEST(TerminalText, WhatIsNotUtf8IsEscapedByteByByte) {
  EXPECT_EQ(for_terminal("a\xff\xc3"), "a\\xff\\xc3");                  // cut at the end
  EXPECT_EQ(for_terminal("\xc0\xaf"), "\\xc0\\xaf");                    // overlong '/'
  EXPECT_EQ(for_terminal("\xe0\x82\x9b"), "\\xe0\\x82\\x9b");           // overlong U+009B
  EXPECT_EQ(for_terminal("\xed\xa0\x80"), "\\xed\\xa0\\x80");           // a surrogate
  EXPECT_EQ(for_terminal("\xf4\x90\x80\x80"), "\\xf4\\x90\\x80\\x80");  // above U+10FFFF
  EXPECT_EQ(for_terminal("\x9b"
                         "31m"),
            "\\x9b31m");
}

TEST(TerminalText, InQuotesNothingIsLeftToObey) {
  EXPECT_EQ(in_quotes(" a\n\t\"é"), R"(" a\n\t\"é")");
  EXPECT_EQ(in_quotes("\x1b[2J\r\n\x7f"), R"("\u001b[2J\r\n\u007f")");
  EXPECT_EQ(in_quotes("\u009b31m\u202e"), R"("\u009b31m\u202e")");
}

// A byte is told from the text that looks like its escape.
TEST(TerminalText, InQuotesABytesEscapeIsNotEscapedAgain) {
  EXPECT_EQ(in_quotes("\xe2\n"), R"("\xe2\n")");
  EXPECT_EQ(in_quotes(R"(\xe2)"), R"("\\xe2")");
  EXPECT_EQ(in_quotes(""), R"("")");
}

// Reads a mapped file after it was truncated, with another file half written.
void read_what_is_gone(const std::string& path) {
  handle_signals();
  const auto file = MappedFile::open(path);
  AtomicFile half(path + ".out");
  half.write("half");
  fs::resize_file(path, 0);
  const volatile std::byte* bytes = file->bytes().data();
  [[maybe_unused]] const std::byte first = bytes[0];
}

TEST(BusErrorDeathTest, ATruncatedFileIsNamedAndNothingIsLeft) {
  const TempFolder folder;
  const std::string path = folder.write("a\x1bmodel.gguf", std::string(100'000, 'x'));
  EXPECT_EXIT(read_what_is_gone(path), testing::ExitedWithCode(1),
              "^limpid: [^\n]*/a\\?model.gguf became unreadable while it was in use: it was "
              "truncated, or its disk failed\n$");
  EXPECT_EQ(std::distance(fs::directory_iterator(folder.folder()), {}), 1);
}

TEST(BusErrorDeathTest, AnyOtherBusErrorEndsTheProcessAsBefore) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "the sanitizer has a handler of its own for SIGBUS";
#endif
  const auto raise_another = [] {
    handle_signals();
    raise(SIGBUS);
  };
  // An emulator of another CPU has a line of its own.
  EXPECT_EXIT(raise_another(), testing::KilledBySignal(SIGBUS),
              "^(qemu: uncaught target signal 7 [^\n]*\n)?$");
}

}  // namespace
}  // namespace limpid::cli
