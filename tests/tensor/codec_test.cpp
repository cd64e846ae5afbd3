#include "tensor/codec.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <fstream>
#include <iterator>
#include <limits>
#include <vector>

#include "data_paths.h"
#include "limpid/error.hpp"
#include "tensor/blocks.h"
#include "tensor/plain_blocks.h"

namespace limpid {
namespace {

struct Golden {
  uint32_t n_elements = 0;
  uint32_t n_bytes = 0;
  std::vector<std::byte> rest;

  const std::byte* first() const { return rest.data(); }
  const std::byte* after(size_t n) const { return rest.data() + n; }
};

std::string lower_name(DType dtype) {
  std::string name(dtype_info(dtype).name);
  for (char& c : name) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return name;
}

Golden read_golden(DType dtype, const std::string& suffix) {
  const std::string path = testing::test_data_path("codec/" + lower_name(dtype) + suffix);
  std::ifstream file(path, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  Golden golden;
  if (text.size() < 8) {
    ADD_FAILURE() << "cannot read " << path;
    return golden;
  }
  std::memcpy(&golden.n_elements, text.data(), 4);
  std::memcpy(&golden.n_bytes, text.data() + 4, 4);
  golden.rest.resize(text.size() - 8);
  std::memcpy(golden.rest.data(), text.data() + 8, golden.rest.size());
  EXPECT_EQ(golden.rest.size(), golden.n_bytes + 4ull * golden.n_elements);
  return golden;
}

std::string name_of(const ::testing::TestParamInfo<DType>& info) { return lower_name(info.param); }

class CodecDecode : public ::testing::TestWithParam<DType> {};

TEST_P(CodecDecode, IsBitEqualToGguf) {
  const Golden golden = read_golden(GetParam(), ".decode.bin");
  ASSERT_GT(golden.n_elements, 0u);
  std::vector<float> decoded(golden.n_elements);
  decode_row(GetParam(), golden.first(), decoded);
  for (size_t i = 0; i < decoded.size(); ++i) {
    float expected = 0;
    std::memcpy(&expected, golden.after(golden.n_bytes) + 4 * i, 4);
    if (std::isnan(expected)) {  // the payload of a NaN is the processor's choice
      ASSERT_TRUE(std::isnan(decoded[i])) << i;
    } else {
      ASSERT_EQ(std::bit_cast<uint32_t>(decoded[i]), std::bit_cast<uint32_t>(expected))
          << "element " << i << ": " << decoded[i] << " instead of " << expected;
    }
  }
}

TEST_P(CodecDecode, ReadsBlocksAtAnyAddress) {
  const Golden golden = read_golden(GetParam(), ".decode.bin");
  const DTypeInfo& info = dtype_info(GetParam());
  std::vector<std::byte> shifted(info.block_bytes + 1);
  std::memcpy(shifted.data() + 1, golden.first(), info.block_bytes);
  std::vector<float> aligned(info.block_size);
  std::vector<float> odd(info.block_size);
  decode_row(GetParam(), golden.first(), aligned);
  decode_row(GetParam(), shifted.data() + 1, odd);
  EXPECT_EQ(std::memcmp(aligned.data(), odd.data(), aligned.size() * 4), 0);
}

INSTANTIATE_TEST_SUITE_P(All, CodecDecode,
                         ::testing::Values(DType::kF16, DType::kBF16, DType::kQ4_0, DType::kQ4_1,
                                           DType::kQ5_0, DType::kQ5_1, DType::kQ8_0, DType::kQ2_K,
                                           DType::kQ3_K, DType::kQ4_K, DType::kQ5_K, DType::kQ6_K,
                                           DType::kIQ4_NL, DType::kIQ4_XS),
                         name_of);

class CodecEncode : public ::testing::TestWithParam<DType> {};

TEST_P(CodecEncode, IsByteEqualToGguf) {
  const Golden golden = read_golden(GetParam(), ".encode.bin");
  ASSERT_GT(golden.n_elements, 0u);
  std::vector<float> values(golden.n_elements);
  std::memcpy(values.data(), golden.first(), values.size() * 4);
  std::vector<std::byte> encoded(golden.n_bytes);
  plain_blocks::encode(GetParam(), values, encoded.data());
  for (size_t i = 0; i < encoded.size(); ++i) {
    ASSERT_EQ(encoded[i], golden.after(values.size() * 4)[i])
        << "byte " << i << ", block " << i / dtype_info(GetParam()).block_bytes;
  }
}

TEST_P(CodecEncode, InfinitiesAndNansAreNotUndefined) {
  std::vector<float> values(64, 1.0f);
  values[3] = std::numeric_limits<float>::infinity();
  values[7] = -std::numeric_limits<float>::infinity();
  values[40] = std::numeric_limits<float>::quiet_NaN();
  const DTypeInfo& info = dtype_info(GetParam());
  std::vector<std::byte> encoded(64 / info.block_size * info.block_bytes);
  plain_blocks::encode(GetParam(), values, encoded.data());
  std::vector<float> decoded(64);
  decode_row(GetParam(), encoded.data(), decoded);
  EXPECT_FALSE(std::isfinite(decoded[3]));
}

INSTANTIATE_TEST_SUITE_P(All, CodecEncode,
                         ::testing::Values(DType::kF16, DType::kBF16, DType::kQ4_0, DType::kQ4_1,
                                           DType::kQ5_0, DType::kQ5_1, DType::kQ8_0),
                         name_of);

TEST(Codec, EveryHalfSurvivesTheRoundTrip) {
  for (uint32_t bits = 0; bits <= 0xffff; ++bits) {
    const float value = f16_to_f32(static_cast<uint16_t>(bits));
    if (std::isnan(value)) {
      EXPECT_TRUE(std::isnan(f16_to_f32(f32_to_f16(value)))) << bits;
    } else {
      ASSERT_EQ(f32_to_f16(value), bits);
    }
  }
}

TEST(Codec, HalfRoundsToNearestEvenAtEveryMidpoint) {
  for (uint16_t bits = 0; bits < 0x7bff; ++bits) {
    const float low = f16_to_f32(bits);
    const float high = f16_to_f32(static_cast<uint16_t>(bits + 1));
    const float middle = low + (high - low) / 2;  // exact: a half has 13 bits to spare
    const uint16_t even = bits % 2 == 0 ? bits : static_cast<uint16_t>(bits + 1);
    ASSERT_EQ(f32_to_f16(middle), even) << bits;
    ASSERT_EQ(f32_to_f16(std::nextafter(middle, 0.0f)), bits);
    ASSERT_EQ(f32_to_f16(std::nextafter(middle, 1e9f)), bits + 1);
    ASSERT_EQ(f32_to_f16(-middle), even | 0x8000);
  }
  EXPECT_EQ(f32_to_f16(65519.996f), 0x7bff);
  EXPECT_EQ(f32_to_f16(65520.0f), 0x7c00);
}

TEST(Codec, BfloatRoundsToNearestEvenAndKeepsNan) {
  EXPECT_EQ(f32_to_bf16(std::bit_cast<float>(0x3f808000u)), 0x3f80);  // tie to even, down
  EXPECT_EQ(f32_to_bf16(std::bit_cast<float>(0x3f818000u)), 0x3f82);  // tie to even, up
  EXPECT_EQ(f32_to_bf16(std::bit_cast<float>(0x3f808001u)), 0x3f81);
  EXPECT_EQ(f32_to_bf16(std::bit_cast<float>(0x7f7fffffu)), 0x7f80);  // overflows to infinity
  EXPECT_TRUE(std::isnan(bf16_to_f32(f32_to_bf16(std::bit_cast<float>(0x7f800001u)))));
  EXPECT_TRUE(std::isnan(bf16_to_f32(f32_to_bf16(std::bit_cast<float>(0xffffffffu)))));
}

TEST(Codec, DoublesAndBytesDecode) {
  const double doubles[] = {1.0 + 0x1p-30, -2.5};
  float out[2];
  decode_row(DType::kF64, reinterpret_cast<const std::byte*>(doubles), out);
  EXPECT_EQ(out[0], 1.0f);
  EXPECT_EQ(out[1], -2.5f);
  const uint8_t bytes[] = {0xff, 0x7f};
  decode_row(DType::kI8, reinterpret_cast<const std::byte*>(bytes), out);
  EXPECT_EQ(out[0], -1.0f);
  decode_row(DType::kU8, reinterpret_cast<const std::byte*>(bytes), out);
  EXPECT_EQ(out[0], 255.0f);
}

TEST(Codec, RefusesWhatItCannotConvert) {
  float out[2] = {};
  std::byte bytes[64] = {};
  EXPECT_THROW(decode_row(DType::kI32, bytes, out), UnsupportedError);
  EXPECT_THROW(encode_row(DType::kQ4_K, std::vector<float>(256), bytes), UnsupportedError);
  EXPECT_THROW(decode_row(DType::kQ8_0, bytes, out), ShapeError);
}

TEST(Codec, BlockStructsHaveTheBytesOfTheirType) {
  const auto check = [](DType dtype, size_t size) {
    EXPECT_EQ(size, dtype_info(dtype).block_bytes) << dtype_info(dtype).name;
  };
  check(BlockQ4_0::kDType, sizeof(BlockQ4_0));
  check(BlockQ4_1::kDType, sizeof(BlockQ4_1));
  check(BlockQ5_0::kDType, sizeof(BlockQ5_0));
  check(BlockQ5_1::kDType, sizeof(BlockQ5_1));
  check(BlockQ8_0::kDType, sizeof(BlockQ8_0));
  check(BlockQ2_K::kDType, sizeof(BlockQ2_K));
  check(BlockQ3_K::kDType, sizeof(BlockQ3_K));
  check(BlockQ4_K::kDType, sizeof(BlockQ4_K));
  check(BlockQ5_K::kDType, sizeof(BlockQ5_K));
  check(BlockQ6_K::kDType, sizeof(BlockQ6_K));
  check(BlockIQ4_NL::kDType, sizeof(BlockIQ4_NL));
  check(BlockIQ4_XS::kDType, sizeof(BlockIQ4_XS));
}

TEST(Codec, DecodesAWholeTensorInRowMajorOrder) {
  const float values[] = {1, 2, 3, 4, 5, 6};
  const Tensor tensor = Tensor::of({2, 3}, values);
  EXPECT_EQ(decode(tensor), std::vector<float>(values, values + 6));
}

}  // namespace
}  // namespace limpid
