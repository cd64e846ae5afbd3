#include "generate/repetition.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <string>
#include <vector>

#include "data_paths.h"
#include "tokenizer/pre_tokenizer_scanners.h"

namespace limpid {
namespace {

// How many tokens have come when a loop is noticed; 0: never.
size_t noticed_after(const std::vector<TokenId>& tokens) {
  RepetitionDetector detector;
  for (size_t n = 1; n <= tokens.size(); ++n) {
    if (detector.update(std::span(tokens).first(n))) return n;
  }
  return 0;
}

// `n` tokens, all different, from `first` on.
std::vector<TokenId> different(int64_t n, TokenId first) {
  std::vector<TokenId> ids;
  for (int64_t i = 0; i < n; ++i) ids.push_back(first + static_cast<TokenId>(i));
  return ids;
}

void append(std::vector<TokenId>& tokens, const std::vector<TokenId>& more) {
  tokens.insert(tokens.end(), more.begin(), more.end());
}

TEST(Repetition, IsNoticedAsSoonAsItIsCertain) {
  for (const int64_t period : {1, 2, 3, 7, 24, 25, 80, 256}) {
    for (const int64_t n_before : {0, 1, 500}) {
      auto tokens = different(n_before, 1000);
      for (int i = 0; i < 100; ++i) append(tokens, different(period, 1));
      EXPECT_EQ(noticed_after(tokens), n_before + std::max<int64_t>(96, 4 * period))
          << "period " << period << " after " << n_before;
    }
  }
}

TEST(Repetition, ALoopMayHoldRepeatsOfItsOwn) {
  // "a b a b c" again and again: the inner repeats neither hide the period of five nor count.
  std::vector<TokenId> tokens;
  for (int i = 0; i < 40; ++i) append(tokens, {1, 2, 1, 2, 3});
  EXPECT_EQ(noticed_after(tokens), 96U);
}

TEST(Repetition, ShortRunsAndLongPeriodsAreLeftAlone) {
  std::vector<TokenId> laugh;
  for (int i = 0; i < 47; ++i) append(laugh, {5, 6});
  append(laugh, {5});
  EXPECT_EQ(noticed_after(laugh), 0U);  // 95 tokens

  std::vector<TokenId> three_times;
  for (int i = 0; i < 3; ++i) append(three_times, different(60, 1));
  append(three_times, different(59, 1));
  EXPECT_EQ(noticed_after(three_times), 0U);

  std::vector<TokenId> too_long;
  for (int i = 0; i < 10; ++i) append(too_long, different(257, 1));
  EXPECT_EQ(noticed_after(too_long), 0U);

  std::vector<TokenId> numbered;  // "1. the same sentence", "2. the same sentence", …
  for (TokenId i = 0; i < 100; ++i) {
    numbered.push_back(1000 + i);
    append(numbered, different(12, 1));
  }
  EXPECT_EQ(noticed_after(numbered), 0U);
}

// The words of a text as Llama 3's tokenizer cuts it, which are its tokens or longer.
std::vector<TokenId> words(const std::string& text) {
  static std::map<std::string, TokenId> ids;
  std::vector<TokenId> tokens;
  pre_tokenizer_scanners::split(
      PreTokenizer::kLlama3, text.data(), text.data() + text.size(),
      [&](const char* begin, size_t size) {
        const auto next = static_cast<TokenId>(ids.size());
        tokens.push_back(ids.try_emplace(std::string(begin, size), next).first->second);
      });
  return tokens;
}

// Prose, tables, code in three languages, and lists of numbers; but not the tables that hold the
// same number a hundred times and more, which are loops in any sense of the word.
TEST(Repetition, IsNotFoundInRealTexts) {
  namespace fs = std::filesystem;
  int64_t n_files = 0;
  for (const char* folder : {"docs", "src", "tests", "tools"}) {
    for (const auto& entry : fs::recursive_directory_iterator(testing::source_path(folder))) {
      const std::string extension = entry.path().extension().string();
      if (extension != ".md" && extension != ".cpp" && extension != ".h" && extension != ".py" &&
          extension != ".json") {
        continue;
      }
      const std::string name = entry.path().filename().string();
      if (name == "unicode_tables.cpp" || name == "small_spm.json" || name == "small_bpe.json")
        continue;
      std::ifstream file(entry.path());
      const std::string text{std::istreambuf_iterator<char>(file), {}};
      EXPECT_EQ(noticed_after(words(text)), 0U) << entry.path();
      ++n_files;
    }
  }
  EXPECT_GT(n_files, 500);
}

}  // namespace
}  // namespace limpid
