// Tokenized data: the same tokens on any number of threads, with a cache and without, and with a
// cache that is damaged.
#include "train/token_cache.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <set>
#include <tuple>

#include "checkpoint/temp_file.h"
#include "limpid/error.hpp"
#include "tokenizer/tokenizer.h"
#include "train/bpe/bpe_trainer.h"
#include "train/simple_tokenizers.h"
#include "train/training_data.h"

namespace limpid {
namespace {

namespace fs = std::filesystem;

std::string bytes_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// What of documents decides a run.
using Content = std::tuple<std::vector<int32_t>, std::vector<int64_t>, std::vector<uint8_t>>;
Content content(const DocumentView& documents) {
  return {{documents.ids.begin(), documents.ids.end()},
          {documents.begins.begin(), documents.begins.end()},
          {documents.learned.begin(), documents.learned.end()}};
}

// Texts that are several pieces of work, dialogues, and a tokenizer with a chat template.
class TokenCache : public ::testing::Test {
 protected:
  TokenCache() {
    std::string text;
    std::string lines;
    for (int i = 0; text.size() < 5'000'000; ++i)
      text += fmt::format("Word {} is it's own  neighbour,\n\n the {}th.\t ", i * 7919, i);
    for (int i = 0; lines.size() < 2'500'000; ++i)
      lines += fmt::format("{{\"text\": \"the cat {} and {} sat \"}}\n\n", i, i * 31);
    lines += R"({"messages": [{"role": "user", "content": "the cat"},)"
             R"( {"role": "assistant", "content": "the mat"}]})";
    paths_ = {folder_.write("a.txt", text), folder_.write("b.jsonl", lines),
              folder_.write("c.txt", "the end")};
  }
  DocumentView read(const DataOptions& options) const {
    return read_documents(paths_, *tokenizer_, &template_, options);
  }
  std::string cache() const { return folder_.path("tokens"); }
  std::string file() const { return fs::directory_iterator(cache())->path().string(); }

