// Tokenizers that need no training, documents, windows and schedules.
#include "train/training_data.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <ctime>
#include <limits>
#include <numeric>
#include <set>

#include "checkpoint/temp_file.h"
#include "data_paths.h"
#include "limpid/error.hpp"
#include "model/model_files.h"
#include "model/tokenizer_from_metadata.h"
#include "tokenizer/tokenizer.h"
#include "train/schedule.h"
#include "train/simple_tokenizers.h"
#include "train/token_documents.h"

namespace limpid {
namespace {

TEST(CharacterTokenizer, HasTheCharactersInOrderOfTheirCodePoints) {
  const auto tokenizer = Tokenizer::create(character_tokenizer("hello world\n"));
  EXPECT_EQ(tokenizer->vocab_size(), 9);  // "\n dehlorw"
  EXPECT_EQ(tokenizer->encode("\n dehlorw"), (std::vector<TokenId>{0, 1, 2, 3, 4, 5, 6, 7, 8}));
  EXPECT_EQ(tokenizer->decode(tokenizer->encode("low hero")), "low hero");
}

TEST(CharacterTokenizer, MergesCharactersOfSeveralBytes) {
  const std::string text = "aé€😀ü";
  const auto tokenizer = Tokenizer::create(character_tokenizer(text));
  const std::vector<TokenId> ids = tokenizer->encode("aéü€😀");
  EXPECT_EQ(ids, (std::vector<TokenId>{0, 1, 2, 3, 4}));
  EXPECT_EQ(tokenizer->decode(tokenizer->encode("ü😀€ éa")), "ü😀€éa");  // no token for the space
  EXPECT_THROW(character_tokenizer("\xFF"), ArgumentError);
  EXPECT_THROW(character_tokenizer(""), ArgumentError);
}

TEST(CharacterTokenizer, HasTheCharacterNulOfAJsonText) {
  const std::string text("a\0b", 3);
  const auto tokenizer = Tokenizer::create(character_tokenizer(text));
  EXPECT_EQ(tokenizer->encode(text), (std::vector<TokenId>{1, 0, 2}));
  EXPECT_EQ(tokenizer->decode(tokenizer->encode(text)), text);
}

TEST(ByteTokenizer, HasEveryByteAndAnEnd) {
  const auto tokenizer = Tokenizer::create(byte_tokenizer());
  std::string bytes(256, '\0');
  std::iota(bytes.begin(), bytes.end(), '\0');
  std::vector<TokenId> ids = tokenizer->encode(bytes);
  EXPECT_EQ(tokenizer->decode(ids), bytes);
  std::ranges::sort(ids);
  EXPECT_EQ(ids.size(), 256U);
  EXPECT_EQ(ids.front(), 0);
  EXPECT_EQ(ids.back(), 255);
  TokenDocuments documents;
  append_document(documents, "ab", *tokenizer);
  append_document(documents, "c", *tokenizer);
  EXPECT_EQ(documents.ids, (std::vector<int32_t>{'a', 'b', 256, 'c', 256}));
  EXPECT_EQ(documents.begins, (std::vector<int64_t>{0, 3}));
}

// `lengths` documents; token t is t.
TokenDocuments numbered(const std::vector<int64_t>& lengths) {
  TokenDocuments documents;
  for (const int64_t length : lengths) {
    documents.begins.push_back(documents.n_tokens());
    for (int64_t i = 0; i < length; ++i)
      documents.ids.push_back(static_cast<int32_t>(documents.ids.size()));
  }
  return documents;
}

// Where documents begin, counted from the first token here.
std::vector<int64_t> begins_of(const DocumentView& documents) {
  std::vector<int64_t> begins;
  for (const int64_t begin : documents.begins) begins.push_back(begin - documents.origin);
  return begins;
}

TEST(HeldOut, IsTheLastDocumentsOrAPartOfTheOnlyOne) {
  DocumentView documents = numbered({10, 10, 10, 10});
  DocumentView held_out = split_off(documents, 0.25);
  EXPECT_EQ(documents.n_tokens(), 30);
  EXPECT_EQ(begins_of(documents), (std::vector<int64_t>{0, 10, 20}));
  EXPECT_EQ(held_out.ids.front(), 30);
  EXPECT_EQ(begins_of(held_out), (std::vector<int64_t>{0}));
  const DocumentView end_of_it = split_off(held_out, 0.4);
  EXPECT_EQ(held_out.n_tokens(), 6);
  EXPECT_EQ(end_of_it.ids.front(), 36);

  DocumentView one = numbered({100});
  const DocumentView end = split_off(one, 0.1);
  EXPECT_EQ(one.n_tokens(), 90);
  EXPECT_EQ(end.n_tokens(), 10);
  EXPECT_EQ(BatchSampler(end, 9, 1).next(1).token_ids.front() / 10, 9);

  DocumentView all = numbered({5, 5});
  EXPECT_EQ(split_off(all, 0).n_tokens(), 0);
  EXPECT_EQ(all.n_tokens(), 10);
}

TEST(HeldOut, IsNotLessThanHalfOfItsShare) {
  DocumentView documents = numbered({100, 3});
  const DocumentView held_out = split_off(documents, 0.2);
  EXPECT_EQ(documents.n_tokens(), 83);
  EXPECT_EQ(begins_of(documents), (std::vector<int64_t>{0}));
  EXPECT_EQ(held_out.ids.front(), 83);
  EXPECT_EQ(begins_of(held_out), (std::vector<int64_t>{17}));
  DocumentView others = numbered({100, 10});
  EXPECT_EQ(split_off(others, 0.2).n_tokens(), 22);
  DocumentView whole = numbered({100, 11});
  EXPECT_EQ(split_off(whole, 0.2).n_tokens(), 11);  // half of 22
}

TEST(HeldOut, KeepsItsDocumentsApart) {
  DocumentView documents = numbered({10, 10, 7, 14});
  const DocumentView held_out = split_off(documents, 0.6);
  const Batch batch = BatchSampler(held_out, 20, 1).next(1);
  EXPECT_EQ(batch.token_ids.front(), 20);
  EXPECT_EQ(batch.lengths, (std::vector<int64_t>{7, 13}));
  EXPECT_EQ(batch.targets[5], 26);
  EXPECT_EQ(batch.targets[6], Batch::kNoTarget);
}

TEST(Batches, HaveEachWindowOfAnEpochOnce) {
  const TokenDocuments documents = numbered({1007});
  BatchSampler sampler(documents, 10, 3);
  ASSERT_EQ(sampler.windows_per_epoch(), 100);
  std::vector<int32_t> seen = sampler.next(100).token_ids;
  EXPECT_FALSE(std::ranges::is_sorted(seen));
  std::ranges::sort(seen);
  for (size_t i = 1; i < seen.size(); ++i) EXPECT_EQ(seen[i], seen[i - 1] + 1);
  EXPECT_NE(sampler.next(100).token_ids, BatchSampler(documents, 10, 3).next(100).token_ids);
}

TEST(Batches, DependOnSeedAndPositionOnly) {
  const TokenDocuments documents = numbered({503});
  BatchSampler one(documents, 10, 3);
  one.next(70);
  const Batch expected = one.next(5);
  BatchSampler other(documents, 10, 3);
  other.set_position(70);
  EXPECT_EQ(other.next(5).token_ids, expected.token_ids);
  BatchSampler seeded(documents, 10, 4);
  seeded.set_position(70);
  EXPECT_NE(seeded.next(5).token_ids, expected.token_ids);
}

TEST(Batches, NeverCrossDocuments) {
  const std::set<int32_t> kLast = {6, 7, 37, 49, 53};
  TokenDocuments documents = numbered({7, 1, 30, 12, 4});
  BatchSampler sampler(documents, 8, 1);
  const Batch batch = sampler.next(3 * sampler.windows_per_epoch());
  int64_t t = 0;
  for (const int64_t length : batch.lengths) {
    for (int64_t i = 0; i < length; ++i, ++t) {
      const int32_t id = batch.token_ids[t];
      const bool ends = kLast.contains(id);
      EXPECT_EQ(batch.targets[t], ends ? Batch::kNoTarget : id + 1);
      if (i > 0) {
        EXPECT_EQ(id, batch.token_ids[t - 1] + 1);
      }
      if (ends) {
        EXPECT_EQ(i, length - 1);
      }
    }
  }
  EXPECT_EQ(t, batch.n_tokens());
}

TEST(Batches, KeepDocumentsApartBesideAnEmptyOne) {
  const Batch batch = BatchSampler(numbered({4, 0, 3, 3}), 9, 1).next(1);
  EXPECT_EQ(batch.lengths, (std::vector<int64_t>{4, 3, 2}));
}

TEST(Batches, LearnOnlyWhatIsMarked) {
  TokenDocuments documents = numbered({11});
  documents.learned.assign(11, 0);
  documents.learned[4] = 1;
  const Batch batch = BatchSampler(documents, 10, 1).next(1);
  EXPECT_EQ(batch.n_targets(), 1);
  EXPECT_EQ(batch.targets[3], 4);
}

TEST(Batches, PassOverWindowsWithoutATokenToLearn) {
  TokenDocuments documents = numbered({1001});
  documents.learned.assign(1001, 0);
  for (const size_t at : {205, 206, 777}) documents.learned[at] = 1;
  BatchSampler sampler(documents, 10, 1);
  for (int i = 0; i < 6; ++i) {
    const Batch batch = sampler.next(1);
    EXPECT_EQ(batch.n_tokens(), 10);
    EXPECT_GT(batch.n_targets(), 0);
  }
  documents.learned.assign(1001, 0);
  EXPECT_THROW(BatchSampler(documents, 10, 1).next(1), ArgumentError);
}

TEST(Batches, NeedMoreTokensThanASequence) {
  const TokenDocuments documents = numbered({10});
  EXPECT_THROW(BatchSampler(documents, 10, 1), ArgumentError);
  EXPECT_EQ(BatchSampler(documents, 9, 1).windows_per_epoch(), 1);
}

// The file of a tokenizer alone names an end, and does not say that it is one.
TEST(Documents, EndWithTheTokenOfThatName) {
  TokenizerSpec spec = byte_tokenizer();
  spec.eos.reset();
  const auto tokenizer = Tokenizer::create(spec);
  TokenDocuments documents;
  append_document(documents, "a", *tokenizer);
  EXPECT_EQ(documents.ids, (std::vector<int32_t>{'a', 256}));
}

TEST(Dialogues, NameTheLineAtFault) {
  const Checkpoint model = open_model_files({testing::test_data_path("cli/tiny_chat.gguf")});
  const auto tokenizer = tokenizer_from(model);
  const TempFolder folder;
  const auto message_of = [&](const std::string& lines) -> std::string {
    const std::string path = folder.write("bad.jsonl", lines);
    try {
      read_documents({&path, 1}, *tokenizer, nullptr);
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_NE(message_of("{\"text\": \"a\"}\nnot json\n").find("line 2"), std::string::npos);
  EXPECT_NE(message_of("[1]\n").find("line 1"), std::string::npos);
  EXPECT_NE(message_of("{\"messages\": []}\n").find("line 1"), std::string::npos);
  EXPECT_NE(message_of(std::string(60'000, '[') + "\n").find("line 1"), std::string::npos);
  EXPECT_NE(message_of(R"({"messages": [{"role": "user", "content": "a"}]})").find("template"),
            std::string::npos);
}

TEST(Documents, NameThePlaceThatTheTokenizerRefuses) {
  TokenizerSpec spec = byte_tokenizer();
  spec.splits.emplace_back().pattern = "(a+a+)+b";
  const auto tokenizer = Tokenizer::create(spec);
  const TempFolder folder;
  const std::string slow(100, 'a');  // some 2^100 ways to divide the letters
  const std::pair<std::string, std::string> cases[] = {
      {folder.write("slow.txt", slow), "slow.txt: "},
      {folder.write("slow.jsonl", "{\"text\": \"b\"}\n{\"text\": \"" + slow + "\"}\n"), "line 2"}};
  for (const auto& [path, place] : cases) {
    try {
      read_documents({&path, 1}, *tokenizer, nullptr);
      ADD_FAILURE() << path;
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find(place), std::string::npos) << error.what();
    }
  }
}

// Continuing a model on a text of other characters would learn what is left of it.
TEST(Documents, NameACharacterWithoutAToken) {
  const auto tokenizer = Tokenizer::create(character_tokenizer("abc \xC3\xA9"));
  const TempFolder folder;
  for (const char* name : {"a.txt", "a.jsonl"}) {
    const bool is_json = std::string_view(name).ends_with("jsonl");
    const std::string path =
        folder.write(name, is_json ? "{\"text\": \"ab \xD0\x96\"}\n" : "ab \xD0\x96 c");
    try {
      read_documents({&path, 1}, *tokenizer, nullptr);
      ADD_FAILURE() << path;
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find("no token for the character '\xD0\x96'"),
                std::string::npos)
          << error.what();
    }
  }
  EXPECT_EQ(lost_character("caf\xC3\xA9", *tokenizer), "f");
  EXPECT_EQ(lost_character("ab \xC3\xA9", *tokenizer), "");
  EXPECT_EQ(lost_character("\xD0\x96", *Tokenizer::create(byte_tokenizer())), "");
}

TEST(Documents, BeginAfterAByteOrderMark) {
  const auto tokenizer = Tokenizer::create(byte_tokenizer());
  const TempFolder folder;
  const std::string marked = folder.write("a.txt", "\xEF\xBB\xBFhello");
  const std::string plain = folder.write("b.txt", "hello");
  EXPECT_TRUE(std::ranges::equal(read_documents({&marked, 1}, *tokenizer, nullptr).ids,
                                 read_documents({&plain, 1}, *tokenizer, nullptr).ids));
  const std::string only = folder.write("c.txt", "\xEF\xBB\xBF");
  EXPECT_THROW(read_documents({&only, 1}, *tokenizer, nullptr), ArgumentError);
}

TEST(Documents, AreLinesOfJsonInFilesOfTheseNames) {
  const auto tokenizer = Tokenizer::create(byte_tokenizer());
  const TempFolder folder;
  for (const char* name : {"a.jsonl", "a.JSONL", "a.ndjson", "a.b.NdJson"}) {
    const std::string path = folder.write(name, "{\"text\": \"ab\"}\n");
    EXPECT_TRUE(is_json_lines(path)) << name;
    EXPECT_EQ(read_documents({&path, 1}, *tokenizer, nullptr).n_tokens(), 3) << name;
    EXPECT_EQ(read_texts({&path, 1}), "ab") << name;
  }
  for (const char* name : {"a.json", "jsonl", "a.jsonl.txt", "a.jsonl/b"})
    EXPECT_FALSE(is_json_lines(name)) << name;
}

TEST(Texts, OfATokenizerAreNamedWhenTheyAreNotUtf8) {
  const TempFolder folder;
  const std::string paths[] = {folder.write("good.txt", "a"), folder.write("bad.txt", "\xFF")};
  try {
    read_texts(paths);
    FAIL();
  } catch (const ArgumentError& error) {
    EXPECT_EQ(std::string(error.what()), paths[1] + " is not UTF-8");
  }
}

TEST(Schedules, RiseAndFall) {
  Schedule schedule{ScheduleKind::kCosine, 1.0, 0.1, 10, 110};
  EXPECT_NEAR(schedule.at(0), 1.0 / 11, 1e-12);
  EXPECT_NEAR(schedule.at(9), 10.0 / 11, 1e-12);
  EXPECT_NEAR(schedule.at(10), 1.0, 1e-12);
  EXPECT_NEAR(schedule.at(60), 0.55, 1e-12);
  EXPECT_NEAR(schedule.at(110), 0.1, 1e-12);
  schedule.kind = ScheduleKind::kLinear;
  EXPECT_NEAR(schedule.at(60), 0.55, 1e-12);
  EXPECT_NEAR(schedule.at(35), 0.775, 1e-12);
  schedule.kind = ScheduleKind::kConstant;
  EXPECT_EQ(schedule.at(110), 1.0);
  schedule.kind = ScheduleKind::kWsd;  // the last fifth, 22 steps, falls
  EXPECT_EQ(schedule.at(88), 1.0);
  EXPECT_NEAR(schedule.at(99), 0.55, 1e-12);
  EXPECT_NEAR(schedule.at(110), 0.1, 1e-12);
  schedule.n_warmup = std::numeric_limits<int64_t>::max();
  EXPECT_NEAR(schedule.at(0), 0x1p-63, 1e-25);
}

TEST(Dialogues, NameTheLineThatTheTemplateRefuses) {
  const auto tokenizer = Tokenizer::create(byte_tokenizer());
  const ChatTemplate refuses("{{ raise_exception('no') }}");
  const TempFolder folder;
  const std::string path = folder.write(
      "a.jsonl", "{\"text\": \"a\"}\n{\"messages\": [{\"role\": \"user\", \"content\": \"b\"}]}\n");
  try {
    read_documents({&path, 1}, *tokenizer, &refuses);
    FAIL();
  } catch (const FormatError& error) {
    EXPECT_NE(std::string(error.what()).find("line 2"), std::string::npos) << error.what();
  }
}

TEST(Dialogues, AreTheSameOnAnyDayInAnyZone) {
  const auto tokenizer = Tokenizer::create(byte_tokenizer());
  const ChatTemplate chat_template("{{ strftime_now('%Y-%m-%d %H') }}{{ messages[0].content }}");
  const TempFolder folder;
  const std::string path =
      folder.write("a.jsonl", R"({"messages": [{"role": "user", "content": "hi"}]})");
  const char* const zone = std::getenv("TZ");
  const std::string before = zone == nullptr ? "" : zone;
  for (const char* other : {"XYZ12", "UTC0", "XYZ-14"}) {  // POSIX counts hours to the west
    ::setenv("TZ", other, 1);
    ::tzset();
    const DocumentView documents = read_documents({&path, 1}, *tokenizer, &chat_template);
    EXPECT_EQ(tokenizer->decode(documents.ids), "2025-01-01 12hi") << other;
  }
  zone == nullptr ? ::unsetenv("TZ") : ::setenv("TZ", before.c_str(), 1);
  ::tzset();
}

}  // namespace
}  // namespace limpid
