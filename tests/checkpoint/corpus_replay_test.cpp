// Replays the checked-in corpus of the fuzz targets; a finding becomes a file there.
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>

#include "checkpoint/llama2c_builder.h"
#include "checkpoint/untrusted_check.h"
#include "data_paths.h"

namespace limpid {
namespace {

std::map<std::string, std::string> corpus(const std::string& target) {
  std::map<std::string, std::string> files;
  for (const auto& entry :
       std::filesystem::directory_iterator(testing::source_path("fuzz/corpus/" + target))) {
    std::ifstream file(entry.path(), std::ios::binary);
    files[entry.path().filename().string()] = {std::istreambuf_iterator<char>(file), {}};
  }
  return files;
}

// A copy of exactly the right size, so that a sanitizer sees a read beyond it.
std::vector<std::byte> copy_of(std::string_view text) {
  std::vector<std::byte> bytes(text.size());
  if (!text.empty()) std::memcpy(bytes.data(), text.data(), text.size());
  return bytes;
}

TEST(CorpusReplay, Gguf) {
  const auto files = corpus("gguf");
  ASSERT_GE(files.size(), 6u);
  for (const auto& [name, text] : files) {
    const Verdict verdict = check_gguf(copy_of(text));
    EXPECT_EQ(verdict, name.starts_with("crash-") ? Verdict::kRefused : Verdict::kAccepted) << name;
  }
}

TEST(CorpusReplay, Safetensors) {
  const auto files = corpus("safetensors");
  ASSERT_GE(files.size(), 3u);
  for (const auto& [name, text] : files) {
    const Verdict verdict = check_safetensors(copy_of(text));
    EXPECT_EQ(verdict, name.starts_with("crash-") ? Verdict::kRefused : Verdict::kAccepted) << name;
  }
}

TEST(CorpusReplay, Llama2c) {
  const auto files = corpus("llama2c");
  ASSERT_GE(files.size(), 4u);
  for (const auto& [name, text] : files) {
    const auto bytes = copy_of(std::string_view(text).substr(1));
    const Verdict verdict = text[0] % 2 == 0
                                ? check_llama2c(bytes)
                                : check_llama2c_tokenizer(bytes, llama2c_test::kTokens);
    EXPECT_EQ(verdict, name.starts_with("crash-") ? Verdict::kRefused : Verdict::kAccepted) << name;
  }
}

TEST(CorpusReplay, Torch) {
  const auto files = corpus("torch");
  ASSERT_GE(files.size(), 5u);
  for (const auto& [name, text] : files) {
    const Verdict verdict = check_torch(copy_of(torch_archive_of(text)));
    EXPECT_EQ(verdict, name.starts_with("crash-") ? Verdict::kRefused : Verdict::kAccepted) << name;
  }
}

TEST(CorpusReplay, ZipArchive) {
  const auto files = corpus("zip_archive");
  ASSERT_GE(files.size(), 3u);
  for (const auto& [name, text] : files) {
    const Verdict verdict = check_zip(copy_of(text));
    EXPECT_EQ(verdict, name.starts_with("crash-") ? Verdict::kRefused : Verdict::kAccepted) << name;
  }
}

}  // namespace
}  // namespace limpid
