// How many operations a computation takes, and how long at the limits of a machine.
#pragma once

#include "tensor/dtype.h"

namespace limpid {

// Numbers of operations by the kind of product, because each kind has its own limit: those with
// quantised matrices are of 8-bit integers, those with matrices of bf16 may be of bf16
// (--products), others are of f32. Or such numbers a second.
struct FlopCount {
  double f32 = 0;
  double bf16 = 0;
  double int8 = 0;

  // Of products with a matrix of this type.
  double& of(DType dtype) {
    return is_quantized(dtype) ? int8 : dtype == DType::kBF16 ? bf16 : f32;
  }
  [[nodiscard]] double sum() const { return f32 + bf16 + int8; }
  // One division by one limit would not do: a model of 4-bit matrices and an f32 head has
  // operations of two kinds, and int8 is several times as fast.
  [[nodiscard]] double seconds_at(const FlopCount& per_second) const {
    return f32 / per_second.f32 + bf16 / per_second.bf16 + int8 / per_second.int8;
  }
  FlopCount& operator+=(const FlopCount& b) {
    f32 += b.f32;
    bf16 += b.bf16;
    int8 += b.int8;
    return *this;
  }
  friend FlopCount operator+(FlopCount a, const FlopCount& b) { return a += b; }
  friend FlopCount operator*(double n, const FlopCount& a) {
    return {n * a.f32, n * a.bf16, n * a.int8};
  }
};

}  // namespace limpid
