#include "cli/token_comparison.h"

#include <gtest/gtest.h>

#include "tokenizer/small_vocabulary.h"

namespace limpid::cli {
namespace {

TEST(TokenComparison, RowsEndWhereBothHaveABoundary) {
  const auto bpe = Tokenizer::create(small_bpe("gpt-2"));
  TokenizerSpec framed_spec = small_vocabulary("spm");
  framed_spec.add_bos = true;
  const auto spm = Tokenizer::create(framed_spec);
  const std::string text = "hello world, \xE4\xB8\x80 12";
  const TokenizedText left{"a", bpe.get(), bpe->encode(text), true};
  const TokenizedText right{"b", spm.get(), spm->encode(text), true};
  const auto rows = align_tokens(left, right);
  ASSERT_GE(rows.size(), 3U);
  EXPECT_TRUE(rows[0].left.empty());  // the BOS of the right one
  EXPECT_EQ(rows[0].right, (std::vector<TokenId>{1}));
  std::vector<TokenId> all_left, all_right;
  for (size_t i = 1; i < rows.size(); ++i) {
    all_left.insert(all_left.end(), rows[i].left.begin(), rows[i].left.end());
    all_right.insert(all_right.end(), rows[i].right.begin(), rows[i].right.end());
    // Up to here both stand for the same text.
    EXPECT_EQ(bpe->decode(all_left), spm->decode(all_right)) << i;
  }
  EXPECT_EQ(all_left, left.ids);
  EXPECT_EQ(all_right, std::vector<TokenId>(right.ids.begin() + 1, right.ids.end()));
}

TEST(TokenComparison, SaysWhereTheCutsDiffer) {
  const auto gpt2 = Tokenizer::create(small_bpe("gpt-2"));
  const auto digits = Tokenizer::create(small_bpe("smollm"));
  const auto table = [&](const std::string& text) {
    return format_comparison({"one", gpt2.get(), gpt2->encode(text), true},
                             {"two", digits.get(), digits->encode(text), true}, text.size());
  };
  EXPECT_EQ(table("hello").find("≠"), std::string::npos);
  EXPECT_NE(table("hello").find("one"), std::string::npos);
  EXPECT_NE(table("hello").find("bytes each"), std::string::npos);
  EXPECT_EQ(table("").find("≠"), std::string::npos);
}

}  // namespace
}  // namespace limpid::cli
