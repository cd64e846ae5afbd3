#include "cli/error_words.h"

#include <gtest/gtest.h>

#include <limits>

#include "limpid/error.hpp"

namespace limpid::cli {
namespace {

TEST(ErrorWords, OptionsOfTheLibraryAreFlags) {
  EXPECT_EQ(in_program_words(ResourceError("raise OpenOptions::n_ctx or OpenOptions::n_batch")),
            "raise -c or -b");
  EXPECT_EQ(in_program_words(FormatError("a.pth", 7, "dim", "give OpenOptions::config")),
            "a.pth: at byte 7: dim: give --config");
  EXPECT_EQ(in_program_words(ArgumentError("RunSettings::seq_len is 0; see RunSettings::beta2, "
                                           "RunSettings::model")),
            "--seq-len is 0; see --beta2, -m");
  EXPECT_EQ(in_program_words(Error("nothing of the kind")), "nothing of the kind");
}

TEST(ErrorWords, PartsOfTheLibraryAreNotNamed) {
  EXPECT_EQ(in_program_words(ArgumentError("[session] lower n_keep or raise n_ctx")),
            "lower --keep or raise -c");
  EXPECT_EQ(in_program_words(ArgumentError("[sampler] unknown sampler 'x'")),
            "unknown sampler 'x'");
  // A key of a file is not an option.
  EXPECT_EQ(in_program_words(FormatError("config.json", FormatError::kNoOffset, "n_ctx", "is 0")),
            "config.json: n_ctx: is 0");
}

TEST(ErrorWords, AdviceIsForEveryCommand) {
  EXPECT_EQ(in_program_words(UnsupportedError("a file in f16, or set "
                                              "PlanOptions::allow_requantize")),
            "a file in f16, or make the file by limpid convert or limpid quantize with "
            "--allow-requantize");
  EXPECT_EQ(in_program_words(ResourceError("[cuda] NVIDIA's driver finds no GPU; name a device "
                                           "that is here (OpenOptions::device): cpu, opencl")),
            "NVIDIA's driver finds no GPU; see limpid doctor, or name a device that is here "
            "(--device): cpu, opencl");
  EXPECT_EQ(in_program_words(ResourceError("[server] cannot listen on 127.0.0.1 port 80: "
                                           "Address already in use")),
            "cannot listen on 127.0.0.1 port 80: another program has the port; choose one with "
            "--port");
}

TEST(ErrorWords, TheContextThatIsAdvisedHoldsTheAnswerToo) {
  EXPECT_EQ(
      in_program_words(ContextOverflowError(300, 256, 332)),
      "the sequence has 300 tokens and the context holds 256: shorten the text, or use -c 332");
}

TEST(ErrorWords, NoContextIsAdvisedThatNobodyHas) {
  EXPECT_EQ(in_program_words(ContextOverflowError(300, 256, std::numeric_limits<int64_t>::max())),
            "the sequence has 300 tokens and the context holds 256: shorten the text, or use a "
            "larger -c and a smaller -n");
}

}  // namespace
}  // namespace limpid::cli
