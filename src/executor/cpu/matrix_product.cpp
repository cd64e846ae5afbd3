// Products of matrices, y = left * right, by the threads of a pool. If y has enough rows, each
// thread computes whole rows: it packs its own rows of the left operand, part by part, and
// multiplies them with all of the right operand, so threads share nothing. If y has few rows, the
// threads pack a part of the left operand together, and then share out the panels of kRightColGrain
// columns of y (and the rows, if there are few panels).
#include "executor/cpu/matrix_product.h"

#include <algorithm>

#include "base/divide_up.h"

namespace limpid {
namespace {

// The least rows for which a thread copies a panel of the right operand, so that the copy costs
// little beside the product.
constexpr int64_t kFewestRows = 8 * kLeftRowGrain;
constexpr int64_t kMostRows = kLeftPartFloats / kMultiplyDepth;
// A thread that the system delays leaves some of its ranges to the others.
constexpr int64_t kRangesPerThread = 4;
// Fewer ranges of whole rows, because each copies all of the right operand.
constexpr int64_t kRowRangesPerThread = 2;

constexpr int64_t round_up(int64_t a, int64_t grain) { return divide_up(a, grain) * grain; }

int64_t n_panels(const MatrixProduct& product) { return divide_up(product.cols, kRightColGrain); }

// Rows [row, row + rows) and steps [k, k + depth) of the left operand.
struct Part {
  int64_t row;
  int64_t rows;
  int64_t k;
  int64_t depth;
};

PackTask pack_task(const LeftMatrix& left, const Part& part, float* packed) {
  PackTask task{left};
  task.x += left.transposed ? part.k * left.stride + part.row : part.row * left.stride + part.k;
  task.rows = part.rows;
  task.depth = part.depth;
  task.packed = packed;
  return task;
}

MultiplyTask multiply_task(const MatrixProduct& product, const Part& part, const float* packed) {
  const int64_t element = product.right_type == DType::kF32 ? 4 : 2;
  const int64_t first = product.right_transposed ? part.k : part.k * product.right_stride;
  MultiplyTask task{product};
  task.right = static_cast<const std::byte*>(product.right) + first * element;
  task.y += part.row * product.cols;
  task.add = product.add || part.k > 0;
  task.left = packed;
  task.depth = part.depth;
  return task;
}

struct Call {
  const Kernels& kernels;
  ThreadPool& pool;
  const LeftMatrix& left;
  std::span<const MatrixProduct> products;
  float* scratch;

  float* packed(int thread) const { return scratch + thread * kLeftPartFloats; }
  float* panel(int thread) const {
    return scratch + pool.size() * kLeftPartFloats + thread * kMultiplyScratch;
  }
};

// Rows [begin, end) of y, by one thread, with parts of `depth` steps.
void multiply_rows(const Call& call, int64_t begin, int64_t end, int64_t depth, int thread) {
  for (int64_t k = 0; k < call.left.depth; k += depth) {
    const Part part{begin, end - begin, k, std::min(depth, call.left.depth - k)};
    PackTask pack = pack_task(call.left, part, call.packed(thread));
    pack.row_end = part.rows;
    call.kernels.pack_left(pack);
    for (const MatrixProduct& product : call.products) {
      MultiplyTask task = multiply_task(product, part, pack.packed);
      task.scratch = call.panel(thread);
      task.row_end = part.rows;
      task.col_end = product.cols;
      call.kernels.multiply_packed(task);
    }
  }
}

// A part of the left operand times all products, by all threads. A unit of work is one panel of
// some rows: panel by panel, and one range of rows after another.
void multiply_part(const Call& call, const Part& part) {
  ThreadPool& pool = call.pool;
  const PackTask pack = pack_task(call.left, part, call.packed(0));
  pool.for_ranges(part.rows, kLeftRowGrain, [&](int64_t begin, int64_t end, int /*thread*/) {
    PackTask task = pack;
    task.row_begin = begin;
    task.row_end = end;
    call.kernels.pack_left(task);
  });
  int64_t n_all_panels = 0;
  for (const MatrixProduct& product : call.products) n_all_panels += n_panels(product);
  const int64_t n_wanted = kRangesPerThread * pool.size();
  const int64_t rows_at_once =
      std::max(kFewestRows,
               round_up(divide_up(part.rows, divide_up(n_wanted, n_all_panels)), kLeftRowGrain));
  const int64_t n_row_ranges = divide_up(part.rows, rows_at_once);
  const int64_t n_units = n_row_ranges * n_all_panels;
  const int64_t grain = std::max<int64_t>(1, n_units / n_wanted);
  pool.for_ranges(n_units, grain, [&](int64_t begin, int64_t end, int thread) {
    int64_t first = 0;  // unit of the product
    for (const MatrixProduct& product : call.products) {
      MultiplyTask task = multiply_task(product, part, pack.packed);
      task.scratch = call.panel(thread);
      const int64_t n = n_panels(product);
      while (begin < std::min(end, first + n_row_ranges * n)) {
        const int64_t range = (begin - first) / n;
        const int64_t panel = (begin - first) % n;
        const int64_t n_now = std::min(n - panel, end - begin);
        task.row_begin = range * rows_at_once;
        task.row_end = std::min(part.rows, task.row_begin + rows_at_once);
        task.col_begin = panel * kRightColGrain;
        task.col_end = std::min(product.cols, (panel + n_now) * kRightColGrain);
        call.kernels.multiply_packed(task);
        begin += n_now;
      }
      first += n_row_ranges * n;
    }
  });
}

int64_t depth_of_part(int64_t rows) {
  return kLeftPartFloats / rows / kMultiplyDepth * kMultiplyDepth;
}

}  // namespace

void multiply(const Kernels& kernels, ThreadPool& pool, const LeftMatrix& left,
              std::span<const MatrixProduct> products, float* scratch) {
  if (left.rows == 0) return;
  const Call call{kernels, pool, left, products, scratch};
  const int64_t n_threads = pool.size();
  const int64_t n_grains = divide_up(left.rows, kLeftRowGrain);
  if (n_threads == 1 || left.rows >= kRowRangesPerThread * n_threads * kFewestRows) {
    // The same number of ranges for each thread: 1,024 rows and 2 threads make 4 of 240 to 264
    // rows.
    const int64_t n_each = std::max(n_threads == 1 ? 1 : kRowRangesPerThread,
                                    divide_up(n_grains, kMostRows / kLeftRowGrain * n_threads));
    const int64_t n_ranges = std::min(n_grains, n_each * n_threads);
    const int64_t depth = depth_of_part(divide_up(n_grains, n_ranges) * kLeftRowGrain);
    pool.for_ranges(n_ranges, 1, [&](int64_t range, int64_t end, int thread) {
      for (; range < end; ++range) {
        const int64_t first = n_grains * range / n_ranges;
        const int64_t last = n_grains * (range + 1) / n_ranges;
        multiply_rows(call, first * kLeftRowGrain, std::min(left.rows, last * kLeftRowGrain), depth,
                      thread);
      }
    });
    return;
  }
  const int64_t rows =
      round_up(divide_up(left.rows, divide_up(left.rows, kMostRows)), kLeftRowGrain);
  const int64_t depth = depth_of_part(rows);
  for (int64_t row = 0; row < left.rows; row += rows) {
    for (int64_t k = 0; k < left.depth; k += depth) {
      multiply_part(call,
                    {row, std::min(rows, left.rows - row), k, std::min(depth, left.depth - k)});
    }
  }
}

}  // namespace limpid
