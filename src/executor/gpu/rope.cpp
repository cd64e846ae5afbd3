#include "executor/check_shapes.h"
#include "executor/gpu/gpu_executor.h"

namespace limpid {

// Waits for attention, which puts the keys into the cache and can rotate them on the way.
Activation GpuExecutor::rope(const Activation& x, const RopeTable& table, int64_t head_dim) {
  const Angles& angles = rope_tables_[static_cast<size_t>(table.id)];
  check_rope(inputs_, x, table, head_dim, angles.n_there);
  if (waiting_.rotations.size() == 2) settle();
  Activation y = allocate(x.rows(), x.cols());
  waiting_.rotations.push_back(
      {&buffer(x), &buffer(y), table.id, x.rows(), gpu::as_int(x.cols()), gpu::as_int(head_dim)});
  return y;
}

void GpuExecutor::launch_rotation(const Rotation& rotation) {
  constexpr int kItems = 128;  // of a group, as in kernels/rope.cl.h
  const Angles& angles = rope_tables_[static_cast<size_t>(rotation.table)];
  launch(*ops_.rope, gpu::cover_rows(rotation.n_tokens, rotation.cols, kItems), *rotation.x,
         *angles.device, *step_, lists_.positions, *rotation.y, rotation.cols, rotation.head_dim,
         gpu::as_int(angles.n_rot));
}

}  // namespace limpid
