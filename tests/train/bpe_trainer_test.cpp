// The trained vocabularies are compared with those of `tokenizers` (trained_bpe.json), and with
// training that counts all pairs again after every merge.
#include "train/bpe/bpe_trainer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <random>

#include "data_paths.h"
#include "limpid/error.hpp"
#include "tokenizer/pre_tokenizer_scanners.h"
#include "tokenizer/tokenizer.h"
#include "tokenizer/tokenizer_json.h"
#include "tokenizer/tokenizer_json_writer.h"
#include "train/bpe/merge_learner.h"

namespace limpid {
namespace {

const std::map<std::string, PreTokenizer> kPreTokenizers = {{"gpt2", PreTokenizer::kGpt2},
                                                            {"llama3", PreTokenizer::kLlama3},
                                                            {"qwen2", PreTokenizer::kQwen2},
                                                            {"none", PreTokenizer::kNone}};

std::vector<std::string> merges_of(const TrainedBpe& trained) {
  std::vector<std::string> merges;
  for (const auto& [left, right] : trained.merges)
    merges.push_back(trained.pieces[left] + " " + trained.pieces[right]);
  return merges;
}

TrainedBpe train(const std::string& text, const BpeTrainingOptions& options) {
  const TrainingText one{"text", text};
  return train_bpe({&one, 1}, options);
}

// The message of the error that training throws.
std::string refusal(const std::string& text, const BpeTrainingOptions& options) {
  try {
    train(text, options);
  } catch (const Error& error) {
    return error.what();
  }
  return "none";
}

TEST(BpeTrainer, LearnsWhatTokenizersLearns) {
  std::ifstream file(testing::test_data_path("tokenizer/trained_bpe.json"));
  const nlohmann::json cases = nlohmann::json::parse(file);
  ASSERT_GE(cases.size(), 10U);
  for (const nlohmann::json& each : cases) {
    SCOPED_TRACE(each["name"].get<std::string>());
    BpeTrainingOptions options;
    options.vocab_size = each["vocab_size"];
    options.pre_tokenizer = kPreTokenizers.at(each["pre_tokenizer"]);
    options.special_tokens = each["special"].get<std::vector<std::string>>();
    options.min_frequency = each["min_frequency"];
    options.each_line = each["lines"];
    const TrainedBpe trained = train(each["text"], options);
    EXPECT_EQ(trained.pieces, each["pieces"].get<std::vector<std::string>>());
    EXPECT_EQ(merges_of(trained), each["merges"].get<std::vector<std::string>>());
  }
}

// Training by the definition: the words as lists of tokens, and all pairs counted for every merge.
class SlowLearner {
 public:
  SlowLearner(const std::string& text, PreTokenizer pre_tokenizer) {
    pre_tokenizer_scanners::split(pre_tokenizer, text.data(), text.data() + text.size(),
                                  [&](const char* p, size_t size) {
                                    auto& word = words_.emplace_back();
                                    for (size_t i = 0; i < size; ++i)
                                      word.push_back(static_cast<uint8_t>(p[i]));
                                  });
  }
  std::optional<bpe::CountedPair> next(int64_t least_count) const {
    std::map<bpe::TokenPair, int64_t> counts;
    for (const auto& word : words_) {
      for (size_t i = 0; i + 1 < word.size(); ++i) ++counts[{word[i], word[i + 1]}];
    }
    bpe::CountedPair best{{}, least_count - 1};
    for (const auto& [pair, count] : counts) {  // ascending, so that the smallest of equals stays
      if (count > best.count) best = {pair, count};
    }
    return best.count < least_count ? std::nullopt : std::optional(best);
  }
  void merge(bpe::TokenPair pair, uint32_t merged) {
    for (auto& word : words_) {
      std::vector<uint32_t> out;
      for (size_t i = 0; i < word.size(); ++i) {
        const bool found = i + 1 < word.size() && bpe::TokenPair{word[i], word[i + 1]} == pair;
        out.push_back(found ? merged : word[i]);
        i += found ? 1 : 0;
      }
      word = out;
    }
  }

