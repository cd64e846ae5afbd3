// Runs tests/tokenizer/cases/*.test: text and the ids that Hugging Face `tokenizers` gives for it.
//
//   tokenizer bpe NAME     small_bpe.json with that pre-tokenizer; or: tokenizer spm
//   encode "JSON string"   next line: the ids, without BOS, no control tokens parsed
//   encode_special "…"     the same with all control tokens parsed
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "data_paths.h"
#include "tokenizer/small_vocabulary.h"
#include "tokenizer/tokenizer.h"

namespace limpid {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> case_files() {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(testing::source_path("tests/tokenizer/cases"))) {
    if (entry.path().extension() == ".test") names.push_back(entry.path().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

std::vector<TokenId> parse_ids(const std::string& line) {
  std::istringstream in(line);
  std::vector<TokenId> ids;
  for (TokenId id = 0; in >> id;) ids.push_back(id);
  return ids;
}

std::shared_ptr<const Tokenizer> tokenizer_of(const std::string& line) {
  std::istringstream in(line);
  std::string word, kind, pre;
  in >> word >> kind >> pre;
  return Tokenizer::create(kind == "spm" ? small_vocabulary("spm") : small_bpe(pre));
}

class TokenizerCases : public ::testing::TestWithParam<std::string> {};

TEST_P(TokenizerCases, GiveTheReferencesIds) {
  std::ifstream file(GetParam());
  std::shared_ptr<const Tokenizer> tokenizer;
  std::string line;
  int n_cases = 0;
  for (int number = 1; std::getline(file, line); ++number) {
    if (line.empty() || line[0] == '#') continue;
    if (line.starts_with("tokenizer ")) {
      tokenizer = tokenizer_of(line);
      continue;
    }
    const bool special = line.starts_with("encode_special ");
    ASSERT_TRUE(special || line.starts_with("encode ")) << GetParam() << ":" << number;
    ASSERT_NE(tokenizer, nullptr);
    const std::string text = nlohmann::json::parse(line.substr(line.find(' ') + 1));
    ASSERT_TRUE(std::getline(file, line));
    EncodeOptions options{.add_special = false};
    if (special) options.special.allow = SpecialTokens::Allow::kAll;
    const std::vector<TokenId> ids = tokenizer->encode(text, options);
    EXPECT_EQ(ids, parse_ids(line)) << GetParam() << ":" << number << ": " << nlohmann::json(text);
    // Again, now that the pieces are known: same ids.
    EXPECT_EQ(tokenizer->encode(text, options), ids) << GetParam() << ":" << number;
    ++number;
    ++n_cases;
  }
  EXPECT_GE(n_cases, 60);
}

INSTANTIATE_TEST_SUITE_P(Files, TokenizerCases, ::testing::ValuesIn(case_files()),
                         [](const auto& info) {
                           std::string name = fs::path(info.param).stem().string();
                           std::replace_if(
                               name.begin(), name.end(),
                               [](char c) { return !std::isalnum(static_cast<unsigned char>(c)); },
                               '_');
                           return name;
                         });

// Every scanner has a file of cases that names it.
TEST(TokenizerCases, CoverEveryPreTokenizer) {
  std::vector<PreTokenizer> covered;
  for (const std::string& name : case_files()) {
    const std::string stem = fs::path(name).stem().string();
    if (!stem.starts_with("bpe_")) continue;
    const PreTokenizerRule* rule = find_pre_tokenizer(stem.substr(4));
    ASSERT_NE(rule, nullptr) << stem;
    covered.push_back(rule->pre_tokenizer);
  }
  for (const std::string_view name : pre_tokenizer_names()) {
    const PreTokenizer used = find_pre_tokenizer(name)->pre_tokenizer;
    EXPECT_NE(std::find(covered.begin(), covered.end(), used), covered.end()) << name;
  }
}

}  // namespace
}  // namespace limpid
