#include "tokenizer/tokenizer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <ctime>
#include <functional>
#include <random>
#include <thread>

#include "limpid/error.hpp"
#include "tokenizer/small_vocabulary.h"

namespace limpid {
namespace {

constexpr EncodeOptions kPlain{.add_special = false};

std::vector<std::shared_ptr<const Tokenizer>> all_small_tokenizers() {
  std::vector<std::shared_ptr<const Tokenizer>> all{Tokenizer::create(small_vocabulary("spm"))};
  for (const std::string_view pre : pre_tokenizer_names()) {
    // NFC changes the bytes on purpose.
    if (!find_pre_tokenizer(pre)->normalize_nfc)
      all.push_back(Tokenizer::create(small_bpe(std::string(pre))));
  }
  return all;
}

TEST(Tokenizer, GivesBackTheBytesOfAnyInput) {
  std::mt19937 random(3);
  const std::vector<std::string> bits = {
      "word", " ", "  ", "\n", "12", "'s", "\xC3\xA9", "\xF0\x9F\x98\x80", "!", "\xE4\xB8\x80"};
  for (const auto& tokenizer : all_small_tokenizers()) {
    for (int round = 0; round < 200; ++round) {
      std::string text = "x";
      for (int i = 0; i < 20; ++i) {
        if (random() % 3 == 0) {
          text.push_back(static_cast<char>(random()));
        } else {
          text += bits[random() % bits.size()];
        }
      }
      ASSERT_EQ(tokenizer->decode(tokenizer->encode(text, kPlain)), text)
          << static_cast<int>(tokenizer->spec().pre_tokenizer);
    }
  }
}

TEST(Tokenizer, TakesTimeAboutLinearInLongRuns) {
  const auto seconds = [](const Tokenizer& tokenizer, const std::string& text) {
    const std::clock_t start = std::clock();
    const std::vector<TokenId> ids = tokenizer.encode(text, kPlain);
    const std::clock_t end = std::clock();
    EXPECT_EQ(tokenizer.decode(ids).size(), text.size());
    return static_cast<double>(end - start) / CLOCKS_PER_SEC;
  };
  for (const char* pre : {"spm", "llama-bpe", "gpt-4o", "smollm", "deepseek-v3"}) {
    const auto tokenizer =
        Tokenizer::create(pre == std::string("spm") ? small_vocabulary("spm") : small_bpe(pre));
    for (const std::string unit :
         {"a", " ", "\xC3\xA9", "\xF0\x9F\x98\x80", "\n", "\xCC\x81", "0"}) {
      std::string text = "x";
      while (text.size() < 1'000'000) text += unit;
      // Processor time, with room for sanitizers; a quadratic algorithm takes many minutes.
      EXPECT_LT(seconds(*tokenizer, text), 60.0) << pre << " " << unit;
    }
  }
}

TEST(Tokenizer, ParsesControlTokensOnlyWhereAllowed) {
  for (const std::string kind : {"bpe", "spm"}) {
    const auto tokenizer =
        Tokenizer::create(kind == "spm" ? small_vocabulary("spm") : small_bpe("gpt-2"));
    const TokenId control = *tokenizer->find("<s>");
    const TokenId tool = *tokenizer->find("<tool>");
    const auto count = [&](const EncodeOptions& options, TokenId id) {
      const auto ids = tokenizer->encode("a<s>b<tool><s>", options);
      return std::count(ids.begin(), ids.end(), id);
    };
    EncodeOptions options = kPlain;
    EXPECT_EQ(count(options, control), 0);
    EXPECT_EQ(count(options, tool), 1);
    options.special.allow = SpecialTokens::Allow::kAll;
    EXPECT_EQ(count(options, control), 2);
    options.special.allow = SpecialTokens::Allow::kList;
    EXPECT_EQ(count(options, control), 0);
    options.special.list = {control};
    EXPECT_EQ(count(options, control), 2);
    EXPECT_EQ(count(options, tool), 1);
  }
}

TEST(Tokenizer, HidesControlTokensUnlessAsked) {
  const auto tokenizer = Tokenizer::create(small_bpe("gpt-2"));
  const TokenId end = *tokenizer->find("<|end|>");
  std::vector<TokenId> ids = tokenizer->encode("hi", kPlain);
  ids.push_back(end);
  EXPECT_EQ(tokenizer->decode(ids), "hi");
  EXPECT_EQ(tokenizer->decode(ids, true), "hi<|end|>");
  EXPECT_TRUE(tokenizer->is_control(end));
  EXPECT_THROW(static_cast<void>(tokenizer->bytes_of(-1)), ArgumentError);
  EXPECT_THROW(
      static_cast<void>(tokenizer->bytes_of(static_cast<TokenId>(tokenizer->vocab_size()))),
      ArgumentError);
}

TEST(Tokenizer, AddsBosAndEosWhereTheSpecSaysSo) {
  TokenizerSpec spec = small_vocabulary("spm");
  spec.add_bos = spec.add_eos = true;
  const auto tokenizer = Tokenizer::create(spec);
  EXPECT_EQ(tokenizer->encode(""), (std::vector<TokenId>{1, 2}));
  const std::vector<TokenId> ids = tokenizer->encode("right");
  EXPECT_EQ(ids.front(), 1);
  EXPECT_EQ(ids.back(), 2);
  EXPECT_EQ(tokenizer->decode(ids), "right");
  EXPECT_EQ(tokenizer->decode(tokenizer->encode("  right")), "  right");
}

TEST(Tokenizer, MayBeUsedFromManyThreads) {
  const auto tokenizer = Tokenizer::create(small_bpe("llama-bpe"));
  const std::string text = "Everyone has the right to life, liberty and security of person. 12345";
  const std::vector<TokenId> expected = tokenizer->encode(text);
  std::vector<std::thread> threads;
  threads.reserve(4);
  std::vector<int> wrong(4, 0);
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 200; ++i)
        wrong[static_cast<size_t>(t)] += tokenizer->encode(text) != expected;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, std::vector<int>(4, 0));
}

