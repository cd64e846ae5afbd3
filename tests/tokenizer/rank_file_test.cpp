// tiktoken's rank files, and how Meta cuts long texts.
#include <gtest/gtest.h>

#include <array>

#include "limpid/error.hpp"
#include "tokenizer/meta_slices.h"
#include "tokenizer/tiktoken_file.h"
#include "tokenizer/tokenizer.h"

namespace limpid {
namespace {

std::string base64(std::string_view bytes) {
  constexpr std::string_view kDigits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  for (size_t i = 0; i < bytes.size(); i += 3) {
    uint32_t bits = 0;
    const size_t n = std::min<size_t>(3, bytes.size() - i);
    for (size_t k = 0; k < 3; ++k)
      bits = bits << 8 | (k < n ? static_cast<uint8_t>(bytes[i + k]) : 0);
    for (size_t k = 0; k < 4; ++k) text += k > n ? '=' : kDigits[bits >> (18 - 6 * k) & 63];
  }
  return text;
}

// All bytes, then these.
std::string rank_file(const std::vector<std::string>& tokens) {
  std::string file;
  size_t rank = 0;
  const auto add = [&](std::string_view token) {
    file += base64(token) + " " + std::to_string(rank++) + "\n";
  };
  for (int byte = 0; byte < 256; ++byte) {
    const char c = static_cast<char>(byte);
    add({&c, 1});
  }
  for (const std::string& token : tokens) add(token);
  return file;
}

TEST(RankFile, MergesByRankAndLeftmostOfEquals) {
  // "aaa" can be formed from aa+a and a+aa; both have its rank.
  const std::string file = rank_file({"aa", "aaa", "ab", "aab"});
  const auto tokenizer = Tokenizer::create(read_tiktoken("t", file, "llama3"));
  const auto ids = [&](std::string_view text) {
    return tokenizer->encode(text, {.add_special = false});
  };
  EXPECT_EQ(ids("aaa"), (std::vector<TokenId>{257}));        // whole
  EXPECT_EQ(ids("aab"), (std::vector<TokenId>{259}));        // whole, though "aa" goes first
  EXPECT_EQ(ids("aaab"), (std::vector<TokenId>{257, 'b'}));  // aa a b, aaa b
  EXPECT_EQ(ids("aaaaa"), (std::vector<TokenId>{256, 257}));
}

TEST(RankFile, Llama3HasItsSpecialTokensBehindTheRanks) {
  const std::string file = rank_file({"aa"});
  const TokenizerSpec first = read_tiktoken("t", file, "llama3");
  const TokenizerSpec later = read_tiktoken("t", file, "llama3.1");
  ASSERT_EQ(first.pieces.size(), 257U + 256U);
  ASSERT_EQ(later.pieces.size(), 257U + 256U);
  const auto name = [](const TokenizerSpec& spec, size_t i) { return spec.pieces.at(257 + i); };
  EXPECT_EQ(name(first, 0), "<|begin_of_text|>");
  EXPECT_EQ(name(first, 5), "<|reserved_special_token_3|>");
  EXPECT_EQ(name(first, 6), "<|start_header_id|>");
  EXPECT_EQ(name(first, 8), "<|reserved_special_token_4|>");
  EXPECT_EQ(name(first, 9), "<|eot_id|>");
  EXPECT_EQ(name(first, 10), "<|reserved_special_token_5|>");
  EXPECT_EQ(name(first, 255), "<|reserved_special_token_250|>");
  EXPECT_EQ(name(later, 4), "<|finetune_right_pad_id|>");
  EXPECT_EQ(name(later, 8), "<|eom_id|>");
  EXPECT_EQ(name(later, 9), "<|eot_id|>");
  EXPECT_EQ(name(later, 11), "<|image|>");
  EXPECT_EQ(name(later, 255), "<|reserved_special_token_245|>");
  EXPECT_EQ(find_stop_ids(later), (std::vector<TokenId>{258, 265, 266}));
  EXPECT_TRUE(later.add_bos);
  EXPECT_EQ(later.bos, std::optional<TokenId>(257));
}

TEST(RankFile, DisallowedSpecialTokensAreTextOrAnError) {
  const auto tokenizer = Tokenizer::create(read_tiktoken("t", rank_file({}), "llama3"));
  const TokenId eot = *tokenizer->spec().eot;
  EncodeOptions options{.add_special = false};
  EXPECT_EQ(tokenizer->encode("<|eot_id|>", options).size(), 10U);
  options.special.refuse_others = true;
  EXPECT_THROW(tokenizer->encode("x<|eot_id|>", options), ArgumentError);
  EXPECT_EQ(tokenizer->encode("<|eot_id>", options).size(), 9U);
  options.special.allow = SpecialTokens::Allow::kList;
  options.special.list = {eot};
  EXPECT_EQ(tokenizer->encode("<|eot_id|>", options), (std::vector<TokenId>{eot}));
  EXPECT_THROW(tokenizer->encode("<|eot_id|><|begin_of_text|>", options), ArgumentError);
  options.special.allow = SpecialTokens::Allow::kAll;
  EXPECT_EQ(tokenizer->encode("<|eot_id|><|begin_of_text|>", options).size(), 2U);
}

TEST(RankFile, RefusesWhatIsMalformed) {
  const std::string good = rank_file({"aa"});
  struct Bad {
    const char* name;
    std::string file;
  };
  const Bad files[] = {
      {"empty", ""},
      {"no rank", good + "YWE=\n"},
      {"no base64", good + "Y*E= 300\n"},
      {"length", good + "YWE 300\n"},
      {"padding bits", good + "YWF= 300\n"},
      {"padding within", good + "YQ==YQ== 300\n"},
      {"negative", good + "YWFh -1\n"},
      {"not a number", good + "YWFh 3x\n"},
      {"two numbers", good + "YWFh 300 4\n"},
      {"too large", good + "YWFh 99999999999999999999\n"},
      {"far", good + "YWFh 2000000\n"},
      {"rank twice", good + "YWFh 3\n"},
      {"token twice", good + "YWE= 300\n"},
      {"a byte missing", good.substr(good.find('\n') + 1)},
  };
  for (const Bad& bad : files)
    EXPECT_THROW(read_tiktoken("t", bad.file, "llama3"), FormatError) << bad.name;
  EXPECT_THROW(read_tiktoken("t", good), UnsupportedError);  // nobody knows what cuts
  EXPECT_THROW(read_tiktoken("t", good, "cl101k"), UnsupportedError);
  // A special token's id is taken.
  std::string taken = good;
  taken += "YWFh 50256\n";
  for (int i = 0; i < 60'000; ++i) taken += "\n\n\n\n\n\n";
  EXPECT_THROW(read_tiktoken("t", taken, "r50k_base"), FormatError);
  EXPECT_TRUE(looks_like_tiktoken(good));
  EXPECT_FALSE(looks_like_tiktoken("\n\x0f\n\x05<unk>"));
}

std::vector<size_t> slice_sizes(const std::string& text) {
  std::vector<size_t> sizes;
  std::string joined;
  for_each_meta_slice(text, [&](std::string_view slice) {
    sizes.push_back(slice.size());
    joined += slice;
  });
  EXPECT_EQ(joined, text);
  return sizes;
}

TEST(MetaSlices, CutRunsAndLongTexts) {
  const auto repeat = [](std::string_view unit, size_t count) {
    std::string text;
    for (size_t i = 0; i < count; ++i) text += unit;
    return text;
  };
  using Sizes = std::vector<size_t>;
  EXPECT_EQ(slice_sizes(""), Sizes{});
  EXPECT_EQ(slice_sizes("a b"), Sizes{3});
  EXPECT_EQ(slice_sizes(repeat("a", 25'000)), Sizes{25'000});
  EXPECT_EQ(slice_sizes(repeat("a", 25'001)), (Sizes{25'000, 1}));
  EXPECT_EQ(slice_sizes("x " + repeat("a", 50'001)), (Sizes{25'002, 25'000, 1}));
  EXPECT_EQ(slice_sizes(repeat("a", 24'999) + repeat(" ", 25'001)), (Sizes{49'999, 1}));
  EXPECT_EQ(slice_sizes(repeat("\u00e9", 25'001)), (Sizes{50'000, 2}));
  EXPECT_EQ(slice_sizes(repeat("\u3000", 25'002)), (Sizes{75'000, 6}));
  EXPECT_EQ(slice_sizes(repeat("\xFF", 25'001)), (Sizes{25'000, 1}));  // each byte a character
  // The information separators are white space to Python.
  EXPECT_EQ(slice_sizes(repeat("a", 20'000) + "\x1C" + repeat("a", 20'000)), Sizes{40'001});
  EXPECT_EQ(slice_sizes(repeat("abc ", 100'001)), (Sizes{400'000, 4}));
  EXPECT_EQ(slice_sizes(repeat("ab\u00e9 ", 100'001)), (Sizes{500'000, 5}));
  // A run goes over the cut at 400,000, where counting begins anew.
  EXPECT_EQ(slice_sizes(repeat("abc ", 97'500) + repeat("a", 30'000)), (Sizes{400'000, 20'000}));
}

}  // namespace
}  // namespace limpid
