#include "checkpoint/safetensors.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>

#include "checkpoint/safetensors_builder.h"
#include "checkpoint/safetensors_writer.h"
#include "checkpoint/temp_file.h"
#include "limpid/error.hpp"

namespace limpid {
namespace {

using safetensors_test::file_of;
using safetensors_test::small_file;

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

TEST(Safetensors, ReadsTensorsInTheOrderOfTheirData) {
  const std::string bytes = small_file();
  const SafetensorsFile file = parse_safetensors("x", bytes_of(bytes));
  ASSERT_EQ(file.tensors.size(), 2u);
  EXPECT_EQ(file.tensors[0].name, "a");
  EXPECT_EQ(file.tensors[0].view.to_string(), "f32[2, 2]");
  EXPECT_EQ(file.tensors[1].name, "b");
  EXPECT_EQ(file.tensors[1].view.to_string(), "f16[3]");
  EXPECT_EQ(file.tensors[1].view.data[0], std::byte{16});
  EXPECT_EQ(file.tensors[1].data_offset, bytes.size() - 6);
  EXPECT_EQ(file.metadata.at("format"), "pt");
}

TEST(Safetensors, EveryDTypeThatWeHaveAName) {
  for (const auto& [name, n_bytes] : safetensors_test::kDTypes) {
    const std::string header = fmt::format(
        R"({{"t":{{"dtype":"{}","shape":[3],"data_offsets":[0,{}]}}}})", name, 3 * n_bytes);
    const std::string bytes = file_of(header, 3 * n_bytes);
    const SafetensorsFile file = parse_safetensors("x", bytes_of(bytes));
    EXPECT_EQ(file.tensors.at(0).view.n_bytes(), 3 * n_bytes) << name;
  }
}

TEST(Safetensors, ScalarsAndEmptyTensorsAreTensors) {
  const std::string bytes = file_of(R"({"s":{"dtype":"F32","shape":[],"data_offsets":[0,4]},)"
                                    R"("e":{"dtype":"F32","shape":[0,7],"data_offsets":[4,4]}})",
                                    4);
  const SafetensorsFile file = parse_safetensors("x", bytes_of(bytes));
  EXPECT_EQ(file.tensors.at(0).view.to_string(), "f32[]");
  EXPECT_EQ(file.tensors.at(1).view.n_bytes(), 0u);
}

TEST(Safetensors, AFileCutAnywhereIsRefused) {
  const std::string bytes = small_file();
  for (size_t n = 0; n < bytes.size(); ++n) {
    EXPECT_THROW(parse_safetensors("x", bytes_of(std::string_view(bytes).substr(0, n))),
                 FormatError)
        << n;
  }
}

TEST(Safetensors, DataThatIsNotAlignedIsPromisedAsACopy) {
  // A header of odd length, so that the f32 lies at an odd address of the map.
  const TempFolder folder;
  std::string header = R"({"t":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})";
  if (header.size() % 2 == 0) header += ' ';
  const std::string path = folder.write("odd.safetensors", file_of(header, 8));
  const Checkpoint checkpoint = open_safetensors(path);
  EXPECT_TRUE(checkpoint.derived.contains("t"));
  Tensor storage;
  const TensorView view = checkpoint.read("t", storage);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(view.data) % 4, 0u);
  EXPECT_EQ(view.data[7], std::byte{7});
}

TEST(Safetensors, WhatTheWriterWritesIsReadBack) {
  const TempFolder folder;
  const Tensor a = Tensor::of({2, 3}, std::array{1.0F, 2.0F, 3.0F, 4.0F, 5.0F, 6.0F});
  Tensor b(DType::kBF16, {5});
  b.data()[9] = std::byte{0x3f};
  const std::array tensors = {NamedTensor{"a \"quoted\" ü", a}, NamedTensor{"b", b}};
  write_safetensors(folder.path("t.safetensors"), {{"format", "pt"}, {"k", "ü\n"}}, tensors);
  const Checkpoint checkpoint = open_checkpoint(folder.path("t.safetensors"));
  EXPECT_EQ(checkpoint.format, "safetensors");
  EXPECT_EQ(checkpoint.naming, Naming::kStateDict);
  EXPECT_EQ(checkpoint.metadata.string("safetensors.k"), "ü\n");
  EXPECT_EQ(checkpoint.tensor_order, (std::vector<std::string>{"a \"quoted\" ü", "b"}));
  EXPECT_EQ(checkpoint.find("a \"quoted\" ü")->f32()[5], 6.0F);
  EXPECT_EQ(checkpoint.find("b")->data[9], std::byte{0x3f});
  EXPECT_TRUE(checkpoint.derived.empty());
}

TEST(Safetensors, TheWriterRefusesWhatTheFormatCannotHold) {
  const TempFolder folder;
  const std::string path = folder.path("t.safetensors");
  const Tensor plain(DType::kF32, {1});
  const Tensor quantized(DType::kQ8_0, {32});
  const auto write = [&](std::vector<NamedTensor> tensors) {
    write_safetensors(path, {}, tensors);
  };
  EXPECT_THROW(write({{"q", quantized}}), UnsupportedError);
  EXPECT_THROW(write({{"", plain}}), ArgumentError);
  EXPECT_THROW(write({{"__metadata__", plain}}), ArgumentError);
  EXPECT_THROW(write({{"\xff", plain}}), ArgumentError);
  EXPECT_THROW(write({{"a", plain}, {"a", plain}}), ArgumentError);
  const std::array one = {NamedTensor{"a", plain}};
  SafetensorsStream short_stream(path, {}, one);
  EXPECT_THROW(short_stream.commit(), ArgumentError);
  SafetensorsStream long_stream(path, {}, one);
  EXPECT_THROW(long_stream.write(std::array<std::byte, 5>{}), ArgumentError);
  EXPECT_FALSE(std::filesystem::exists(path));
}

}  // namespace
}  // namespace limpid
