// Linear layers: one of several kernels by the number of tokens, which give the same bits. There
// are two sets of them: for products of floats and of halves. One launch multiplies with all
// matrices of one type that have the same input.
#include <algorithm>
#include <utility>

#include "executor/check_shapes.h"
#include "executor/gpu/gpu_executor.h"

namespace limpid {
namespace {

constexpr size_t kMostMatrices = 3;  // of a launch, as in kernels/octets.cl.h
// A tile of so many tokens is filled well enough that decoding the weights once for all of them
// costs less than reading them for every eight.
constexpr int64_t kManyTokens = 17;
// With so many rows there are groups enough for two rows a row of lanes.
constexpr int64_t kManyRows = 8192;
// A group for one token.
constexpr int kOneItems = 256;
constexpr int64_t kOneRows = 8;
constexpr int32_t kNormed = 1;
constexpr int32_t kAdds = 2;

// As in kernels/tensor.cl.h and tensor_many.cl.h.
constexpr int kHalveItems = 256;
constexpr int64_t kTensorFew = 8;  // tokens of a group
constexpr int64_t kTensorSome = 64;
constexpr int64_t kTensorTile = 128;   // rows and tokens of a group of tensor_many
constexpr int64_t kChunk = 32;         // columns: rows of halves have whole chunks
constexpr int64_t kSpan = 2 * kChunk;  // and those of tiles whole spans
constexpr int64_t kHalfBytes = 2;
// Local memory of tensor_many: stages of a span of both operands.
constexpr int64_t kStageBytes = 2 * kTensorTile * kSpan * kHalfBytes;
// Weights that are halves at the same time, for many tokens: few enough to stay in a GPU's cache
// until they are multiplied.
constexpr uint64_t kHalvesBytes = uint64_t{32} << 20;

using gpu::as_int;
using gpu::groups;

// The memory of an activation's halves, in floats: one more column is for the numbers that undo the
// scaling.
Shape halves_shape(int64_t n_tokens, int64_t cols) {
  const bool in_tiles = n_tokens > kTensorSome;
  const int64_t n_rows = in_tiles ? groups(n_tokens, kTensorTile) * kTensorTile : n_tokens;
  const int64_t step = in_tiles ? kSpan : kChunk;
  return {n_rows, groups(cols, step) * step / 2 + 1};
}

// A tile of rows of weights as halves.
constexpr uint64_t tile_bytes(int64_t cols) {
  return static_cast<uint64_t>(kTensorTile * groups(cols, kSpan) * kSpan * kHalfBytes);
}

}  // namespace

void GpuExecutor::linear(const Activation& x, std::span<Projection> projections) {
  if (!waiting_.norm || waiting_.norm->y != &buffer(x)) settle();
  Activation halves;  // of x, for all projections
  for (Projection& p : projections) {
    check_linear("linear", x, p);
    p.y = allocate(x.rows(), p.weight.rows);
  }
  const auto type_of = [&](const Projection& p) { return weight(p.weight).dtype; };
  while (!projections.empty()) {
    size_t n = 1;
    while (n < std::min(projections.size(), kMostMatrices) &&
           type_of(projections[n]) == type_of(projections[0]))
      ++n;
    const MatrixKernels& kernels = matrix_kernels(type_of(projections[0]));
    if (products_ == DType::kF16 && halves.rows() == 0) halves = halve(x, kernels);
    Product product =
        product_of(products_ == DType::kF16 ? halves : x, x.rows(), kernels, projections.first(n));
    product.norm = std::exchange(waiting_.norm, std::nullopt);
    // A head comes last: nothing that it could wait for would follow within the step.
    if (fuses(x.rows()) && n == projections.size() && !weight(projections[0].weight).is_head) {
      settle();
      waiting_.product = product;
    } else {
      launch_product(product);
    }
    projections = projections.subspan(n);
  }
}

// Each token's halves, and the number that undoes its scaling, in the memory of an activation.
Activation GpuExecutor::halve(const Activation& x, const MatrixKernels& kernels) {
  const bool in_tiles = x.rows() > kTensorSome;
  const Shape shape = halves_shape(x.rows(), x.cols());
  Activation halves = allocate(shape.rows(), shape.cols());
  launch(*kernels.halve, {x.rows(), 1, kHalveItems}, buffer(x), buffer(halves), as_int(x.cols()),
         as_int(x.rows()), in_tiles ? 1 : 0);
  return halves;
}

// The kernel for so many tokens and rows, and what a group of it computes: items, rows and tokens
// as in kernels/linear.cl.h and kernels/tensor.cl.h.
GpuExecutor::LinearKernel GpuExecutor::linear_kernel(const MatrixKernels& kernels, int64_t n_tokens,
                                                     int64_t n_rows) const {
  if (products_ == DType::kF16) {
    if (n_tokens <= kTensorFew) return {*kernels.tensor_few, 256, 16, kTensorFew};
    return {*kernels.tensor_some, 256, 16, kTensorSome};
  }
  if (n_tokens == 1 && n_rows < kManyRows) return {*kernels.linear_one, kOneItems, kOneRows, 1};
  if (n_tokens == 1) return {*kernels.linear_one_of_many, kOneItems, 2 * kOneRows, 1};
  if (n_tokens < kManyTokens) return {*kernels.linear_few, 128, 16, 8};
  // Smaller tiles where many of the units would have none of the large ones.
  const int64_t n_units = device_->info().n_units;
  if (groups(n_rows, 128) * groups(n_tokens, 128) >= n_units)
    return {*kernels.linear_many, 256, 128, 128};
  if (groups(n_rows, 128) * groups(n_tokens, 64) * 2 > n_units)
    return {*kernels.linear_more, 256, 128, 64};
  return {*kernels.linear_some, 256, 64, 64};
}

GpuExecutor::Product GpuExecutor::product_of(const Activation& x, int64_t n_tokens,
                                             const MatrixKernels& kernels,
                                             std::span<const Projection> projections) const {
  Product product{&kernels, &buffer(x), n_tokens, as_int(projections[0].weight.cols)};
  product.n_matrices = projections.size();
  for (size_t i = 0; i < projections.size(); ++i) {
    const Projection& p = projections[i];
    const gpu::Buffer* data = weight(p.weight).data.get();
    product.matrices[i] = {data, p.bias ? weight(p.bias).data.get() : data, &buffer(p.y),
                           as_int(p.weight.rows)};
    product.n_rows += p.weight.rows;
    if (p.bias) product.biases |= 1 << i;
  }
  // The kernel has kMostMatrices arguments. Those without rows need a valid pointer.
  for (size_t i = projections.size(); i < kMostMatrices; ++i) {
    product.matrices[i] = product.matrices[0];
    product.matrices[i].rows = 0;
  }
  return product;
}

void GpuExecutor::launch_product(const Product& product, const gpu::Buffer* addend,
                                 const gpu::Buffer* sum) {
  if (products_ == DType::kF16 && product.n_tokens > kTensorSome) return launch_tiles(product);
  const LinearKernel kernel = linear_kernel(*product.kernels, product.n_tokens, product.n_rows);
  int64_t of_rows = 0;
  for (const Product::Matrix& m : product.matrices) of_rows += groups(m.rows, kernel.rows);
  if (fuses(product.n_tokens)) return launch_one(kernel.kernel, of_rows, product, addend, sum);
  const int64_t of_tokens = groups(product.n_tokens, kernel.tokens);
  launch_matrices(kernel.kernel, {of_rows, of_tokens, kernel.items}, product, *product.x,
                  product.cols, as_int(product.n_tokens));
}

// Of any activation of a step, halves included.
uint64_t GpuExecutor::activation_bytes(int64_t n_tokens, int64_t widest) const {
  uint64_t n_bytes = tensor_bytes(DType::kF32, Shape{n_tokens, widest});
  if (products_ == DType::kF16)
    n_bytes = std::max(n_bytes, tensor_bytes(DType::kF32, halves_shape(n_tokens, widest)));
  return std::max<uint64_t>(n_bytes, 1);
}

// Of weights, for a step of many tokens.
uint64_t GpuExecutor::halves_bytes(int64_t n_tokens, int64_t widest) const {
  if (products_ != DType::kF16 || n_tokens <= kTensorSome) return 0;
  return std::max(kHalvesBytes, tile_bytes(widest));
}

// Before a step begins.
void GpuExecutor::reserve_halves(int64_t n_tokens) {
  const uint64_t n_bytes = halves_bytes(n_tokens, widest_);
  if (n_bytes > 0) make_room(halves_, n_bytes, "weights as halves");
}

// Many tokens on tensor cores: as many tiles of rows at a time as there is memory for their halves.
void GpuExecutor::launch_tiles(const Product& product) {
  int64_t n_tiles = 0;
  for (const Product::Matrix& m : product.matrices) n_tiles += groups(m.rows, kTensorTile);
  const auto most = static_cast<int64_t>(halves_->n_bytes() / tile_bytes(product.cols));
  const int64_t n_units = std::max(device_->info().n_units, 1);
  const bool has_wgmma = device_->info().has_wgmma;
  const int n_items = has_wgmma ? 288 : 256;  // with the loader
  const int n_stages = has_wgmma ? 6 : 3;
  for (int64_t first = 0; first < n_tiles; first += most) {
    const int64_t n = std::min(most, n_tiles - first);
    launch_matrices(*product.kernels->halve_tiles,
                    {n * groups(product.cols, kSpan), 1, static_cast<int>(kTensorTile)}, product,
                    *halves_, product.cols, as_int(first));
    launch_matrices(*product.kernels->tensor_many,
                    {std::min(groups(product.n_tokens, kTensorTile) * n, n_units), 1, n_items,
                     n_stages * static_cast<int>(kStageBytes)},
                    product, *halves_, *product.x, product.cols, as_int(product.n_tokens),
                    as_int(first), as_int(n));
  }
}

// ---- one token, with what comes before and after ------------------------------------------------

void GpuExecutor::launch_one(const gpu::Kernel& kernel, int64_t n_tiles, const Product& product,
                             const gpu::Buffer* addend, const gpu::Buffer* result) {
  const gpu::Buffer& any = *product.x;
  const gpu::Buffer& x = product.norm ? *product.norm->x : any;
  const int32_t fused = (product.norm ? kNormed : 0) | (addend != nullptr ? kAdds : 0);
  // Two groups run on a unit at the same time; each goes through its tiles.
  const int64_t most = 2 * std::max<int64_t>(device_->info().n_units, 1);
  launch_matrices(kernel, {std::min(n_tiles, most), 1, kOneItems}, product, x, product.cols,
                  product.norm ? *product.norm->weight : any, product.norm ? *product.norm->y : any,
                  product.norm ? product.norm->eps : 0.0F, addend != nullptr ? *addend : any,
                  result != nullptr ? *result : any, fused);
}

std::optional<GpuExecutor::Product> GpuExecutor::take_product(
    std::initializer_list<const gpu::Buffer*> results) {
  const std::optional<Product>& product = waiting_.product;
  if (!product || product->n_matrices != results.size() || !waiting_.rotations.empty())
    return std::nullopt;
  if (!std::ranges::equal(results, std::span(product->matrices).first(results.size()), {}, {},
                          &Product::Matrix::y))
    return std::nullopt;
  return std::exchange(waiting_.product, std::nullopt);
}

void GpuExecutor::launch_gated(const Product& product, const gpu::Buffer& result) {
  launch_one(*product.kernels->linear_one_gated, groups(product.matrices[0].rows, kOneRows),
             product, nullptr, &result);
}

}  // namespace limpid
