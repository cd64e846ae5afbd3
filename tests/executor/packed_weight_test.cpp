#include "executor/cpu/packed_weight.h"

#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "executor/check_shapes.h"
#include "executor/quantized_cases.h"
#include "limpid/error.hpp"

namespace limpid {
namespace {

std::vector<float> decoded_row(const TensorView& tensor, int64_t row) {
  std::vector<float> values(static_cast<size_t>(tensor.shape.cols()));
  decode_row(tensor.dtype, tensor.row(row), values);
  return values;
}

// The code of row r of the group at column `col` of a superblock.
int read_code(const PackedLayout& layout, const uint8_t* super, int r, int col) {
  const int block = col / kScaleBlock;
  const int k = col % kScaleBlock;
  const uint8_t* codes = super + layout.codes_offset + block * layout.code_block_bytes;
  // A part of the code, of which the first register is register `first` of the block.
  const auto part = [&](int first, int n_bits) {
    const int group = k / 4, n_groups = 8 / n_bits;
    const int byte = codes[(first + group / n_groups) * 64 + r * 4 + k % 4];
    return byte >> (group % n_groups * n_bits) & ((1 << n_bits) - 1);
  };
  int code = part(0, layout.low_bits);
  if (layout.high_bits > 0) code |= part(layout.low_bits, layout.high_bits) << layout.low_bits;
  return layout.has_levels ? kLevels[code] : code;
}

float half_at(const uint8_t* super, int offset, int i) {
  uint16_t bits = 0;
  std::memcpy(&bits, super + offset + i * 2, 2);
  return f16_to_f32(bits);
}

// Row `row`, in packed order, as the formulas of quantized_linear.h read it.
std::vector<float> unpacked_row(const PackedWeight& weight, int64_t row) {
  const PackedLayout layout = packed_layout(weight.dtype());
  std::vector<float> values(static_cast<size_t>(weight.cols()));
  const int r = static_cast<int>(row % kGroupRows);
  const auto* group = reinterpret_cast<const uint8_t*>(weight.data()) +
                      row / kGroupRows * packed_group_bytes(layout, weight.cols());
  for (int64_t k = 0; k < weight.cols(); ++k) {
    const uint8_t* super = group + k / layout.cols * layout.n_bytes;
    const int col = static_cast<int>(k % layout.cols);
    const int i = col / layout.scale_cols * kGroupRows + r;  // of the scale
    float scale = half_at(super, layout.scale_offset, layout.scales_are_f16 ? i : r);
    float minimum = 0;
    if (layout.has_minimum) {
      minimum = half_at(super, layout.minimum_offset, layout.scales_are_f16 ? i : r);
    }
    if (!layout.scales_are_f16) {
      const uint8_t bits = super[layout.int_scale_offset + i];
      scale *= static_cast<float>(layout.has_minimum ? bits : static_cast<int8_t>(bits));
      if (layout.has_minimum) minimum *= -static_cast<float>(super[layout.int_minimum_offset + i]);
    }
    const float product =
        scale * static_cast<float>(read_code(layout, super, r, col) - layout.zero);
    values[static_cast<size_t>(k)] = layout.has_minimum ? product + minimum : product;
  }
  return values;
}

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

class PackedWeightOfType : public ::testing::TestWithParam<DType> {};

TEST_P(PackedWeightOfType, UnpacksToWhatTheFileHolds) {
  const int64_t block = dtype_info(GetParam()).block_size;
  for (const int64_t cols : {block, 3 * block, 4 * block}) {
    for (const int64_t rows : {1, 15, 16, 17, 40}) {
      const Tensor tensor = random_quantized(GetParam(), rows, cols, 7);
      const PackedWeight weight(tensor, RowOrder::kHalfSplit, 0, one_thread);
      ASSERT_EQ(weight.rows(), rows);
      ASSERT_EQ(weight.cols(), cols);
      for (int64_t row = 0; row < rows; ++row) {
        ASSERT_TRUE(same_bits(unpacked_row(weight, row), decoded_row(tensor, row)))
            << rows << " x " << cols << ", row " << row;
      }
    }
  }
}

TEST_P(PackedWeightOfType, PutsInterleavedPairsIntoHalves) {
  const int64_t head_dim = 12;
  const Tensor tensor = random_quantized(GetParam(), 3 * head_dim, 256, 8);
  const PackedWeight weight(tensor, RowOrder::kInterleavedPairs, head_dim, one_thread);
  for (int64_t head = 0; head < 3; ++head) {
    for (int64_t i = 0; i < head_dim / 2; ++i) {
      const int64_t first = head * head_dim;
      EXPECT_TRUE(same_bits(unpacked_row(weight, first + i), decoded_row(tensor, first + 2 * i)));
      EXPECT_TRUE(same_bits(unpacked_row(weight, first + head_dim / 2 + i),
                            decoded_row(tensor, first + 2 * i + 1)));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(AllTypes, PackedWeightOfType, ::testing::ValuesIn(kQuantizedDTypes),
                         [](const auto& info) { return std::string(dtype_info(info.param).name); });

TEST(PackedWeight, TakesAboutTheMemoryOfTheFile) {
  const struct {
    DType dtype;
    double most;
  } cases[] = {{DType::kQ4_0, 1.0},  {DType::kQ4_1, 1.0},  {DType::kQ8_0, 1.0},
               {DType::kQ4_K, 1.03}, {DType::kQ6_K, 1.02}, {DType::kQ5_K, 1.65}};
  for (const auto& c : cases) {
    const Tensor tensor(c.dtype, Shape{64, 1024});
    const PackedWeight weight(tensor, RowOrder::kHalfSplit, 0, one_thread);
    EXPECT_LE(static_cast<double>(weight.n_bytes()),
              c.most * static_cast<double>(tensor.view().n_bytes()))
        << dtype_info(c.dtype).name;
  }
}

TEST(PackedWeight, RefusesWhatItCannotPack) {
  const Tensor plain(DType::kF32, Shape{4, 32});
  EXPECT_THROW(PackedWeight(plain, RowOrder::kHalfSplit, 0, one_thread), UnsupportedError);
  const Tensor quantized(DType::kQ8_0, Shape{12, 32});
  WeightSource source;
  source.tensor = quantized;
  source.row_order = RowOrder::kInterleavedPairs;
  for (const int64_t head_dim : {8, 3, 0}) {
    source.head_dim = head_dim;
    EXPECT_THROW(check_heads(source), ShapeError);
  }
}

}  // namespace
}  // namespace limpid
