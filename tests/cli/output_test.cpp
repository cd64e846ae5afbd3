// Lines that the program draws, and words for what others reported.
#include "cli/output.h"

#include <gtest/gtest.h>

#include "cli/inspect.h"
#include "cli/pull.h"
#include "cli/terminal_text.h"

namespace limpid::cli {
namespace {

TEST(ProgressLine, ShowsTheShare) {
  EXPECT_EQ(progress_line("loading", 0.5, "1 of 2", 80),
            "loading [###############...............]  50% 1 of 2");
  EXPECT_EQ(progress_line("loading", 1, "", 80), "loading [##############################] 100% ");
}

// A line that fills the terminal would wrap, and a carriage return would then overwrite its end
// only.
TEST(ProgressLine, IsShorterThanAnyTerminal) {
  for (size_t n_columns = 1; n_columns <= 120; ++n_columns) {
    const std::string line = progress_line("downloading smollm2", 0.25,
                                           "model.safetensors: 1.2 GB of 3.4 GB", n_columns);
    EXPECT_LT(n_characters(line), n_columns) << line;
    EXPECT_EQ(line.find('[') != std::string::npos, n_columns >= 19 + 9 + 5 + 1) << line;
  }
}

TEST(SpeedText, OfASlowModelIsNotZero) {
  EXPECT_EQ(speed_text(286.04), "286.0");
  EXPECT_EQ(speed_text(1), "1.0");
  EXPECT_EQ(speed_text(0.0264), "0.026");
}

TEST(PipFailure, ReasonsAreSaidInWordsAndTracebacksAreNot) {
  EXPECT_EQ(
      why_pip_failed("WARNING: Retrying (Retry(total=0)) after connection broken by "
                     "'NewConnectionError('<pip._vendor>: Failed to establish a new "
                     "connection: [Errno -3] Temporary failure in name resolution')'\n"
                     "ERROR: Could not find a version that satisfies the requirement x\n"
                     "ERROR: No matching distribution found for x\n"),
      "pip does not reach its index: is there a network, and a proxy to name in https_proxy?");
  EXPECT_EQ(why_pip_failed("Traceback (most recent call last):\n  File \"base.py\", line 180\n"
                           "OSError: [Errno 28] No space left on device\n"),
            "the disk is full: free some space, or set XDG_CACHE_HOME to another disk");
  EXPECT_EQ(why_pip_failed("ERROR: No matching distribution found for x\n"),
            "the package is not in pip's index: does `pip config list` name a mirror?");
  EXPECT_EQ(why_pip_failed("something\nERROR: never heard of before\n\n"),
            "ERROR: never heard of before");
  EXPECT_EQ(why_pip_failed(""), "pip says nothing");
}

// llama.cpp: "quant is optional, case-insensitive, default to Q4_K_M, or falls back to the first
// file in the repo if Q4_K_M doesn't exist".
TEST(GgufOfType, IsTheOneThatLlamaCppTakes) {
  const std::vector<std::string> names = {"config.json", "mmproj-F16.gguf", "m-F16.gguf",
                                          "m-Q4_K_M.gguf", "m-q8_0.gguf"};
  EXPECT_EQ(gguf_of_type(names, ""), "m-Q4_K_M.gguf");
  EXPECT_EQ(gguf_of_type(names, "Q8_0"), "m-q8_0.gguf");
  EXPECT_EQ(gguf_of_type(names, "f16"), "m-F16.gguf");
  EXPECT_EQ(gguf_of_type(names, "q2_k"), "");
  EXPECT_EQ(gguf_of_type({"README.md", "b-F32.gguf", "a-F16.gguf"}, ""), "b-F32.gguf");
  EXPECT_EQ(gguf_of_type({"config.json"}, ""), "");
}

}  // namespace
}  // namespace limpid::cli