struct BadSpec {
  const char* name;
  std::function<void(TokenizerSpec&)> break_it;
};

TEST(Tokenizer, RejectsSpecsThatContradictThemselves) {
  const std::vector<BadSpec> bad_bpe = {
      {"no pieces",
       [](auto& s) {
         s.pieces.clear();
         s.types.clear();
       }},
      {"types too short", [](auto& s) { s.types.pop_back(); }},
      {"bos out of range", [](auto& s) { s.bos = static_cast<TokenId>(s.pieces.size()); }},
      {"negative eos", [](auto& s) { s.eos = -2; }},
      {"stop id out of range", [](auto& s) { s.stop_ids = {1 << 30}; }},
      {"add_bos without bos", [](auto& s) { s.add_bos = true; }},
      {"merge without a space", [](auto& s) { s.merges[0] = "ab"; }},
      {"merge of three", [](auto& s) { s.merges[0] = "a b c"; }},
      {"merge with an empty half", [](auto& s) { s.merges[0] = " a"; }},
      {"merge of an unknown piece", [](auto& s) { s.merges[0] = "a qqqqq"; }},
      {"merge into an unknown piece", [](auto& s) { s.merges[0] = "Q Q"; }},
      {"duplicate merge", [](auto& s) { s.merges[1] = s.merges[0]; }},
      {"merge into a control token",
       [](auto& s) {
         s.pieces.push_back("<>");
         s.types.push_back(TokenType::kControl);
         s.merges.push_back("< >");
       }},
      {"byte token <0x-1>",
       [](auto& s) {
         s.pieces[0] = "<0x-1>";
         s.types[0] = TokenType::kByte;
       }},
      {"byte token <0xfF>",
       [](auto& s) {
         s.pieces[0] = "<0xfF>";
         s.types[0] = TokenType::kByte;
       }},
      {"byte token without a name",
       [](auto& s) {
         s.pieces[0] = "";
         s.types[0] = TokenType::kByte;
       }},
  };
  for (const BadSpec& bad : bad_bpe) {
    TokenizerSpec spec = small_bpe("gpt-2");
    bad.break_it(spec);
    EXPECT_THROW(Tokenizer::create(spec), ArgumentError) << bad.name;
  }
  const std::vector<BadSpec> bad_spm = {
      {"scores too short", [](auto& s) { s.scores.pop_back(); }},
      {"score not a number", [](auto& s) { s.scores[5] = std::nanf(""); }},
      {"a byte token missing", [](auto& s) { s.types[100] = TokenType::kNormal; }},
      {"a byte token twice", [](auto& s) { s.pieces[100] = s.pieces[101]; }},
      {"neither bytes nor unknown",
       [](auto& s) {
         for (auto& type : s.types) type = TokenType::kNormal;
         s.unknown.reset();
       }},
  };
  for (const BadSpec& bad : bad_spm) {
    TokenizerSpec spec = small_vocabulary("spm");
    bad.break_it(spec);
    EXPECT_THROW(Tokenizer::create(spec), ArgumentError) << bad.name;
  }
}

}  // namespace
}  // namespace limpid
