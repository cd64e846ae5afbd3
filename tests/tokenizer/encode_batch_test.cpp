// Encoding many texts, and encoding without allocation: this program counts every one.
#include <gtest/gtest.h>

#include "allocation_counter.h"
#include "limpid/error.hpp"
#include "tokenizer/small_vocabulary.h"
#include "tokenizer/tokenizer.h"

namespace limpid {
namespace {

std::shared_ptr<const Tokenizer> tokenizer_of(const std::string& name) {
  TokenizerSpec spec = name == "spm" ? small_vocabulary("spm") : small_bpe(name);
  if (name == "qwen2") spec.normalize_nfc = true;
  return Tokenizer::create(std::move(spec));
}

TEST(Encode, AllocatesNothingOnceWarm) {
  // Words, a letter with two marks out of order (NFC), a piece longer than what is remembered, a
  // special token.
  std::string text = "Hello, world! It's 12345 <tool> caf\xC3\xA9 q\xCC\x87\xCC\xA3 \n\n  x";
  text += std::string(500, 'a') + " end";
  for (const std::string name : {"spm", "gpt-2", "llama-bpe", "qwen2", "gpt-4o", "deepseek-v3"}) {
    const auto tokenizer = tokenizer_of(name);
    std::vector<TokenId> ids;
    const int64_t cold = testing::n_allocations;
    tokenizer->encode(text, {}, ids);
    EXPECT_GT(testing::n_allocations, cold) << name;  // the counter counts
    const std::vector<TokenId> first = ids;
    const int64_t warm = testing::n_allocations;
    for (int round = 0; round < 3; ++round) {
      ids.clear();
      tokenizer->encode(text, {}, ids);
    }
    EXPECT_EQ(testing::n_allocations, warm) << name;
    EXPECT_EQ(ids, first) << name;
  }
}

TEST(EncodeBatch, GivesWhatEncodeGivesForAnyNumberOfThreads) {
  for (const std::string name : {"spm", "llama-bpe"}) {
    const auto tokenizer = tokenizer_of(name);
    std::vector<std::string> texts;
    for (int i = 0; i < 300; ++i) {
      texts.push_back("text number " + std::to_string(i * 7919));
      for (int k = 0; k < i % 40; ++k) texts.back() += " and more, " + std::to_string(k * i);
    }
    texts[7].clear();
    const std::vector<std::string_view> views(texts.begin(), texts.end());
    EncodeOptions options;
    options.add_special = false;
    std::vector<std::vector<TokenId>> want;
    want.reserve(views.size());
    for (const std::string_view view : views) want.push_back(tokenizer->encode(view, options));
    for (const int n_threads : {0, 1, 2, 5})
      EXPECT_EQ(tokenizer->encode_batch(views, options, n_threads), want) << n_threads;
    EXPECT_TRUE(tokenizer->encode_batch({}, options).empty());
    EXPECT_THROW(tokenizer->encode_batch(views, options, -1), ArgumentError);
  }
}

TEST(EncodeBatch, ThrowsWhatAThreadThrows) {
  const auto tokenizer = tokenizer_of("llama-bpe");
  std::vector<std::string_view> texts(50, "plain");
  texts[33] = "a <s> that is not allowed";
  EncodeOptions options;
  options.special.refuse_others = true;
  EXPECT_THROW(tokenizer->encode_batch(texts, options, 3), ArgumentError);
}

}  // namespace
}  // namespace limpid
