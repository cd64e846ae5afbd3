#include "generate/prefix_file.h"

#include <gtest/gtest.h>

#include <cstring>
#include <fstream>
#include <iterator>

#include "checkpoint/temp_file.h"
#include "generate/tiny_model.h"

namespace limpid {
namespace {

using testing::open_tiny;

std::vector<float> logits_after(const LanguageModel& model, std::span<const TokenId> tokens,
                                int64_t expected_kept) {
  Session session(model);
  EXPECT_EQ(session.assign(tokens), expected_kept);
  return {session.logits().begin(), session.logits().end()};
}

TEST(PrefixFile, GivesTheSameLogitsInAnotherProcess) {
  for (const char* executor : {"reference", "cpu"}) {
    const TempFolder folder;
    const std::string path = folder.path("prefix.kv");
    const auto first = open_tiny({.device = executor});
    const auto tokens = first.encode(std::string(150, 'x') + " and more");
    const auto expected = logits_after(first, tokens, 0);
    EXPECT_EQ(save_prefix(*engine_of(first), tokens, path), std::ssize(tokens));

    const auto second = open_tiny({.device = executor});
    engine_of(second)->scheduler().reserve(256);
    const auto restored = restore_prefix(*engine_of(second), path);
    EXPECT_EQ(restored, tokens);
    EXPECT_EQ(logits_after(second, tokens, std::ssize(tokens) - 1), expected);
  }
}

// Other programs need not pad the header to 8 bytes, as ours is.
TEST(PrefixFile, ReadsTokensAtAnyAddress) {
  const TempFolder folder;
  const std::string path = folder.path("prefix.kv");
  const auto model = open_tiny();
  const auto tokens = model.encode(std::string(150, 'x'));
  logits_after(model, tokens, 0);
  save_prefix(*engine_of(model), tokens, path);
  std::ifstream saved(path, std::ios::binary);
  std::string bytes{std::istreambuf_iterator<char>(saved), {}};
  uint64_t n_header = 0;
  std::memcpy(&n_header, bytes.data(), sizeof(n_header));
  bytes.insert(sizeof(n_header) + n_header, " ");
  ++n_header;
  std::memcpy(bytes.data(), &n_header, sizeof(n_header));
  const auto other = open_tiny();
  engine_of(other)->scheduler().reserve(256);
  EXPECT_EQ(restore_prefix(*engine_of(other), folder.write("unaligned.kv", bytes)), tokens);
}

TEST(PrefixFile, RefusesWhatIsNotThisModels) {
  const TempFolder folder;
  const std::string path = folder.path("prefix.kv");
  const auto model = open_tiny();
  const auto tokens = model.encode(std::string(150, 'x'));
  Session session(model);
  EXPECT_THROW(save_prefix(*engine_of(model), tokens, path), ArgumentError);
  session.append(tokens);
  save_prefix(*engine_of(model), tokens, path);
  const auto other = open_tiny({.device = "reference"});
  engine_of(other)->scheduler().reserve(256);
  EXPECT_THROW(restore_prefix(*engine_of(other), path), FormatError);
  const auto small = open_tiny();
  engine_of(small)->scheduler().reserve(64);
  EXPECT_THROW(restore_prefix(*engine_of(small), path), ContextOverflowError);
  EXPECT_EQ(engine_of(small)->scheduler().usage().n_free_blocks, 1);
}

TEST(PrefixFile, RefusesKeysOfOtherRotaryAngles) {
  const TempFolder folder;
  const std::string path = folder.path("prefix.kv");
  const std::string file = testing::write_tiny_model(folder);
  const auto model = LanguageModel::open(file, {.n_threads = 1});
  const auto tokens = model.encode(std::string(150, 'x'));
  logits_after(model, tokens, 0);
  save_prefix(*engine_of(model), tokens, path);
  const auto scaled = LanguageModel::open(file, {.n_threads = 1, .rope_scaling = "linear:4"});
  engine_of(scaled)->scheduler().reserve(256);
  EXPECT_THROW(restore_prefix(*engine_of(scaled), path), FormatError);
}

}  // namespace
}  // namespace limpid
