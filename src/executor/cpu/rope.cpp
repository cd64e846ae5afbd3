#include "base/check.h"
#include "executor/cpu/cpu_executor.h"

namespace limpid {

Activation CpuExecutor::rope(const Activation& x, const RopeTable& table, int64_t head_dim) {
  const RopeAngles& angles = rope_tables_[static_cast<size_t>(table.id)];
  LIMPID_CHECK(ShapeError, head_dim > 0 && x.cols() % head_dim == 0 && table.n_rot <= head_dim,
               "[rope] {} columns, heads of {}, {} rotated", x.cols(), head_dim, table.n_rot);
  LIMPID_CHECK(ShapeError, all_within(inputs_.positions, angles.n_positions()),
               "[rope] a position is outside the {} of the table", angles.n_positions());
  LIMPID_CHECK(ShapeError, x.rows() == inputs_.n_tokens(), "[rope] {} rows for {} tokens", x.rows(),
               inputs_.n_tokens());
  Activation y = allocate(x.rows(), x.cols());
  for_rows(x.rows(), x.cols(), [&, in = data(x), out = data(y)](int64_t begin, int64_t end) {
    for (int64_t t = begin; t < end; ++t) {
      const int64_t position = inputs_.positions[static_cast<size_t>(t)];
      kernels_.rope(in + t * x.cols(), angles.cosines(position), angles.sines(position),
                    x.cols() / head_dim, head_dim, table.n_rot, out + t * x.cols());
    }
  });
  return y;
}

}  // namespace limpid
