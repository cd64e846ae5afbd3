#include <gtest/gtest.h>

#include "checkpoint/gguf.h"
#include "checkpoint/gguf_builder.h"
#include "checkpoint/temp_file.h"
#include "expect_error.h"
#include "limpid/error.hpp"

namespace limpid {
namespace {

using gguf_test::GgufSketch;
using gguf_test::number;
using gguf_test::serialize;

GgufSketch part(uint16_t no, uint16_t count, int32_t n_tensors) {
  GgufSketch sketch;
  sketch.add("split.no", 2, number(no));
  sketch.add("split.count", 2, number(count));
  sketch.add("split.tensors.count", 5, number(n_tensors));
  return sketch;
}

class GgufSplit : public testing::Test {
 protected:
  GgufSplit() {
    parts_[0] = part(0, 3, 2);
    parts_[0].add_string("general.architecture", "llama");
    parts_[1] = part(1, 3, 2);
    parts_[1].add_tensor("one", {1}, 0, number(1.0f));
    parts_[2] = part(2, 3, 2);
    parts_[2].add_tensor("two", {1}, 0, number(2.0f));
  }

  std::string name(int i) const { return "m-0000" + std::to_string(i + 1) + "-of-00003.gguf"; }
  Checkpoint open() {
    for (int i = 0; i < 3; ++i) folder_.write(name(i), serialize(parts_[i]));
    return open_gguf(folder_.path(name(0)));
  }
  void expect_error(const char* text) {
    limpid::expect_error<Error>([&] { open(); }, {text});
  }

  TempFolder folder_;
  GgufSketch parts_[3];
};

TEST_F(GgufSplit, TheFirstPartOpensAll) {
  const Checkpoint checkpoint = open();
  EXPECT_EQ(checkpoint.files.size(), 3u);
  EXPECT_EQ(checkpoint.tensor_order, (std::vector<std::string>{"one", "two"}));
  EXPECT_EQ(*checkpoint.find("two")->f32(), 2.0f);
  EXPECT_EQ(checkpoint.metadata.string("general.architecture"), "llama");
}

TEST_F(GgufSplit, AnotherPartSaysWhichToName) {
  open();
  limpid::expect_error<FormatError>([&] { open_gguf(folder_.path(name(1))); },
                                    {"split.no: this is part 2 of 3; name the first"});
}

TEST_F(GgufSplit, AMissingPartIsNamed) {
  folder_.write(name(0), serialize(parts_[0]));
  folder_.write(name(1), serialize(parts_[1]));
  limpid::expect_error<ResourceError>([&] { open_gguf(folder_.path(name(0))); },
                                      {"m-00003-of-00003.gguf is missing"});
}

TEST_F(GgufSplit, PartsThatDoNotBelongTogetherAreRefused) {
  parts_[1].metadata[0].value = number<uint16_t>(2);
  expect_error("split.no: 2, expected 1");
}

TEST_F(GgufSplit, CountsMustAgree) {
  parts_[2].metadata[1].value = number<uint16_t>(4);
  expect_error("split.count: 4, but the first part says 3");
}

TEST_F(GgufSplit, TheNumberOfTensorsMustAgree) {
  parts_[0].metadata[2].value = number<int32_t>(5);
  expect_error("split.tensors.count: 5, but the 3 parts hold 2");
}

TEST_F(GgufSplit, ATensorInTwoPartsIsRefused) {
  parts_[2].tensors[0].name = "one";
  expect_error("tensor 'one': is already in an earlier part");
}

TEST_F(GgufSplit, SplitKeysOfWrongTypeAreRefused) {
  parts_[0].metadata[1] = {"split.count", 6, number(3.0f), {}};
  expect_error("split.count: must be a non-negative integer");
}

TEST_F(GgufSplit, ARenamedFirstPartIsExplained) {
  open();
  std::filesystem::rename(folder_.path(name(0)), folder_.path("renamed.gguf"));
  EXPECT_THROW(open_gguf(folder_.path("renamed.gguf")), FormatError);
}

TEST(GgufSplitNumbers, BeyondThirtyTwoBitsAreRefused) {
  const TempFolder folder;
  GgufSketch sketch;
  sketch.add("split.count", 2, number(uint16_t{2}));
  sketch.add("split.no", 11, number(int64_t{INT64_MAX}));
  const std::string path = folder.write("m-00001-of-00002.gguf", serialize(sketch));
  expect_error<FormatError>([&] { open_gguf(path); }, {"at most 32 bits"});
}

}  // namespace
}  // namespace limpid
