#include "executor/check_shapes.h"
#include "executor/cpu/cpu_executor.h"

namespace limpid {

Activation CpuExecutor::rope(const Activation& x, const RopeTable& table, int64_t head_dim) {
  const RopeAngles& angles = rope_tables_[static_cast<size_t>(table.id)];
  check_rope(inputs_, x, table, head_dim, angles.n_positions());
  return rotate(x, table, head_dim, false);
}

Activation CpuExecutor::rotate(const Activation& x, const RopeTable& table, int64_t head_dim,
                               bool back) {
  const RopeAngles& angles = rope_tables_[static_cast<size_t>(table.id)];
  Activation y = allocate(x.rows(), x.cols());
  for_rows(x.rows(), x.cols(), [&, in = data(x), out = data(y)](int64_t begin, int64_t end) {
    for (int64_t t = begin; t < end; ++t) {
      const int64_t position = inputs_.positions[static_cast<size_t>(t)];
      kernels_.rope(in + t * x.cols(), angles.cosines(position), angles.sines(position),
                    x.cols() / head_dim, head_dim, table.n_rot, back, out + t * x.cols());
    }
  });
  return y;
}

}  // namespace limpid
