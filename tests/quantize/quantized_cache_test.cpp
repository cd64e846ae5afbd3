#include "quantize/quantized_cache.h"

#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <type_traits>
#include <variant>

#include "base/mapped_file.h"
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

TEST_F(QuantizedCache, WhatAKilledProcessLeftGoesAfterADay) {
  const std::string keep = result("a.gguf", 0);
  result("b.gguf.12-1.part", 25);
  result("b.gguf.34-1.part", 1);
  bound_quantized_cache(folder_.folder(), keep, 1000);
  EXPECT_EQ(names(), (Names{"a.gguf", "b.gguf.34-1.part"}));
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

// Another value of the same type.
MetadataValue changed(MetadataValue value) {
  std::visit(
      [](auto& held) {
        using Held = std::remove_reference_t<decltype(held)>;
        if constexpr (std::is_same_v<Held, bool>) {
          held = !held;
        } else if constexpr (std::is_arithmetic_v<Held>) {
          held += 1;
        } else {
          held.push_back({});
        }
      },
      value.value);
  return value;
}

// Whatever a flag or a file beside the weights can change of a model, the calibration may depend
// on.
TEST_F(QuantizedCache, TheNameHoldsAllThatTheResultDependsOn) {
  Metadata more;
  more.set("tokenizer.ggml.tokens", {std::vector<std::string>{"a", "bc"}, "array of string"});
  more.set("tokenizer.ggml.scores", {std::vector<double>{0.5, 1}, "array of f32"});
  more.set("tokenizer.ggml.token_type", {std::vector<int64_t>{1, 2}, "array of i32"});
  more.set("tokenizer.ggml.add_bos_token", {true, "bool"});
  const Checkpoint source = open_gguf(testing::write_tiny_gguf(folder_, {}, more));
  const FileType& q4_0 = file_type_from_name("q4_0");
  const std::string plain = source_identity(source, q4_0, {});
  EXPECT_EQ(source_identity(Checkpoint(source), q4_0, {}), plain);
  EXPECT_NE(source_identity(source, file_type_from_name("q4_1"), {}), plain);
  EXPECT_NE(source_identity(source, q4_0, {.progress = {}, .calibrate = false}), plain);

  const auto differs = [&](const std::string& what, const auto& change) {
    Checkpoint other = source;
    change(other);
    EXPECT_NE(source_identity(other, q4_0, {}), plain) << what;
  };
  ASSERT_GT(source.metadata.all().size(), 10U);
  for (const auto& [key, value] : source.metadata.all()) {
    const std::string name = key;
    differs(name, [&](Checkpoint& c) { c.metadata.set(name, changed(value)); });
    differs("no " + name, [&](Checkpoint& c) { c.metadata.erase_below(name); });
  }
  differs("tokens cut elsewhere", [](Checkpoint& c) {
    c.metadata.set("tokenizer.ggml.tokens",
                   {std::vector<std::string>{"ab", "c"}, "array of string"});
  });
  differs("order of rows", [](Checkpoint& c) { c.row_order = RowOrder::kHalfSplit; });
  differs("a tensor fewer", [](Checkpoint& c) { c.tensor_order.pop_back(); });
  differs("two tensors in each other's place", [](Checkpoint& c) {
    std::swap(c.tensors["blk.0.attn_k.weight"], c.tensors["blk.0.attn_v.weight"]);
  });
  differs("a tensor in memory", [](Checkpoint& c) {
    static const std::vector<float> values(64, 2.0F);
    c.tensors["blk.0.attn_norm.weight"].data = reinterpret_cast<const std::byte*>(values.data());
  });
  const auto attach = [&](const std::string& content) {
    const std::string path = folder_.write("attached" + content, content);
    return
        [file = MappedFile::open(path)](Checkpoint& c) { c.attachments["tokenizer.json"] = file; };
  };
  differs("a tokenizer", attach("{}"));
  Checkpoint one = source, two = source;
  attach("{}")(one);
  attach("[]")(two);
  EXPECT_NE(source_identity(one, q4_0, {}), source_identity(two, q4_0, {}));
}

}  // namespace
}  // namespace limpid
