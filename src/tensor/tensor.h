// Shapes, views of tensors, and tensors that own their memory. Dimensions are listed outermost
// first, as in PyTorch, and elements are contiguous: [2, 3] has two rows of three elements.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <vector>

#include "base/aligned_buffer.h"
#include "tensor/dtype.h"

namespace limpid {

// Up to kMaxRank dimensions, outermost first. A scalar has rank 0 and one element.
class Shape {
 public:
  static constexpr int kMaxRank = 8;

  Shape() = default;
  Shape(std::initializer_list<int64_t> dims)
      : Shape(std::span<const int64_t>(dims.begin(), dims.size())) {}
  // Throws ShapeError when there are too many dimensions, one is negative, or the number of
  // elements does not fit int64.
  explicit Shape(std::span<const int64_t> dims);

  int rank() const { return rank_; }
  int64_t operator[](int i) const { return dims_[i < 0 ? rank_ + i : i]; }
  int64_t n_elements() const { return n_elements_; }
  // Elements in the innermost dimension, and how many such rows there are.
  int64_t cols() const { return rank_ == 0 ? 1 : dims_[rank_ - 1]; }
  int64_t rows() const { return cols() == 0 ? 0 : n_elements_ / cols(); }
  std::span<const int64_t> dims() const { return {dims_, static_cast<size_t>(rank_)}; }
  bool operator==(const Shape&) const = default;
  std::string to_string() const;  // "[32, 576]"

 private:
  int64_t dims_[kMaxRank] = {};
  int64_t n_elements_ = 1;
  int rank_ = 0;
};

// Bytes of a dense tensor; throws ShapeError when a row is not a whole number of blocks or the size
// overflows.
uint64_t tensor_bytes(DType dtype, const Shape& shape);

// A tensor in memory that something else owns: a mapped file, a Tensor, an array of a test.
struct TensorView {
  DType dtype = DType::kF32;
  Shape shape;
  const std::byte* data = nullptr;

  uint64_t n_bytes() const { return tensor_bytes(dtype, shape); }
  uint64_t row_bytes() const;
  // Row `i` counted over all outer dimensions.
  const std::byte* row(int64_t i) const { return data + static_cast<uint64_t>(i) * row_bytes(); }
  const float* f32() const { return reinterpret_cast<const float*>(data); }
  std::string to_string() const;  // "f32[32, 576]"
};

// A tensor that owns its (zeroed, 64-byte aligned) memory.
class Tensor {
 public:
  Tensor() = default;
  Tensor(DType dtype, Shape shape);
  // An f32 tensor with these values; for tests and small tables. Throws ShapeError on a wrong
  // count.
  static Tensor of(Shape shape, std::span<const float> values);

  TensorView view() const { return {dtype_, shape_, buffer_.data()}; }
  operator TensorView() const { return view(); }  // NOLINT(google-explicit-constructor)
  DType dtype() const { return dtype_; }
  const Shape& shape() const { return shape_; }
  std::byte* data() { return buffer_.data(); }
  std::span<float> f32() { return buffer_.as<float>(); }
  std::span<const float> f32() const { return {view().f32(), buffer_.size() / sizeof(float)}; }

 private:
  DType dtype_ = DType::kF32;
  Shape shape_;
  AlignedBuffer buffer_;
};

}  // namespace limpid
