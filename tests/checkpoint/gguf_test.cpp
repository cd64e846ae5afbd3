#include "checkpoint/gguf.h"

#include <gtest/gtest.h>

#include "checkpoint/gguf_builder.h"
#include "checkpoint/temp_file.h"
#include "expect_error.h"
#include "limpid/error.hpp"
#include "tensor/codec.h"

namespace limpid {
namespace {

using gguf_test::GgufSketch;
using gguf_test::number;
using gguf_test::serialize;
using gguf_test::small_sketch;

GgufFile parse(const std::string& bytes) {
  return parse_gguf("test.gguf", std::as_bytes(std::span(bytes.data(), bytes.size())));
}

TEST(Gguf, ReadsEveryMetadataType) {
  for (const uint32_t version : {2u, 3u}) {
    GgufSketch sketch = small_sketch();
    sketch.version = version;
    const GgufFile file = parse(serialize(sketch));
    const Metadata& metadata = file.metadata;
    EXPECT_EQ(file.version, version);
    EXPECT_EQ(metadata.string("general.architecture"), "llama");
    EXPECT_EQ(metadata.integer("a.u8"), 200);
    EXPECT_EQ(metadata.integer("a.i8"), -100);
    EXPECT_EQ(metadata.integer("a.u16"), 60000);
    EXPECT_EQ(metadata.integer("a.i16"), -30000);
    EXPECT_EQ(metadata.integer("a.i32"), -2000000000);
    EXPECT_EQ(metadata.number("a.f32"), 0.5);
    EXPECT_EQ(metadata.boolean("a.bool"), true);
    EXPECT_EQ(std::get<uint64_t>(metadata.find("a.u64")->value), ~uint64_t{0});
    EXPECT_EQ(metadata.integer("a.i64"), -5);
    EXPECT_EQ(metadata.number("a.f64"), 0.1);
    EXPECT_EQ(*metadata.integers("a.numbers"), (std::vector<int64_t>{1, -2, 3}));
    EXPECT_EQ(*metadata.numbers("a.floats"), (std::vector<double>{1.5, -2.5}));
    EXPECT_EQ(*metadata.strings("a.strings"), (std::vector<std::string>{"x", "", "yz"}));
    EXPECT_EQ(std::get<std::vector<bool>>(metadata.find("a.flags")->value),
              (std::vector<bool>{true, false}));
    EXPECT_EQ(metadata.find("a.strings")->type_name, "array of string");
  }
}

TEST(Gguf, ReadsNestedArrays) {
  const GgufFile file = parse(serialize(small_sketch()));
  const auto& outer = std::get<MetadataValue::Array>(file.metadata.find("a.nested")->value);
  ASSERT_EQ(outer.size(), 2u);
  EXPECT_EQ(std::get<std::vector<int64_t>>(outer[0].value), (std::vector<int64_t>{7, 8}));
  EXPECT_EQ(std::get<std::vector<std::string>>(outer[1].value), (std::vector<std::string>{"in"}));
  EXPECT_EQ(outer[0].type_name, "array of u8");
}

TEST(Gguf, ViewsLieInTheFileWithDimensionsOutermostFirst) {
  const std::string bytes = serialize(small_sketch());
  const GgufFile file = parse(bytes);
  ASSERT_EQ(file.tensors.size(), 3u);
  const TensorView& plain = file.tensors[0].view;
  EXPECT_EQ(file.tensors[0].name, "plain");
  EXPECT_EQ(plain.shape, (Shape{2, 3}));
  EXPECT_EQ(decode(plain), (std::vector<float>{0, 1, 2, 3, 4, 5}));
  for (const GgufTensor& tensor : file.tensors) {
    const auto* begin = reinterpret_cast<const char*>(tensor.view.data);
    EXPECT_GE(begin, bytes.data());
    EXPECT_LE(begin + tensor.view.n_bytes(), bytes.data() + bytes.size());
    EXPECT_EQ((begin - bytes.data()) % 32, 0);
  }
  EXPECT_EQ(decode(file.tensors[1].view), (std::vector<float>{1, 2}));
  EXPECT_EQ(file.tensors[2].view.dtype, DType::kQ8_0);
}

TEST(Gguf, ReadsEveryTensorType) {
  const std::pair<uint32_t, DType> types[] = {
      {0, DType::kF32},     {1, DType::kF16},     {2, DType::kQ4_0},  {3, DType::kQ4_1},
      {6, DType::kQ5_0},    {7, DType::kQ5_1},    {8, DType::kQ8_0},  {10, DType::kQ2_K},
      {11, DType::kQ3_K},   {12, DType::kQ4_K},   {13, DType::kQ5_K}, {14, DType::kQ6_K},
      {20, DType::kIQ4_NL}, {23, DType::kIQ4_XS}, {24, DType::kI8},   {25, DType::kI16},
      {26, DType::kI32},    {27, DType::kI64},    {28, DType::kF64},  {30, DType::kBF16}};
  GgufSketch sketch;
  for (const auto& [id, dtype] : types) {
    const std::string data(tensor_bytes(dtype, {2, 256}), '\0');
    sketch.add_tensor("t" + std::to_string(id), {256, 2}, id, data);
  }
  const GgufFile file = parse(serialize(sketch));
  for (size_t i = 0; i < std::size(types); ++i) {
    EXPECT_EQ(file.tensors[i].view.dtype, types[i].second);
    EXPECT_EQ(file.tensors[i].view.shape, (Shape{2, 256}));
  }
}

TEST(Gguf, OtherTensorTypesAreRefusedByName) {
  for (const auto& [id, name] :
       {std::pair{16u, "IQ2_XXS"}, {39u, "MXFP4"}, {34u, "TQ1_0"}, {4u, "Q4_2 (removed"}}) {
    GgufSketch sketch;
    sketch.add_tensor("w", {256}, id, std::string(256, '\0'));
    expect_error<UnsupportedError>([&] { parse(serialize(sketch)); }, {name, "tensor 'w'"});
  }
}

TEST(Gguf, HonoursItsAlignment) {
  GgufSketch sketch;
  sketch.alignment = 128;
  sketch.add_u32("general.alignment", 128);
  sketch.add_tensor("a", {1}, 0, number(1.0f));
  sketch.add_tensor("b", {1}, 0, number(2.0f));
  const std::string bytes = serialize(sketch);
  const GgufFile file = parse(bytes);
  EXPECT_EQ(file.tensors[1].view.data - file.tensors[0].view.data, 128);
  EXPECT_EQ(*file.tensors[1].view.f32(), 2.0f);
}

TEST(Gguf, AVocabularyWithoutTensorsOpens) {
  GgufSketch sketch;
  sketch.add_string("tokenizer.ggml.model", "gpt2");
  TempFolder folder;
  const Checkpoint checkpoint = open_gguf(folder.write("vocab.gguf", serialize(sketch)));
  EXPECT_TRUE(checkpoint.tensors.empty());
  EXPECT_EQ(checkpoint.metadata.string("tokenizer.ggml.model"), "gpt2");
  EXPECT_EQ(checkpoint.format, "gguf v3");
}

TEST(Gguf, AScalarHasNoDimensions) {
  GgufSketch sketch;
  sketch.add_tensor("s", {}, 0, number(3.0f));
  EXPECT_EQ(decode(parse(serialize(sketch)).tensors[0].view), std::vector<float>{3.0f});
}

// Whatever byte a download stops at, the error is a FormatError.
TEST(Gguf, EveryTruncationIsAFormatError) {
  const std::string bytes = serialize(small_sketch());
  for (size_t size = 0; size < bytes.size(); ++size) {
    // A copy of exactly this size, so that a sanitizer sees a read beyond it.
    const std::vector<char> cut(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(size));
    EXPECT_THROW(parse_gguf("cut.gguf", std::as_bytes(std::span(cut))), FormatError) << size;
  }
  EXPECT_NO_THROW(parse(bytes));
}

// Every byte set to several values: an error of ours or a valid file, never anything else.
TEST(Gguf, NoSingleByteBreaksTheReader) {
  const std::string bytes = serialize(small_sketch());
  for (size_t i = 0; i < bytes.size(); ++i) {
    for (const int value : {0x00, 0x01, 0x09, 0x20, 0x7f, 0x80, 0xff}) {
      std::string mutated = bytes;
      mutated[i] = static_cast<char>(value);
      try {
        const GgufFile file = parse(mutated);
        for (const GgufTensor& tensor : file.tensors) {
          const auto* begin = reinterpret_cast<const char*>(tensor.view.data);
          ASSERT_LE(begin + tensor.view.n_bytes(), mutated.data() + mutated.size());
        }
      } catch (const Error&) {  // FormatError or UnsupportedError
      }
    }
  }
}

}  // namespace
}  // namespace limpid
