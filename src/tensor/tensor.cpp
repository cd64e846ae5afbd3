#include "tensor/tensor.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "base/check.h"
#include "base/checked.h"

namespace limpid {

Shape::Shape(std::span<const int64_t> dims) {
  LIMPID_CHECK(ShapeError, dims.size() <= kMaxRank, "a tensor has at most {} dimensions, not {}",
               kMaxRank, dims.size());
  rank_ = static_cast<int>(dims.size());
  std::copy(dims.begin(), dims.end(), dims_);
  for (const int64_t dim : dims) {
    LIMPID_CHECK(ShapeError, dim >= 0, "dimension {} is negative", dim);
    LIMPID_CHECK(ShapeError, !__builtin_mul_overflow(n_elements_, dim, &n_elements_),
                 "{} has too many elements", to_string());
  }
}

std::string Shape::to_string() const { return fmt::format("[{}]", fmt::join(dims(), ", ")); }

uint64_t tensor_bytes(DType dtype, const Shape& shape) {
  const DTypeInfo& info = dtype_info(dtype);
  LIMPID_CHECK(ShapeError, shape.cols() % info.block_size == 0,
               "rows of {} elements are not a whole number of {} blocks of {}", shape.cols(),
               info.name, info.block_size);
  const auto blocks = static_cast<uint64_t>(shape.n_elements()) / info.block_size;
  const auto bytes = checked_mul<uint64_t>(blocks, info.block_bytes);
  LIMPID_CHECK(ShapeError, bytes.has_value(), "{} {} has too many bytes", info.name,
               shape.to_string());
  return *bytes;
}

uint64_t TensorView::row_bytes() const {
  const DTypeInfo& info = dtype_info(dtype);
  return static_cast<uint64_t>(shape.cols()) / info.block_size * info.block_bytes;
}

std::string TensorView::to_string() const {
  return std::string(dtype_info(dtype).name) + shape.to_string();
}

Tensor::Tensor(DType dtype, Shape shape)
    : dtype_(dtype), shape_(shape), buffer_(tensor_bytes(dtype, shape)) {}

Tensor Tensor::of(Shape shape, std::span<const float> values) {
  LIMPID_CHECK(ShapeError, static_cast<uint64_t>(shape.n_elements()) == values.size(),
               "{} values for shape {}", values.size(), shape.to_string());
  Tensor tensor(DType::kF32, shape);
  std::ranges::copy(values, tensor.f32().begin());
  return tensor;
}

}  // namespace limpid
