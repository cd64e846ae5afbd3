#include "tensor/tensor.h"

#include <gtest/gtest.h>

#include <limits>

#include "limpid/error.hpp"

namespace limpid {
namespace {

TEST(Shape, CountsRowsAndColumns) {
  const Shape shape{2, 3, 4};
  EXPECT_EQ(shape.rank(), 3);
  EXPECT_EQ(shape.n_elements(), 24);
  EXPECT_EQ(shape.cols(), 4);
  EXPECT_EQ(shape.rows(), 6);
  EXPECT_EQ(shape[-1], 4);
  EXPECT_EQ(shape.to_string(), "[2, 3, 4]");
  EXPECT_EQ(Shape().n_elements(), 1);
  EXPECT_EQ((Shape{5, 0}).rows(), 0);
}

TEST(Shape, RefusesNegativeAndOverflowingDimensions) {
  constexpr int64_t kBig = int64_t{1} << 32;
  EXPECT_THROW((Shape{2, -1}), ShapeError);
  EXPECT_THROW((Shape{kBig, kBig}), ShapeError);
  EXPECT_THROW((Shape{std::numeric_limits<int64_t>::max(), 2}), ShapeError);
  EXPECT_THROW((Shape{1, 1, 1, 1, 1, 1, 1, 1, 1}), ShapeError);
}

TEST(TensorBytes, CountsWholeBlocks) {
  EXPECT_EQ(tensor_bytes(DType::kF32, {3, 5}), 60u);
  EXPECT_EQ(tensor_bytes(DType::kQ4_0, {2, 64}), 72u);
  EXPECT_EQ(tensor_bytes(DType::kQ6_K, {3, 512}), 6u * 210);
  EXPECT_THROW(tensor_bytes(DType::kQ4_0, {64, 31}), ShapeError);
  EXPECT_THROW(tensor_bytes(DType::kF64, {int64_t{1} << 61}), ShapeError);
}

TEST(Tensor, OwnsAlignedZeroedMemoryAndShowsIt) {
  Tensor tensor(DType::kF32, {4, 3});
  EXPECT_EQ(reinterpret_cast<uintptr_t>(tensor.data()) % AlignedBuffer::kAlignment, 0u);
  for (const float x : tensor.f32()) EXPECT_EQ(x, 0.0f);
  const TensorView view = tensor;
  EXPECT_EQ(view.row(2) - view.data, 24);
  EXPECT_EQ(view.to_string(), "f32[4, 3]");
  const float three[] = {1, 2, 3};
  EXPECT_THROW(Tensor::of({2, 2}, three), ShapeError);
}

}  // namespace
}  // namespace limpid
