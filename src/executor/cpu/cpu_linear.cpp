// Linear layers: the rows of all projections of one input are shared out in one go.
#include <algorithm>

#include "base/check.h"
#include "executor/cpu/cpu_executor.h"

namespace limpid {
namespace {

constexpr int64_t kGroupRows = 16;           // rows are shared out in groups
constexpr int64_t kSmallProducts = 1 << 15;  // below so many products one thread is faster than two

}  // namespace

void CpuExecutor::linear(const Activation& x, std::span<Projection> projections) {
  int64_t n_groups = 0;
  for (Projection& p : projections) {
    LIMPID_CHECK(ShapeError, p.weight.cols == x.cols(), "[linear] weight [{}, {}], x [{}, {}]",
                 p.weight.rows, p.weight.cols, x.rows(), x.cols());
    if (p.bias) vector_weight(p.bias, p.weight.rows, "linear");
    p.y = allocate(x.rows(), p.weight.rows);
    n_groups += (p.weight.rows + kGroupRows - 1) / kGroupRows;
  }
  if (x.rows() == 0) return;
  const bool small = n_groups * kGroupRows * x.cols() * x.rows() < kSmallProducts;
  pool_.for_ranges(n_groups, small ? n_groups : 1, [&](int64_t begin, int64_t end, int thread) {
    int64_t first = 0;  // group at which the projection starts
    for (const Projection& p : projections) {
      const int64_t n = (p.weight.rows + kGroupRows - 1) / kGroupRows;
      const int64_t from = std::max<int64_t>(begin - first, 0);
      const int64_t to = std::min(end - first, n);
      first += n;
      if (from >= to) continue;
      const LoadedWeight& weight = weights_[static_cast<size_t>(p.weight.id)];
      FloatLinearTask task;
      task.weight = weight.tensor.data;
      task.cols = x.cols();
      task.row_begin = from * kGroupRows;
      task.row_end = std::min(to * kGroupRows, p.weight.rows);
      task.pair_head_dim = weight.pair_head_dim;
      task.x = data(x);
      task.n_tokens = x.rows();
      task.y = data(p.y);
      task.y_stride = p.weight.rows;
      task.bias = p.bias ? weights_[static_cast<size_t>(p.bias.id)].vector.data() : nullptr;
      task.scratch = linear_scratch(thread);
      switch (weight.tensor.dtype) {
        case DType::kF16:
          kernels_.linear_f16(task);
          break;
        case DType::kBF16:
          kernels_.linear_bf16(task);
          break;
        default:
          kernels_.linear_f32(task);
          break;
      }
    }
  });
}

}  // namespace limpid
