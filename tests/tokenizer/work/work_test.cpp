// How work grows with the bytes of a file and a text: twice the bytes, about twice the steps, for
// files and texts that are made to cost more. Steps are basic blocks (step_counter.h), no seconds.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "limpid/error.hpp"
#include "tokenizer/merge_list.h"
#include "tokenizer/regex_splitter.h"
#include "tokenizer/sentence_piece_model.h"
#include "tokenizer/tiktoken_file.h"
#include "tokenizer/token_tree.h"
#include "tokenizer/tokenizer.h"
#include "tokenizer/tokenizer_config.h"
#include "tokenizer/tokenizer_json.h"
#include "tokenizer/vocab_merges.h"
#include "tokenizer/work/step_counter.h"

namespace limpid {
namespace {

using testing::steps_of;

// Does the work of about `n` bytes and gives their exact number.
using Work = std::function<size_t(size_t n)>;

void expect_linear(const Work& work, size_t n = 50'000, double most_per_byte = 400) {
  size_t bytes = 0, twice_bytes = 0;
  const auto steps = static_cast<double>(steps_of([&] { bytes = work(n); }));
  const auto twice = static_cast<double>(steps_of([&] { twice_bytes = work(2 * n); }));
  const double growth = static_cast<double>(twice_bytes) / static_cast<double>(bytes);
  EXPECT_GT(steps, 0);
  EXPECT_LE(twice, 1.2 * growth * steps)
      << steps << " steps for " << bytes << " bytes, " << twice << " for " << twice_bytes;
  EXPECT_LE(twice, most_per_byte * static_cast<double>(twice_bytes));
}

std::string run(char c, size_t size) { return std::string(size, c); }

void add(TokenizerSpec& spec, const std::string& piece, TokenType type = TokenType::kNormal) {
  spec.pieces.push_back(piece);
  spec.types.push_back(type);
}

size_t bytes_of(const TokenizerSpec& spec) {
  size_t bytes = 0;
  for (const std::string& piece : spec.pieces) bytes += piece.size() + 1;
  return bytes;
}

// Byte-level BPE with the printable ASCII characters.
TokenizerSpec ascii_bytes() {
  TokenizerSpec spec;
  for (char c = '!'; c <= '~'; ++c) add(spec, std::string(1, c));
  return spec;
}

TokenizerSpec sentence_piece_bytes() {
  TokenizerSpec spec;
  spec.kind = TokenizerKind::kSentencePieceBpe;
  spec.merge_order = MergeOrder::kScores;
  for (int byte = 0; byte < 256; ++byte)
    add(spec, fmt::format("<0x{:02X}>", byte), TokenType::kByte);
  return spec;
}

size_t create(TokenizerSpec spec) {
  if (spec.merge_order == MergeOrder::kScores) spec.scores.resize(spec.pieces.size());
  const size_t bytes = bytes_of(spec);
  Tokenizer::create(std::move(spec));
  return bytes;
}

size_t encode(const TokenizerSpec& spec, const std::string& text, const SpecialTokens& special) {
  EXPECT_FALSE(Tokenizer::create(spec)->encode(text, {.special = special}).empty());
  return bytes_of(spec) + text.size();
}

SpecialTokens all() {
  SpecialTokens special;
  special.allow = SpecialTokens::Allow::kAll;
  return special;
}

TEST(TokenizerWork, LongSpecialTokensWithOneBeginning) {
  expect_linear(
      [](size_t n) {
        TokenizerSpec spec = ascii_bytes();
        add(spec, run('a', n / 3) + "b", TokenType::kControl);
        add(spec, "aa", TokenType::kControl);
        return encode(spec, run('a', n), all());
      },
      150'000);
}

TokenizerSpec unused_tokens(size_t bytes) {
  TokenizerSpec spec = ascii_bytes();
  for (size_t i = 0; i < bytes / 13; ++i)
    add(spec, fmt::format("<unused{}>", i), TokenType::kControl);
  return spec;
}

TEST(TokenizerWork, ManySpecialTokensAndTheirFirstByte) {
  expect_linear([](size_t n) { return encode(unused_tokens(n), run('<', n), all()); });
}

TEST(TokenizerWork, AListOfAllowedTokens) {
  expect_linear([](size_t n) {
    const TokenizerSpec spec = unused_tokens(n);
    SpecialTokens special;
    special.allow = SpecialTokens::Allow::kList;
    for (size_t id = 100; id < spec.pieces.size(); id += 2)
      special.list.push_back(static_cast<TokenId>(id));
    std::string text;
    for (size_t id = 95; text.size() < n; id = 95 + (id + 7) % (spec.pieces.size() - 95))
      text += spec.pieces[id];
    return encode(spec, text, special);
  });
}

// Every name begins with all shorter ones, and only the shortest may match, or none.
TokenizerSpec nested_names(size_t bytes) {
  TokenizerSpec spec = ascii_bytes();
  for (size_t size = 1, sum = 0; sum < bytes; sum += ++size)
    add(spec, run('~', size), TokenType::kControl);
  return spec;
}

TEST(TokenizerWork, ListedNamesBelowOthers) {
  expect_linear([](size_t n) {
    const TokenizerSpec spec = nested_names(n);
    SpecialTokens special;
    special.allow = SpecialTokens::Allow::kList;
    special.list = {94};
    return encode(spec, run('~', n), special);
  });
}

TEST(TokenizerWork, RefusedTokens) {
  expect_linear([](size_t n) {
    TokenizerSpec spec = ascii_bytes();
    add(spec, run('a', n / 3) + "b", TokenType::kControl);
    SpecialTokens special;
    special.refuse_others = true;
    return encode(spec, run('a', n), special);
  });
}

TEST(TokenizerWork, WhiteSpaceBesideSpecialTokens) {
  expect_linear([](size_t n) {
    TokenizerSpec spec = ascii_bytes();
    add(spec, "\t", TokenType::kUserDefined);
    AddedTokenRule rule;
    rule.id = static_cast<TokenId>(spec.pieces.size() - 1);
    rule.strip_left = rule.strip_right = true;
    spec.added_rules.push_back(rule);
    return encode(spec, run('\t', n), {});
  });
}

// Base64 of a run of 'a' whose length is a multiple of three.
std::string base64_of_run(size_t size) {
  std::string text;
  for (size_t i = 0; i < size; i += 3) text += "YWFh";
  return text;
}

std::string base64_of_byte(int byte) {
  constexpr std::string_view kDigits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  return {kDigits[static_cast<size_t>(byte >> 2)], kDigits[static_cast<size_t>(byte << 4 & 63)],
          '=', '='};
}

TEST(TokenizerWork, RanksOfRuns) {
  expect_linear([](size_t n) {
    std::string file;
    int rank = 0;
    for (int byte = 0; byte < 256; ++byte)
      file += fmt::format("{} {}\n", base64_of_byte(byte), rank++);
    file += fmt::format("YWE= {}\n", rank++);
    for (size_t size = 3; file.size() < n; size += 3)
      file += fmt::format("{} {}\n", base64_of_run(size), rank++);
    Tokenizer::create(read_tiktoken("ranks", file, "llama3"));
    return file.size();
  });
}

TEST(TokenizerWork, LongRanks) {
  expect_linear([](size_t n) {
    TokenizerSpec spec = ascii_bytes();
    spec.merge_order = MergeOrder::kRanks;
    for (size_t i = 0; i < n / 3000; ++i)
      add(spec, run('a', 3000) + static_cast<char>('b' + i % 20) + std::to_string(i));
    return create(spec);
  });
}

// The tokens of a merge list, each one letter longer than the one before, on the left.
TokenizerSpec growing_to_the_left(size_t bytes, char last) {
  TokenizerSpec spec = ascii_bytes();
  for (std::string piece(1, last); bytes_of(spec) < bytes;) {
    spec.merges.push_back("a " + piece);
    piece.insert(piece.begin(), 'a');
    add(spec, piece);
  }
  return spec;
}

TEST(TokenizerWork, TextThatMightAlwaysBecomeALongToken) {
  expect_linear([](size_t n) { return encode(growing_to_the_left(n, 'x'), run('a', n), {}); });
}

TEST(TokenizerWork, MergesOfRuns) {
  expect_linear([](size_t n) { return encode(growing_to_the_left(n, 'a'), run('a', n), {}); });
}

TEST(TokenizerWork, MergesAlone) {
  expect_linear([](size_t n) {
    std::string file;
    for (std::string piece = "a"; file.size() < n; piece += 'a') file += piece + " a\n";
    Tokenizer::create(read_merges_alone("merges.txt", file));
    return file.size();
  });
}

TEST(TokenizerWork, LongSentencePieces) {
  expect_linear([](size_t n) {
    TokenizerSpec spec = sentence_piece_bytes();
    for (size_t i = 0; i < n / 3000; ++i) add(spec, std::to_string(i) + run('a', 3000));
    return create(spec);
  });
}

TEST(TokenizerWork, SentencePiecesOfRuns) {
  expect_linear([](size_t n) {
    TokenizerSpec spec = sentence_piece_bytes();
    for (size_t size = 1; bytes_of(spec) < n + 3000; ++size) add(spec, run('a', size));
    return create(spec);
  });
}

// More different characters than pieces.
TEST(TokenizerWork, SentencePiecesOfManyCharacters) {
  expect_linear([](size_t n) {
    TokenizerSpec spec = sentence_piece_bytes();
    std::string piece;
    for (size_t c = 0; c < n / 4; ++c) {
      piece += {static_cast<char>(0xF0), static_cast<char>(0x90 + c / 4096 % 32),
                static_cast<char>(0x80 + c / 64 % 64), static_cast<char>(0x80 + c % 64)};
      if (piece.size() == 4000) add(spec, std::exchange(piece, ""));
    }
    return create(spec);
  });
}

TEST(TokenizerWork, TextOfSentencePieces) {
  expect_linear([](size_t n) {
    TokenizerSpec spec = sentence_piece_bytes();
    for (size_t size = 1; size < 300; ++size) add(spec, run('a', size));
    spec.scores.resize(spec.pieces.size());
    return encode(spec, run('a', n), {});
  });
}

TEST(TokenizerWork, MetasSlicesOfShortRuns) {
  expect_linear(
      [](size_t n) {
        TokenizerSpec spec = ascii_bytes();
        spec.meta_slices = true;
        std::string text;
        while (text.size() < n) text += "\xE4\xB8\x80\xE3\x80\x80";
        Tokenizer::create(spec)->encode(text);
        return text.size();
      },
      100'000);
}

TEST(TokenizerWork, MarksThatComeInNoOrder) {
  expect_linear(
      [](size_t n) {
        TokenizerSpec spec = ascii_bytes();
        spec.normalize_nfc = true;
        std::string text = "e";
        while (text.size() < n) text += "\xCC\x81\xCC\xA3\xCC\x95";
        Tokenizer::create(spec)->encode(text);
        return text.size();
      },
      50'000, 1000);
}

TEST(TokenizerWork, AddedTokensOfAConfiguration) {
  expect_linear([](size_t n) {
    TokenizerSpec spec = ascii_bytes();
    std::string json;
    for (size_t i = 0; json.size() < n; ++i) {
      json += fmt::format(R"({}"{}":{{"content":"<{}>","lstrip":true}})", json.empty() ? "" : ",",
                          94 + i, i);
    }
    json = "{\"added_tokens_decoder\":{" + json + "}}";
    apply_tokenizer_config(read_tokenizer_config("config", json), FrameRule::kOfConfig, spec);
    Tokenizer::create(spec);
    return json.size();
  });
}

TEST(TokenizerWork, MergesFromRanks) {
  expect_linear([](size_t n) {
    TokenizerSpec spec = ascii_bytes();
    spec.merge_order = MergeOrder::kRanks;
    for (size_t i = 0; i < n / 3000; ++i) add(spec, run('a', 3000 + i));
    merge_list(spec);
    return bytes_of(spec);
  });
}

TEST(TokenizerWork, ScoresFromMerges) {
  expect_linear([](size_t n) {
    TokenizerSpec spec = sentence_piece_bytes();
    spec.merge_order = MergeOrder::kScores;
    for (size_t size = 1; bytes_of(spec) < n + 3000 && size < 60; ++size) add(spec, run('a', size));
    for (size_t i = 0; bytes_of(spec) < n + 3000; ++i) add(spec, std::to_string(i));
    spec.scores.resize(spec.pieces.size());
    spec.merges = merge_list(spec);
    spec.merge_order = MergeOrder::kList;
    EXPECT_TRUE(merge_scores(spec).has_value());
    return bytes_of(spec);
  });
}

TEST(TokenizerWork, TheTokenTree) {
  expect_linear([](size_t n) {
    TokenizerSpec spec = ascii_bytes();
    add(spec, run('a', n / 3) + "b");
    const TokenTree tree(Tokenizer::create(spec));
    EXPECT_EQ(tree.encode(run('a', n)).size(), n);
    return bytes_of(spec) + n;
  });
}

std::vector<SplitStep> one_step(const std::string& pattern) {
  SplitStep step;
  step.pattern = pattern;
  return {step};
}

TEST(TokenizerWork, SplitExpressionsThatReadTheTextAnew) {
  for (const char* pattern : {"\\p{L}++[!?]", "\\p{L}+[!?]", "(?:\\p{L}\\p{L})+!", "(?:a|b|ab)+!",
                              "(?=\\p{L}*!)a", "\\p{L}{900}!", "(?<=a{200})!", "(a+a+)+[bc]"}) {
    const RegexSplitter splitter(one_step(pattern));
    for (const size_t n : {10'000, 20'000}) {
      const std::string text = run('a', n) + " !";  // what a match begins with is there
      bool is_refused = false;
      const uint64_t steps = steps_of([&] {
        try {
          splitter.split(text, [](const char*, size_t) {});
        } catch (const ResourceError& error) {
          is_refused = true;
          EXPECT_NE(std::string(error.what()).find(pattern), std::string::npos);
        }
      });
      EXPECT_LE(steps, 3000 * n) << pattern;
      const bool is_quadratic = std::string_view(pattern) != "(?<=a{200})!";
      EXPECT_EQ(is_refused, is_quadratic) << pattern;
    }
  }
}

TEST(TokenizerWork, SplitExpressionsOfTokenizersStayFarBelowTheLimit) {
  const std::string pattern =
      "[^\\r\\n\\p{L}\\p{N}]?[\\p{L}\\p{M}]+|\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|"
      "\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+|unlike any other";
  const RegexSplitter splitter(one_step(pattern));
  for (const std::string_view words : {"It's 12,345 o'clock; ", "          ", "aaaaaaaaaaaa",
                                       "x=1;{}\n\n\t\t", "\xE4\xB8\x80\xE3\x80\x82"}) {
    std::string text;
    while (text.size() < 50'000) text += words;
    size_t bytes = 0;
    splitter.split(text, [&](const char*, size_t size) { bytes += size; });
    EXPECT_EQ(bytes, text.size()) << words;
  }
}

}  // namespace
}  // namespace limpid
