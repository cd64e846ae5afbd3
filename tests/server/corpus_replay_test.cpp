// Replays the checked-in corpus of fuzz/fuzz_request.cpp; a finding becomes a file there.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "data_paths.h"
#include "server/untrusted_request.h"

namespace limpid {
namespace {

TEST(RequestCorpus, IsReplayed) {
  size_t n_files = 0;
  for (const auto& entry :
       std::filesystem::directory_iterator(testing::source_path("fuzz/corpus/request"))) {
    std::ifstream file(entry.path(), std::ios::binary);
    const std::string text(std::istreambuf_iterator<char>(file), {});
    const std::string name = entry.path().filename().string();
    const bool is_refused = name.starts_with("refused-");
    EXPECT_EQ(check_untrusted_request(text),
              is_refused ? RequestVerdict::kRefused : RequestVerdict::kAccepted)
        << name;
    ++n_files;
  }
  EXPECT_GE(n_files, 8U);
}

}  // namespace
}  // namespace limpid
