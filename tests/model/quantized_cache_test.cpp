#include "model/quantized_cache.h"

#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>

#include "checkpoint/gguf.h"
#include "model/hugging_face_builder.h"

namespace limpid {
namespace {

namespace fs = std::filesystem;

class QuantizedCache : public ::testing::Test {
 protected:
  // A file of 100 bytes that was last used so many hours ago.
  std::string result(const std::string& name, int hours_ago) const {
    std::string path = folder_.write(name, std::string(100, 'x'));
    used(path, hours_ago);
    return path;
  }
  static void used(const std::string& path, int hours_ago) {
    fs::last_write_time(path, fs::file_time_type::clock::now() - std::chrono::hours(hours_ago));
  }
  std::vector<std::string> names() const {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(folder_.folder())) {
      names.push_back(entry.path().filename().string());
    }
    std::ranges::sort(names);
    return names;
  }

  TempFolder folder_;
};

using Names = std::vector<std::string>;

TEST_F(QuantizedCache, WhatWasNotUsedForLongestGoesFirst) {
  result("a.gguf", 2);
  result("b.gguf", 5);
  result("c.gguf", 3);
  const std::string keep = result("d.gguf", 0);
  bound_quantized_cache(folder_.folder(), keep, 400);
  EXPECT_EQ(names(), (Names{"a.gguf", "b.gguf", "c.gguf", "d.gguf"}));
  bound_quantized_cache(folder_.folder(), keep, 399);
  EXPECT_EQ(names(), (Names{"a.gguf", "c.gguf", "d.gguf"}));
  bound_quantized_cache(folder_.folder(), keep, 250);
  EXPECT_EQ(names(), (Names{"a.gguf", "d.gguf"}));
}

TEST_F(QuantizedCache, TheNewResultAndWhatIsNoResultStay) {
  const std::string keep = result("old.gguf", 9);
  result("other.gguf", 1);
  result("notes.txt", 20);
  result("other.gguf.tmp", 20);
  bound_quantized_cache(folder_.folder(), keep, 0);
  EXPECT_EQ(names(), (Names{"notes.txt", "old.gguf", "other.gguf.tmp"}));
  bound_quantized_cache(folder_.path("missing"), keep, 0);
  EXPECT_EQ(names().size(), 3U);
}

TEST_F(QuantizedCache, UsingAResultKeepsItYoung) {
  const TempFolder source;
  const Checkpoint checkpoint = open_gguf(testing::write_tiny_gguf(source, {}));
  const FileType& type = file_type_from_name("q8_0");
  quantized_through_cache(checkpoint, type, folder_.folder(), {});
  ASSERT_EQ(names().size(), 1U);
  const std::string path = folder_.path(names().front());
  used(path, 48);
  const Checkpoint again = quantized_through_cache(checkpoint, type, folder_.folder(), {});
  EXPECT_EQ(names().size(), 1U);
  EXPECT_LT(fs::file_time_type::clock::now() - fs::last_write_time(path), std::chrono::hours(1));
  EXPECT_EQ(again.find("blk.0.attn_q.weight")->dtype, DType::kQ8_0);
}

}  // namespace
}  // namespace limpid
