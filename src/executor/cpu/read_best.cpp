// The best elements of rows of logits: all that a greedy or top-k chain of samplers needs.
//
// Looking at 49,152 logits one by one takes a thread 1 % of the time of a small model's step. With
// many sequences, one thread would do that for each of them while the others wait. So all threads
// find the largest of each block of 64 first, with vector registers. The k best elements of a row
// then lie in the k blocks whose largest elements are the best: a block that is not among them has
// k elements of other blocks before its own. Those few blocks are sorted.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "base/divide_up.h"
#include "executor/check_shapes.h"
#include "executor/cpu/cpu_executor.h"

namespace limpid {
namespace {

// Leaves in `order` the k indices with the largest keys, the largest first; of equal ones the lower
// index comes first.
void keep_best(std::vector<int32_t>& order, int64_t k, const auto& key) {
  const auto middle = order.begin() + std::min<int64_t>(k, std::ssize(order));
  std::ranges::partial_sort(order, middle, [&](int32_t a, int32_t b) {
    return key(a) > key(b) || (key(a) == key(b) && a < b);
  });
  order.erase(middle, order.end());
}

// `largest` has that of each block of x.
std::vector<int32_t> best_of_row(std::span<const float> x, std::span<const float> largest,
                                 int64_t k) {
  std::vector<int32_t> blocks(largest.size());
  std::iota(blocks.begin(), blocks.end(), 0);
  keep_best(blocks, k, [&](int32_t block) { return largest[static_cast<size_t>(block)]; });
  std::vector<int32_t> columns;
  columns.reserve(blocks.size() * kBestBlock);
  for (const int32_t block : blocks) {
    const int64_t end = std::min((block + 1) * kBestBlock, std::ssize(x));
    for (int64_t column = block * kBestBlock; column < end; ++column)
      columns.push_back(static_cast<int32_t>(column));
  }
  keep_best(columns, k, [&](int32_t column) {
    const float value = x[static_cast<size_t>(column)];
    return std::isfinite(value) ? value : std::numeric_limits<float>::infinity();
  });
  return columns;
}

}  // namespace

void CpuExecutor::read_best(const Activation& x, int64_t k, std::span<int32_t> columns,
                            std::span<float> values) {
  check_best(x, k, columns, values);
  const int64_t cols = x.cols();
  const int64_t n_blocks = divide_up(cols, kBestBlock);
  std::vector<float> largest(static_cast<size_t>(x.rows() * n_blocks));
  // Ranges of blocks that may begin in one row and end in another.
  pool_.for_ranges(std::ssize(largest), kElementsPerThread / kBestBlock,
                   [&](int64_t begin, int64_t end, int /*thread*/) {
                     while (begin < end) {
                       const int64_t row = begin / n_blocks;
                       const int64_t first = begin % n_blocks;
                       const int64_t last = std::min(first + end - begin, n_blocks);
                       kernels_.block_largest(
                           data(x) + row * cols + first * kBestBlock,
                           std::min(last * kBestBlock, cols) - first * kBestBlock,
                           largest.data() + begin);
                       begin += last - first;
                     }
                   });
  pool_.for_each(x.rows(), 1, [&](int64_t row) {
    const std::span<const float> of_row{data(x) + row * cols, static_cast<size_t>(cols)};
    const std::vector<int32_t> best =
        best_of_row(of_row,
                    std::span(largest).subspan(static_cast<size_t>(row * n_blocks),
                                               static_cast<size_t>(n_blocks)),
                    k);
    for (int64_t i = 0; i < k; ++i) {
      columns[static_cast<size_t>(row * k + i)] = best[static_cast<size_t>(i)];
      values[static_cast<size_t>(row * k + i)] =
          of_row[static_cast<size_t>(best[static_cast<size_t>(i)])];
    }
  });
}

}  // namespace limpid
