#include "checkpoint/gguf_writer.h"

#include <gtest/gtest.h>

#include <cstring>

#include "checkpoint/gguf.h"
#include "checkpoint/gguf_builder.h"
#include "checkpoint/temp_file.h"
#include "checkpoint/write_gguf.h"
#include "limpid/error.hpp"

namespace limpid {
namespace {

using testing::write_gguf;

std::vector<NamedTensor> all_tensors(const Checkpoint& checkpoint) {
  std::vector<NamedTensor> tensors;
  for (const std::string& name : checkpoint.tensor_order)
    tensors.push_back({name, *checkpoint.find(name)});
  return tensors;
}

void expect_same(const MetadataValue& a, const MetadataValue& b, const std::string& key) {
  EXPECT_EQ(a.type_name, b.type_name) << key;
  ASSERT_EQ(a.value.index(), b.value.index()) << key;
  if (const auto* items = std::get_if<MetadataValue::Array>(&a.value)) {
    const auto& others = std::get<MetadataValue::Array>(b.value);
    ASSERT_EQ(items->size(), others.size()) << key;
    for (size_t i = 0; i < items->size(); ++i) expect_same((*items)[i], others[i], key);
    return;
  }
  std::visit(
      [&](const auto& value) {
        using Value = std::decay_t<decltype(value)>;
        if constexpr (!std::is_same_v<Value, MetadataValue::Array>) {
          EXPECT_EQ(value, std::get<Value>(b.value)) << key;
        }
      },
      a.value);
}

TEST(GgufWriter, WhatIsWrittenIsReadBack) {
  TempFolder folder;
  gguf_test::GgufSketch sketch = gguf_test::small_sketch();
  sketch.add("a.empty", 9, gguf_test::array_value(3, 0, ""));
  sketch.add("a.big", 9, gguf_test::array_value(10, 1, gguf_test::number(uint64_t{1} << 62)));
  const Checkpoint first = open_gguf(folder.write("first.gguf", serialize(sketch)));
  write_gguf(folder.path("second.gguf"), first.metadata, all_tensors(first));
  const Checkpoint second = open_gguf(folder.path("second.gguf"));
  EXPECT_EQ(second.metadata.all().size(), first.metadata.all().size() - 1);
  EXPECT_FALSE(second.metadata.contains("general.alignment"));
  for (const auto& [key, value] : second.metadata.all())
    expect_same(value, *first.metadata.find(key), key);
  EXPECT_EQ(second.tensor_order, first.tensor_order);
  for (const auto& [name, view] : first.tensors) {
    const TensorView* other = second.find(name);
    ASSERT_NE(other, nullptr);
    EXPECT_EQ(other->dtype, view.dtype);
    EXPECT_EQ(other->shape, view.shape);
    EXPECT_EQ(std::memcmp(other->data, view.data, view.n_bytes()), 0) << name;
    EXPECT_EQ(reinterpret_cast<uintptr_t>(other->data) % 32, 0u);
  }
}

TEST(GgufWriter, AFileMayBeWrittenOverItsOwnSource) {
  TempFolder folder;
  const std::string path = folder.write("m.gguf", serialize(gguf_test::small_sketch()));
  const Checkpoint source = open_gguf(path);
  write_gguf(path, source.metadata, all_tensors(source));
  const Checkpoint copy = open_gguf(path);
  EXPECT_EQ(copy.find("plain")->f32()[5], 5.0f);
  EXPECT_EQ(source.find("plain")->f32()[5], 5.0f);
}

TEST(GgufWriter, ValuesThatDoNotFitTheirNameTakeTheWidestType) {
  TempFolder folder;
  Metadata metadata;
  metadata.set("narrow", {int64_t{7}, "u8"});
  metadata.set("wide", {int64_t{700}, "u8"});
  metadata.set("foreign", {int64_t{-7}, "int (JSON)"});
  metadata.set("third", {1.0 / 3.0, "f32"});
  write_gguf(folder.path("m.gguf"), metadata, {});
  const Checkpoint read = open_gguf(folder.path("m.gguf"));
  EXPECT_EQ(read.metadata.find("narrow")->type_name, "u8");
  EXPECT_EQ(read.metadata.find("wide")->type_name, "i64");
  EXPECT_EQ(read.metadata.integer("wide"), 700);
  EXPECT_EQ(read.metadata.find("foreign")->type_name, "i64");
  EXPECT_EQ(read.metadata.number("third"), 1.0 / 3.0);
}

TEST(GgufWriter, FailuresLeaveNothingBehind) {
  TempFolder folder;
  const Tensor tensor(DType::kF32, {2});
  const std::string path = folder.path("m.gguf");
  const std::vector<NamedTensor> twice = {{"a", tensor}, {"a", tensor}};
  EXPECT_THROW(write_gguf(path, {}, twice), ArgumentError);
  const NamedTensor unnamed[] = {{"", tensor}};
  EXPECT_THROW(write_gguf(path, {}, unnamed), ArgumentError);
  const NamedTensor long_name[] = {{std::string(65, 'x'), tensor}};
  EXPECT_THROW(write_gguf(path, {}, long_name), ArgumentError);
  const Tensor flags(DType::kBool, {2});
  const NamedTensor boolean[] = {{"b", flags}};
  EXPECT_THROW(write_gguf(path, {}, boolean), UnsupportedError);
  Metadata mixed;
  mixed.set("m", {MetadataValue::Array{{int64_t{1}, "i64"}}, "array"});
  EXPECT_THROW(write_gguf(path, mixed, {}), UnsupportedError);
  EXPECT_TRUE(std::filesystem::is_empty(folder.folder()));
  EXPECT_THROW(write_gguf(folder.path("absent/m.gguf"), {}, {}), ResourceError);
}

// The system refuses one of the writes, here for an address that is not ours.
TEST(GgufWriter, AWriteThatFailsLeavesTheOldFile) {
  TempFolder folder;
  const std::string path = folder.write("m.gguf", "old");
  Tensor tensor(DType::kF32, {4});
  NamedTensor broken[] = {{"w", tensor}};
  broken[0].view.data =
      reinterpret_cast<const std::byte*>(8);  // not readable: write() gives EFAULT
  EXPECT_THROW(write_gguf(path, {}, broken), ResourceError);
  EXPECT_EQ(std::filesystem::file_size(path), 3u);
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder.folder()), {}), 1);
}

}  // namespace
}  // namespace limpid
