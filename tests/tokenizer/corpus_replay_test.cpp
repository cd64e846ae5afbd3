// Replays the checked-in corpus of fuzz/fuzz_tokenizer.cpp; a finding becomes a file there.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "data_paths.h"
#include "tokenizer/untrusted_tokenizer.h"

namespace limpid {
namespace {

TEST(TokenizerCorpus, IsReplayed) {
  size_t n_files = 0;
  for (const auto& entry :
       std::filesystem::directory_iterator(testing::source_path("fuzz/corpus/tokenizer"))) {
    std::ifstream file(entry.path(), std::ios::binary);
    const std::string text(std::istreambuf_iterator<char>(file), {});
    const std::string name = entry.path().filename().string();
    const bool is_finding = name.rfind("crash-", 0) == 0 || name.rfind("timeout-", 0) == 0;
    const TokenizerVerdict verdict = check_untrusted_tokenizer(text);
    EXPECT_NE(verdict, TokenizerVerdict::kBroken) << name;
    if (!is_finding) {
      EXPECT_EQ(verdict, TokenizerVerdict::kAccepted) << name;
    }
    ++n_files;
  }
  EXPECT_GE(n_files, 7U);
}

}  // namespace
}  // namespace limpid
