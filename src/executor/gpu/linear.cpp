// Linear layers: one of three kernels by the number of tokens, which give the same bits. There are
// two sets of three: for products of floats and of halves.
#include "base/check.h"
#include "executor/gpu/gpu_executor.h"

namespace limpid {
namespace {

// As in kernels/linear.cl.h.
constexpr int kLaneItems = 128;    // of a group of linear_one and linear_few
constexpr int64_t kRowsOne = 8;    // of a group of linear_one
constexpr int64_t kRowsFew = 16;   // and of linear_few
constexpr int64_t kFewTokens = 8;  // that linear_few takes together
constexpr int kTileItems = 256;    // of a group of linear_many
constexpr int64_t kTile = 64;      // rows, and tokens, of its tile
// From here on a tile of tokens is filled well enough that decoding the weights once for all of
// them costs less than reading them for every eight.
constexpr int64_t kManyTokens = 17;

// As in kernels/tensor.cl.h.
constexpr int kHalveItems = 128;
constexpr int kTensorItems = 256;    // of a group
constexpr int64_t kTensorRows = 16;  // of a group of tensor_few and tensor_some
constexpr int64_t kTensorFew = 8;    // tokens of a group
constexpr int64_t kTensorSome = 64;
constexpr int64_t kTensorTile = 128;    // rows, and tokens, of tensor_many
constexpr int64_t kChunk = 32;          // columns: rows of halves have whole chunks
constexpr int64_t kFloatsOfChunk = 16;  // that take as much memory

constexpr int64_t groups(int64_t n, int64_t size) { return (n + size - 1) / size; }

}  // namespace

void GpuExecutor::linear(const Activation& x, std::span<Projection> projections) {
  Activation halves;  // of x, for all projections
  for (Projection& p : projections) {
    LIMPID_CHECK(ShapeError, p.weight.cols == x.cols(), "[linear] weight [{}, {}], x [{}, {}]",
                 p.weight.rows, p.weight.cols, x.rows(), x.cols());
    if (p.bias) vector_weight(p.bias, p.weight.rows, "linear");
    p.y = allocate(x.rows(), p.weight.rows);
    if (products_ == Products::kF32) {
      multiply(x, p);
    } else {
      if (halves.rows() == 0) halves = halve(x, weight(p.weight).dtype);
      multiply_halves(halves, p);
    }
  }
}

void GpuExecutor::multiply(const Activation& x, const Projection& projection) {
  const LoadedWeight& loaded = weight(projection.weight);
  const MatrixKernels& kernels = matrix_kernels(loaded.dtype);
  const int64_t n_tokens = x.rows();
  const int64_t rows = projection.weight.rows;
  const gpu::Buffer& bias = projection.bias ? *weight(projection.bias).data : *loaded.data;
  const auto run = [&](const gpu::Kernel& kernel, const gpu::Grid& grid) {
    launch(kernel, grid, *loaded.data, buffer(x), bias, projection.bias ? 1 : 0,
           buffer(projection.y), static_cast<int32_t>(rows), static_cast<int32_t>(x.cols()),
           static_cast<int32_t>(n_tokens));
  };
  if (n_tokens == 1) {
    run(*kernels.linear_one, {groups(rows, kRowsOne), 1, kLaneItems});
  } else if (n_tokens < kManyTokens) {
    run(*kernels.linear_few, {groups(rows, kRowsFew), groups(n_tokens, kFewTokens), kLaneItems});
  } else {
    run(*kernels.linear_many, {groups(rows, kTile), groups(n_tokens, kTile), kTileItems});
  }
}

// Each token's halves, and the number that undoes its scaling, in the memory of an activation.
Activation GpuExecutor::halve(const Activation& x, DType dtype) {
  Activation halves = allocate(x.rows(), groups(x.cols(), kChunk) * kFloatsOfChunk + 1);
  launch(*matrix_kernels(dtype).halve, {x.rows(), 1, kHalveItems}, buffer(x), buffer(halves),
         static_cast<int32_t>(x.cols()), static_cast<int32_t>(x.rows()));
  return halves;
}

void GpuExecutor::multiply_halves(const Activation& halves, const Projection& projection) {
  const LoadedWeight& loaded = weight(projection.weight);
  const MatrixKernels& kernels = matrix_kernels(loaded.dtype);
  const int64_t n_tokens = halves.rows();
  const int64_t rows = projection.weight.rows;
  const gpu::Buffer& bias = projection.bias ? *weight(projection.bias).data : *loaded.data;
  const auto run = [&](const gpu::Kernel& kernel, int64_t groups_x, int64_t groups_y) {
    launch(kernel, {groups_x, groups_y, kTensorItems}, *loaded.data, buffer(halves), bias,
           projection.bias ? 1 : 0, buffer(projection.y), static_cast<int32_t>(rows),
           static_cast<int32_t>(projection.weight.cols), static_cast<int32_t>(n_tokens));
  };
  if (n_tokens <= kTensorFew) {
    run(*kernels.tensor_few, groups(rows, kTensorRows), 1);
  } else if (n_tokens <= kTensorSome) {
    run(*kernels.tensor_some, groups(rows, kTensorRows), 1);
  } else {
    run(*kernels.tensor_many, groups(n_tokens, kTensorTile), groups(rows, kTensorTile));
  }
}

}  // namespace limpid