 private:
  std::vector<std::vector<uint32_t>> words_;
};

std::string random_text(std::mt19937& random, const std::vector<std::string>& parts, size_t size) {
  std::string text;
  while (text.size() < size) text += parts[random() % parts.size()];
  return text;
}

// `n_merges` decides how many pairs are left out at first, and when they are counted again.
TEST(BpeTrainer, LearnsWhatCountingAnewLearns) {
  const std::vector<std::vector<std::string>> alphabets = {
      {"a", "b", " "}, {"a"}, {"a", "a", "a", "ab", " "}, {"the ", "then", "he", " ", "n"}};
  constexpr std::array<int64_t, 4> kMergesExpected = {1, 3, 40, 1'000'000};
  std::array<uint32_t, 256> byte_ids{};
  for (uint32_t i = 0; i < 256; ++i) byte_ids[i] = i;
  for (uint32_t seed = 0; seed < 120; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    const std::string text = random_text(random, alphabets[seed % 4], 20 + seed * 3);
    const PreTokenizer pre_tokenizer = seed % 3 == 0 ? PreTokenizer::kNone : PreTokenizer::kGpt2;
    const int64_t least_count = 1 + seed % 2;
    bpe::CountOptions count;
    count.pre_tokenizer = pre_tokenizer;
    count.n_threads = 1;
    const TrainingText one{"text", text};
    bpe::MergeLearner learner(bpe::count_words({&one, 1}, count), byte_ids, least_count,
                              kMergesExpected[seed / 4 % 4]);
    SlowLearner slow(text, pre_tokenizer);
    for (uint32_t merged = 256;; ++merged) {
      const auto wanted = slow.next(least_count);
      const auto found = learner.next();
      ASSERT_EQ(found.has_value(), wanted.has_value());
      if (!wanted) break;
      ASSERT_EQ(found->pair, wanted->pair) << merged;
      ASSERT_EQ(found->count, wanted->count) << merged;
      learner.merge(found->pair, merged);
      slow.merge(wanted->pair, merged);
    }
  }
}

std::map<std::string, uint64_t> counts_of(const std::string& text, bpe::CountOptions options) {
  const TrainingText one{"text", text};
  std::map<std::string, uint64_t> counts;
  bpe::count_words({&one, 1}, options).for_each([&](std::string_view word, uint64_t n) {
    EXPECT_TRUE(counts.emplace(word, n).second) << word;
  });
  return counts;
}

// Every pre-tokenizer, because each decides where a text may be divided.
TEST(BpeTrainer, DividesTextsWithoutChangingTheirWords) {
  const std::vector<std::string> parts = {
      "a",      "b",          "Z",       " ",  " ",   "\n", "\r\n",         "\t",
      "1",      "23",         "'",       "'s", "'LL", ".",  "!?",           "/",
      "é",      "ſ",          "e\u0301", "日", "・",  "。", "\u0e01\u0e34", "\u00a0",
      "\u3000", "\U0001F600", "Ⅷ",       "²"};
  size_t n_parts = 0;
  for (int i = 0; i <= static_cast<int>(PreTokenizer::kNone); ++i) {
    if (!has_scanner(static_cast<PreTokenizer>(i))) continue;
    for (const bool each_line : {false, true}) {
      SCOPED_TRACE(::testing::Message() << i << " " << each_line);
      std::mt19937 random(static_cast<uint32_t>(i));
      const std::string text = random_text(random, parts, 4000);
      bpe::CountOptions options;
      options.pre_tokenizer = static_cast<PreTokenizer>(i);
      options.each_line = each_line;
      options.n_threads = 1;
      const auto whole = counts_of(text, options);
      options.n_threads = 3;
      for (options.part_bytes = 1; options.part_bytes < 9; ++options.part_bytes) {
        EXPECT_EQ(counts_of(text, options), whole) << options.part_bytes;
        n_parts += bpe::divide_text(text, options).size();
      }
    }
  }
  EXPECT_GT(n_parts, 10'000U);
}

TEST(BpeTrainer, CountsTextsApart) {
  const std::vector<TrainingText> texts = {{"a", "ab"}, {"b", ""}, {"c", "ab ab"}};
  const auto counted = bpe::count_words(texts, {});
  EXPECT_EQ(counted.n_words(), 3U);
  std::map<std::string, uint64_t> counts;
  counted.for_each([&](std::string_view word, uint64_t n) { counts.emplace(word, n); });
  EXPECT_EQ(counts, (std::map<std::string, uint64_t>{{"ab", 2}, {" ab", 1}}));
}

TEST(BpeTrainer, WritesATokenizerThatReadsBack) {
  const std::string text = "It was the best of times <s>, it was  the\nworst of times.";
  for (const auto& [name, pre_tokenizer] : kPreTokenizers) {
    SCOPED_TRACE(name);
    BpeTrainingOptions options;
    options.vocab_size = 290;
    options.special_tokens = {"<s>", "</s>"};
    options.pre_tokenizer = pre_tokenizer;
    const TokenizerSpec spec = tokenizer_spec(train(text, options));
    const TokenizerSpec read = read_tokenizer_json("tokenizer.json", write_tokenizer_json(spec));
    EXPECT_EQ(read.pieces, spec.pieces);
    EXPECT_EQ(read.merges, spec.merges);
    EXPECT_EQ(read.types, spec.types);
    EXPECT_EQ(read.pre_tokenizer, pre_tokenizer);
    const auto tokenizer = Tokenizer::create(read);
    const std::vector<TokenId> ids = tokenizer->encode(text);
    EXPECT_LT(ids.size(), text.size() - 20);
    EXPECT_EQ(tokenizer->decode(ids), text);
  }
}

TEST(BpeTrainer, MakesNoSpecialTokenOfPlainText) {
  BpeTrainingOptions options;
  options.vocab_size = 262;
  options.special_tokens = {"<s>", "abc"};
  const TrainedBpe trained = train("abc abc abcd abcd", options);
  EXPECT_EQ(merges_of(trained)[1], "ab c");  // spells the special token
  const auto tokenizer = Tokenizer::create(tokenizer_spec(trained));
  const std::vector<TokenId> plain = tokenizer->encode("abcd");
  EXPECT_EQ(tokenizer->decode(plain), "abcd");
  EXPECT_EQ(std::ranges::count(plain, 1), 0);
  EncodeOptions with_special;
  with_special.special.allow = SpecialTokens::Allow::kAll;
  EXPECT_EQ(tokenizer->encode("abc", with_special), (std::vector<TokenId>{1}));
}

TEST(BpeTrainer, ReportsProgressAndCancels) {
  BpeTrainingOptions options;
  options.vocab_size = 258;
  std::vector<std::pair<uint64_t, uint64_t>> counting, merging;
  const auto note_in = [](std::vector<std::pair<uint64_t, uint64_t>>& notes) {
    return [&notes](uint64_t done, uint64_t total) {
      notes.emplace_back(done, total);
      return true;
    };
  };
  options.progress = note_in(counting);
  options.merging = note_in(merging);
  const TrainedBpe trained = train("abc abc", options);
  EXPECT_EQ(trained.last_count, 2);
  EXPECT_EQ(trained.n_bytes, 7U);
  EXPECT_EQ(trained.n_words, 2U);
  EXPECT_EQ(trained.n_different_words, 2U);
  EXPECT_EQ(counting, (std::vector<std::pair<uint64_t, uint64_t>>{{7, 7}}));
  EXPECT_EQ(merging, (std::vector<std::pair<uint64_t, uint64_t>>{{256, 258}}));
  const auto refuse = [](uint64_t, uint64_t) { return false; };
  options.merging = refuse;
  EXPECT_THROW(train("abc abc", options), ResourceError);
  options.merging = {};
  options.progress = refuse;
  EXPECT_THROW(train("abc abc", options), ResourceError);
}

TEST(BpeTrainer, SaysWhatIsWrong) {
  BpeTrainingOptions options;
  options.vocab_size = 255;
  EXPECT_EQ(refusal("a", options), "a vocabulary of 255 tokens is too small: the bytes need 256");
  options.vocab_size = 257;
  options.special_tokens = {"<s>", "a", "</s>"};
  EXPECT_EQ(refusal("a", options),
            "a vocabulary of 257 tokens is too small: the bytes and the special tokens need 258");
  options.vocab_size = int64_t{1} << 40;
  EXPECT_THROW(train("a", options), ArgumentError);
  options.vocab_size = 300;
  options.special_tokens = {"<s>", "</s>", "<s>"};
  EXPECT_EQ(refusal("a", options), "the special token '<s>' is listed twice");
  options.special_tokens = {""};
  EXPECT_EQ(refusal("a", options), "a special token is empty");
  options.special_tokens = {"\xff"};
  EXPECT_EQ(refusal("a", options), "the special token '\\xff' is not UTF-8");
  options.special_tokens = {};
  EXPECT_EQ(refusal("", options), "text is empty: nothing to learn from");
  EXPECT_THROW(train_bpe({}, options), ArgumentError);
}

TEST(BpeTrainer, NamesTheFirstByteThatIsNotUtf8) {
  std::string text = "ab é 日 \U0001F600";
  while (text.size() < (3U << 20)) text += " ab";
  const size_t end = text.size();
  for (const auto& [at, damage] : std::map<size_t, std::string>{{0, "\xff"},
                                                                {3, "\x80"},
                                                                {100, "\xc3"},
                                                                {(2 << 20) + 1, "\xed\xa0\x80"},
                                                                {end, "\xe6\x97"}}) {
    std::string damaged = text;
    damaged.replace(std::min(at, end), damage.size(), damage);
    try {
      train(damaged, {});
      ADD_FAILURE() << "was read";
    } catch (const FormatError& error) {
      EXPECT_EQ(error.offset(), at);
      EXPECT_EQ(error.path(), "text");
    }
  }
}

}  // namespace
}  // namespace limpid
