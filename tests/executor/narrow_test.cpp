// Numbers in 16 bits: every instruction set beside the scalar conversions of tensor/codec.h.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <span>
#include <string>
#include <vector>

#include "executor/cpu/isa.h"
#include "executor/executors.h"
#include "executor/gradient_ops.h"
#include "tensor/codec.h"

namespace limpid {
namespace {

// Numbers of every exponent, those in the middle of two 16-bit ones among them, and the edges.
std::vector<float> numbers() {
  std::vector<float> values = {0.0F, -0.0F, 65504.0F, 65519.9F, 65520.0F, 1e30F, -1e30F, INFINITY};
  for (uint32_t exponent = 1; exponent < 255; ++exponent) {
    for (const uint32_t mantissa : {0U, 0x1000U, 0x3000U, 0x8000U, 0x18000U, 0x7FFFFFU, 0x123456U})
      values.push_back(std::bit_cast<float>(exponent << 23U | mantissa));
  }
  values.push_back(-INFINITY);
  return values;
}

TEST(Narrow, RoundsAsTheCodecOnEveryInstructionSet) {
  const std::vector<float> x = numbers();
  for (const std::string_view isa : available_isas()) {
    const Kernels& kernels = *choose_isa(isa).kernels;
    for (const DType type : {DType::kF16, DType::kBF16}) {
      const bool is_f16 = type == DType::kF16;
      std::vector<uint16_t> narrow(x.size());
      std::vector<float> wide(x.size());
      kernels.narrow(type, x.data(), std::ssize(x), narrow.data());
      kernels.widen(type, narrow.data(), std::ssize(x), wide.data());
      for (size_t i = 0; i < x.size(); ++i) {
        ASSERT_EQ(narrow[i], is_f16 ? f32_to_f16(x[i]) : f32_to_bf16(x[i])) << isa << " " << x[i];
        ASSERT_EQ(wide[i], is_f16 ? f16_to_f32(narrow[i]) : bf16_to_f32(narrow[i])) << isa;
      }
    }
  }
}

TEST(Narrow, OfAWeightByThreadsIsThatOfTheCodec) {
  std::vector<float> x;
  while (x.size() < 30'000) {
    for (const float value : numbers()) x.push_back(value);
  }
  const auto executor = make_cpu_executor({.n_threads = 3});
  for (const DType dtype : {DType::kF16, DType::kBF16}) {
    std::vector<uint16_t> expected(x.size());
    std::vector<uint16_t> rounded(x.size());
    encode_row(dtype, x, std::as_writable_bytes(std::span(expected)).data());
    executor->gradient_ops()->round_weight(x, dtype,
                                           std::as_writable_bytes(std::span(rounded)).data());
    EXPECT_EQ(rounded, expected);
  }
}

TEST(Narrow, KeepsWhatIsNotANumber) {
  for (const std::string_view isa : available_isas()) {
    const Kernels& kernels = *choose_isa(isa).kernels;
    for (const DType type : {DType::kF16, DType::kBF16}) {
      const std::vector<float> x(17, std::bit_cast<float>(0x7FFFFFFFU));
      std::vector<uint16_t> narrow(x.size());
      std::vector<float> wide(x.size());
      kernels.narrow(type, x.data(), std::ssize(x), narrow.data());
      kernels.widen(type, narrow.data(), std::ssize(x), wide.data());
      for (const float value : wide) EXPECT_TRUE(std::isnan(value)) << isa;
    }
  }
}

}  // namespace
}  // namespace limpid
