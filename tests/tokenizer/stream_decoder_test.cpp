#include <gtest/gtest.h>

#include "tokenizer/small_vocabulary.h"
#include "tokenizer/tokenizer.h"

namespace limpid {
namespace {

TokenId byte_token(const Tokenizer& tokenizer, uint8_t byte) {
  for (TokenId id = 0; id < tokenizer.vocab_size(); ++id) {
    if (tokenizer.bytes_of(id) == std::string(1, static_cast<char>(byte))) return id;
  }
  return -1;
}

TEST(StreamDecoder, HoldsBackAnIncompleteSequence) {
  const auto tokenizer = Tokenizer::create(small_bpe("gpt-2"));
  StreamDecoder decoder(tokenizer);
  EXPECT_EQ(decoder.push(byte_token(*tokenizer, 'a')), "a");
  EXPECT_EQ(decoder.push(byte_token(*tokenizer, 0xF0)), "");
  EXPECT_EQ(decoder.push(byte_token(*tokenizer, 0x9F)), "");
  EXPECT_EQ(decoder.push(byte_token(*tokenizer, 0x98)), "");
  EXPECT_EQ(decoder.push(byte_token(*tokenizer, 0x80)), "\xF0\x9F\x98\x80");
  EXPECT_EQ(decoder.finish(), "");
}

TEST(StreamDecoder, ReplacesWhatCannotBecomeValid) {
  const auto tokenizer = Tokenizer::create(small_bpe("gpt-2"));
  StreamDecoder decoder(tokenizer);
  const std::string replacement = "\xEF\xBF\xBD";
  EXPECT_EQ(decoder.push(byte_token(*tokenizer, 0x80)), replacement);
  EXPECT_EQ(decoder.push(byte_token(*tokenizer, 0xE2)), "");
  EXPECT_EQ(decoder.push(byte_token(*tokenizer, 'z')), replacement + "z");
  EXPECT_EQ(decoder.push(byte_token(*tokenizer, 0xE2)), "");
  EXPECT_EQ(decoder.push(byte_token(*tokenizer, 0x82)), "");
  EXPECT_EQ(decoder.finish(), replacement);
  EXPECT_EQ(decoder.finish(), "");
}

TEST(StreamDecoder, TakesAwayTheSpaceThatTheTokenizerPutInFront) {
  const auto tokenizer = Tokenizer::create(small_vocabulary("spm"));
  const std::vector<TokenId> ids = tokenizer->encode("the right of", {.add_special = false});
  for (const bool at_start : {true, false}) {
    StreamDecoder decoder(tokenizer, false, at_start);
    std::string text;
    for (const TokenId id : ids) text += decoder.push(id);
    text += decoder.finish();
    EXPECT_EQ(text, at_start ? "the right of" : " the right of");
  }
}

TEST(StreamDecoder, JoinedPiecesEqualDecodeForValidText) {
  for (const std::string kind : {"bpe", "spm"}) {
    const auto tokenizer =
        Tokenizer::create(kind == "spm" ? small_vocabulary("spm") : small_bpe("llama-bpe"));
    const std::string text =
        "  caf\xC3\xA9 \xE4\xBA\xBA\xE4\xBA\xBA \xF0\x9F\x91\xA8\xE2\x80\x8D\xF0\x9F\x91\xA9!\n";
    StreamDecoder decoder(tokenizer);
    std::string joined;
    for (const TokenId id : tokenizer->encode(text, {.add_special = false}))
      joined += decoder.push(id);
    EXPECT_EQ(joined + decoder.finish(), text);
  }
}

}  // namespace
}  // namespace limpid