  TempFolder folder_;
  std::vector<std::string> paths_;
  std::shared_ptr<const Tokenizer> tokenizer_ = Tokenizer::create(byte_tokenizer());
  ChatTemplate template_{"{% for m in messages %}[{{ m.role }}]{{ m.content }};{% endfor %}"};
};

TEST_F(TokenCache, HasWhatIsTokenizedWithoutIt) {
  const Content expected = content(read({.n_threads = 1}));
  EXPECT_GT(std::get<0>(expected).size(), 5'000'000U);
  EXPECT_EQ(std::get<2>(expected).size(), std::get<0>(expected).size());
  EXPECT_TRUE(content(read({.n_threads = 3})) == expected);
  EXPECT_TRUE(content(read({.n_threads = 2, .cache_folder = cache()})) == expected);
  uint64_t n_reports = 0;
  const auto count = [&](uint64_t, uint64_t) { return ++n_reports > 0; };
  EXPECT_TRUE(content(read({.cache_folder = cache(), .progress = count})) == expected);
  EXPECT_EQ(n_reports, 0U);
}

TEST_F(TokenCache, IsMadeAnewWhenItIsDamaged) {
  const std::string text = bytes_of(paths_[1]);
  paths_ = {folder_.write("small.jsonl", text.substr(text.find('\n', text.size() - 2'000))),
            paths_[2]};
  const Content expected = content(read({.cache_folder = cache()}));
  const std::string whole = bytes_of(file());
  const size_t n = whole.size();
  std::vector<std::string> damaged = {"", whole.substr(0, 100), whole.substr(0, n - 1),
                                      whole.substr(0, n / 2), whole + "x"};
  // Bytes of the header, begins, ids, learned. The header begins with its length.
  uint64_t n_header = 0;
  std::memcpy(&n_header, whole.data(), sizeof(n_header));
  const size_t begins = sizeof(n_header) + n_header;
  ASSERT_LT(begins + 16, n / 2);
  for (const size_t at : {3UL, 20UL, 90UL, 150UL, 200UL, begins, begins + 9, n / 2, n - 1}) {
    damaged.push_back(whole);
    damaged.back()[at] ^= 1;
  }
  for (const std::string& bytes : damaged) {
    folder_.write("tokens/" + fs::path(file()).filename().string(), bytes);
    EXPECT_TRUE(content(read({.cache_folder = cache()})) == expected);
    EXPECT_TRUE(bytes_of(file()) == whole);
  }
}

TEST_F(TokenCache, DependsOnAllThatTheTokensDependOn) {
  ThreadPool pool(2);
  const std::string text = "some text";
  const std::string more = "more text";
  const TokenizerSpec bytes = byte_tokenizer();
  TokenizerSpec other = bytes;
  other.pre_tokenizer = PreTokenizer::kLlama3;
  TokenizerSpec with_bos = bytes;
  with_bos.bos = 256;
  std::set<std::string> keys;
  const std::vector<std::vector<DataText>> data = {{{false, text}},
                                                   {{true, text}},
                                                   {{false, more}},
                                                   {{false, text}, {false, more}},
                                                   {{false, "some"}, {false, " text"}}};
  for (const auto& texts : data) keys.insert(token_cache_key(texts, bytes, "", pool));
  keys.insert(token_cache_key(data[0], bytes, "{{ x }}", pool));
  keys.insert(token_cache_key(data[0], other, "", pool));
  keys.insert(token_cache_key(data[0], with_bos, "", pool));
  EXPECT_EQ(keys.size(), 8U);
}

TEST_F(TokenCache, IsDoneWithoutWhereItCannotBeWritten) {
  folder_.write("taken", "a file where the folder should be");
  EXPECT_TRUE(content(read({.cache_folder = folder_.path("taken")})) == content(read({})));
}

TEST_F(TokenCache, IsMadeAnewWhenItCannotBeRead) {
  if (::geteuid() == 0) GTEST_SKIP() << "root may read every file";
  paths_.erase(paths_.begin(), paths_.begin() + 2);
  const Content expected = content(read({.cache_folder = cache()}));
  fs::permissions(file(), fs::perms::none);
  EXPECT_TRUE(content(read({.cache_folder = cache()})) == expected);
  EXPECT_NE(fs::status(file()).permissions(), fs::perms::none);
}

TEST_F(TokenCache, IsNotWrittenWhenTokenizingFails) {
  const auto cancel = [](uint64_t, uint64_t) { return false; };
  EXPECT_THROW(read({.cache_folder = cache(), .progress = cancel}), ResourceError);
  std::string lines;
  for (int i = 0; i < 100'000; ++i)
    lines += R"({"text": "the cat sat on the mat"})"
             "\n";
  std::string bad = lines;
  for (const size_t line : {90'000, 50'000, 70'001}) bad[line * 35] = '!';
  const std::string path = folder_.write("bad.jsonl", bad);
  try {
    read_documents({&path, 1}, *tokenizer_, nullptr, {.n_threads = 3, .cache_folder = cache()});
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("line 50001"), std::string::npos) << error.what();
  }
  EXPECT_FALSE(fs::exists(cache()));
}

// Trained vocabularies with merges, with a beginning of the text and without.
TEST(Pieces, OfADocumentHaveItsTokens) {
  std::string text;
  for (int i = 0; text.size() < 3'000'000; ++i)
    text += fmt::format("The cat's {} sat  on\n\nthe mat \u00e9t\u00e9's {}!!  ", i, i * 17);
  const TempFolder folder;
  const std::string path = folder.write("text.txt", text);
  for (const PreTokenizer pre_tokenizer :
       {PreTokenizer::kGpt2, PreTokenizer::kLlama3, PreTokenizer::kQwen2, PreTokenizer::kNone}) {
    const TrainingText training{path, std::string_view(text).substr(0, 100'000)};
    BpeTrainingOptions options;
    options.vocab_size = 400;
    options.pre_tokenizer = pre_tokenizer;
    options.special_tokens = {"<end>"};
    TokenizerSpec spec = tokenizer_spec(train_bpe({&training, 1}, options));
    spec.bos = spec.eos = 0;
    for (const bool add : {false, true}) {
      spec.add_bos = spec.add_eos = add;
      const auto tokenizer = Tokenizer::create(spec);
      std::vector<TokenId> expected = tokenizer->encode(text);
      if (!add) expected.push_back(0);
      EXPECT_TRUE(std::get<0>(content(read_documents({&path, 1}, *tokenizer, nullptr))) == expected)
          << static_cast<int>(pre_tokenizer) << add;
    }
  }
  const auto characters = Tokenizer::create(character_tokenizer(text));
  EXPECT_EQ(std::get<0>(content(read_documents({&path, 1}, *characters, nullptr))),
            characters->encode(text));
}

// A file of many stories: each is a document, however long, and on any number of threads.
TEST(Pieces, AreWholeDocumentsBetweenEndsOfText) {
  std::string text;
  std::vector<std::string> stories;
  for (int i = 0; text.size() < 3'000'000; ++i) {
    stories.push_back(fmt::format("Story {}. \n\nOnce", i));
    while (stories.back().size() < (i == 7 ? 2'500'000U : 300U)) stories.back() += " upon a time";
    text += stories.back() + (i % 2 == 0 ? "\n<|endoftext|>\n" : "<|endoftext|>");
  }
  text += "<|endoftext|> \n<|endoftext|>\n";  // what is empty is not a document
  const TempFolder folder;
  const std::string path = folder.write("stories.txt", text);
  const auto tokenizer = Tokenizer::create(byte_tokenizer());
  TokenDocuments expected;
  for (const std::string& story : stories) append_document(expected, story, *tokenizer);
  for (const int n_threads : {1, 3}) {
    const DocumentView documents =
        read_documents({&path, 1}, *tokenizer, nullptr, {.n_threads = n_threads});
    EXPECT_TRUE(content(documents) == content(expected)) << n_threads;
  }
  std::vector<std::string> texts;
  for_each_text(path, [&](std::string_view text) { texts.emplace_back(text); });
  EXPECT_TRUE(texts == stories);
}

}  // namespace
}  // namespace limpid
