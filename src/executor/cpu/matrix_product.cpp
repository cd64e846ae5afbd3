// The left operand is packed by all threads together. Then they share y as blocks of kRowsAtOnce
// rows times kRightColGrain columns, block of rows by block of rows.
#include "executor/cpu/matrix_product.h"

#include <algorithm>

namespace limpid {
namespace {

// Rows of y that one thread computes at a time: their part of the left operand stays in its caches.
constexpr int64_t kRowsAtOnce = 768;
static_assert(kRowsAtOnce % kLeftRowGrain == 0);
// The neighbouring panels of a range meet the same left operand in the caches.
constexpr int64_t kRangesPerThread = 4;

}  // namespace

void pack(const Kernels& kernels, ThreadPool& pool, const PackTask& left) {
  pool.for_ranges(left.rows, kLeftRowGrain, [&](int64_t begin, int64_t end, int /*thread*/) {
    PackTask part = left;
    part.row_begin = begin;
    part.row_end = end;
    kernels.pack_left(part);
  });
}

void multiply(const Kernels& kernels, ThreadPool& pool, const MatrixProduct& product,
              float* scratch, int64_t scratch_step) {
  const PackTask& left = product.left;
  const int64_t n_panels = (product.cols + kRightColGrain - 1) / kRightColGrain;
  const int64_t n_blocks = (left.rows + kRowsAtOnce - 1) / kRowsAtOnce;
  MultiplyTask all{
      left.packed, left.depth,   product.right, product.right_stride, product.cols,
      product.y,   product.cols, product.add,   product.right_type,   product.right_transposed,
      product.bias};
  all.rows = left.rows;
  const int64_t grain =
      std::max<int64_t>(1, n_blocks * n_panels / (kRangesPerThread * pool.size()));
  pool.for_ranges(n_blocks * n_panels, grain, [&](int64_t begin, int64_t end, int thread) {
    MultiplyTask task = all;
    task.scratch = scratch + thread * scratch_step;
    while (begin < end) {
      const int64_t block = begin / n_panels;
      const int64_t last = std::min(end, (block + 1) * n_panels);
      task.row_begin = block * kRowsAtOnce;
      task.row_end = std::min(left.rows, task.row_begin + kRowsAtOnce);
      task.col_begin = (begin - block * n_panels) * kRightColGrain;
      task.col_end = std::min(product.cols, (last - block * n_panels) * kRightColGrain);
      kernels.multiply_packed(task);
      begin = last;
    }
  });
}

}  // namespace limpid
