// Linear layers: one of several kernels by the number of tokens, which give the same bits. There
// are two sets of them: for products of floats and of halves. One launch multiplies with all
// matrices of one type that have the same input.
#include <algorithm>
#include <array>

#include "base/check.h"
#include "executor/gpu/gpu_executor.h"

namespace limpid {
namespace {

constexpr size_t kMostMatrices = 3;  // of a launch, as in kernels/octets.cl.h
// A tile of so many tokens is filled well enough that decoding the weights once for all of them
// costs less than reading them for every eight.
constexpr int64_t kManyTokens = 17;
// With so many rows there are groups enough for two rows a row of lanes.
constexpr int64_t kManyRows = 8192;

// As in kernels/tensor.cl.h.
constexpr int kHalveItems = 128;
constexpr int64_t kTensorFew = 8;  // tokens of a group
constexpr int64_t kTensorSome = 64;
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
  }
  const auto type_of = [&](const Projection& p) { return weight(p.weight).dtype; };
  while (!projections.empty()) {
    size_t n = 1;
    while (n < std::min(projections.size(), kMostMatrices) &&
           type_of(projections[n]) == type_of(projections[0]))
      ++n;
    const MatrixKernels& kernels = matrix_kernels(type_of(projections[0]));
    if (products_ == Products::kF16 && halves.rows() == 0) halves = halve(x, kernels);
    multiply(products_ == Products::kF16 ? halves : x, kernels, projections.first(n));
    projections = projections.subspan(n);
  }
}

// Each token's halves, and the number that undoes its scaling, in the memory of an activation.
Activation GpuExecutor::halve(const Activation& x, const MatrixKernels& kernels) {
  Activation halves = allocate(x.rows(), groups(x.cols(), kChunk) * kFloatsOfChunk + 1);
  launch(*kernels.halve, {x.rows(), 1, kHalveItems}, buffer(x), buffer(halves),
         static_cast<int32_t>(x.cols()), static_cast<int32_t>(x.rows()));
  return halves;
}

// The kernel for so many tokens and rows, and what a group of it computes: items, rows and tokens
// as in kernels/linear.cl.h and kernels/tensor.cl.h.
GpuExecutor::LinearKernel GpuExecutor::linear_kernel(const MatrixKernels& kernels, int64_t n_tokens,
                                                     int64_t n_rows) const {
  if (products_ == Products::kF16) {
    if (n_tokens <= kTensorFew) return {*kernels.tensor_few, 256, 16, kTensorFew};
    if (n_tokens <= kTensorSome) return {*kernels.tensor_some, 256, 16, kTensorSome};
    return {*kernels.tensor_many, 256, 128, 128, true};
  }
  if (n_tokens == 1 && n_rows < kManyRows) return {*kernels.linear_one, 256, 8, 1};
  if (n_tokens == 1) return {*kernels.linear_one_of_many, 256, 16, 1};
  if (n_tokens < kManyTokens) return {*kernels.linear_few, 128, 16, 8};
  return {*kernels.linear_many, 256, 64, 64};
}

// x is an activation or its halves.
void GpuExecutor::multiply(const Activation& x, const MatrixKernels& kernels,
                           std::span<Projection> projections) {
  const int64_t n_tokens = x.rows();
  int64_t n_rows = 0;
  for (const Projection& p : projections) n_rows += p.weight.rows;
  const LinearKernel kernel = linear_kernel(kernels, n_tokens, n_rows);
  struct Matrix {
    const gpu::Buffer* weight;
    const gpu::Buffer* bias;
    const gpu::Buffer* y;
    int32_t rows = 0;
  };
  std::array<Matrix, kMostMatrices> all{};
  int64_t of_rows = 0;
  int32_t biases = 0;
  for (size_t i = 0; i < kMostMatrices; ++i) {
    const Projection& p = projections[std::min(i, projections.size() - 1)];
    const gpu::Buffer* data = weight(p.weight).data.get();
    all[i] = {data, p.bias ? weight(p.bias).data.get() : data, &buffer(p.y)};
    if (i >= projections.size()) continue;  // a matrix without rows
    all[i].rows = static_cast<int32_t>(p.weight.rows);
    of_rows += groups(p.weight.rows, kernel.rows);
    if (p.bias) biases |= 1 << i;
  }
  const int64_t of_tokens = groups(n_tokens, kernel.tokens);
  const gpu::Grid grid = kernel.tokens_first ? gpu::Grid{of_tokens, of_rows, kernel.items}
                                             : gpu::Grid{of_rows, of_tokens, kernel.items};
  launch(kernel.kernel, grid, *all[0].weight, *all[0].bias, *all[0].y, all[0].rows, *all[1].weight,
         *all[1].bias, *all[1].y, all[1].rows, *all[2].weight, *all[2].bias, *all[2].y, all[2].rows,
         biases, buffer(x), static_cast<int32_t>(projections[0].weight.cols),
         static_cast<int32_t>(n_tokens));
}

}  // namespace limpid
